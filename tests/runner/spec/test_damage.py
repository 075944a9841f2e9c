"""Whatever is done to a folder's files, the answer is a spec or an error for the user, never a crash."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.errors import PoolembedError
from poolembed.runner.spec import ModelSpec, read_spec
from tests.runner.spec.folders import Folder, library_folder

FILES = {
    "config.json": [
        "architectures",
        "model_type",
        "hidden_size",
        "max_position_embeddings",
        "id2label",
        "auto_map",
    ],
    "modules.json": [],
    "1_Pooling/config.json": [
        "pooling_mode",
        "pooling_mode_cls_token",
        "include_prompt",
        "embedding_dimension",
    ],
    "config_sentence_transformers.json": [
        "prompts",
        "default_prompt_name",
        "model_type",
        "similarity_fn_name",
    ],
    "sentence_bert_config.json": ["max_seq_length", "do_lower_case", "processing_kwargs", "modality_config"],
    "tokenizer_config.json": ["model_max_length", "padding_side", "tokenizer_class", "model_input_names"],
    "tokenizer.json": ["added_tokens", "post_processor", "padding", "model"],
}
WORDS = st.sampled_from(
    ["", "bert", "mean", "CrossEncoder", "SparseEncoder", "ColBERT", "BertForMaskedLM", "left"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2000) | st.floats(allow_nan=False) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "0", "type", "cls", "vocab", "single", "id", "query"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
CHANGES = st.sampled_from([(name, key) for name, keys in FILES.items() for key in keys])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return library_folder(tmp_path_factory.mktemp("sound")).path


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(CHANGES, VALUES), min_size=1, max_size=3))
def test_any_value_anywhere_is_understood_or_refused(sound, tmp_path_factory, changes):
    folder = Folder(tmp_path_factory.mktemp("damaged") / "model")
    shutil.copytree(sound, folder.path, dirs_exist_ok=True)
    for (name, key), value in changes:
        folder.edit(name, **{key: value})
    try:
        spec = read_spec(folder.path)
    except PoolembedError:
        return
    assert isinstance(spec, ModelSpec)
    assert json.dumps(spec.to_json())
    assert len(spec.rows()) == len(spec.sources)
