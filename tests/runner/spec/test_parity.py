"""The files are read as transformers and sentence-transformers read them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.runner.spec import read_spec
from poolembed.runner.spec.document import Document
from poolembed.runner.spec.modules import Module
from poolembed.runner.spec.pooling import POOLING_NAMES, read_mode
from tests.runner.spec.folders import FAMILIES, ZOO

FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizer_is_what_transformers_builds(family):
    auto = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(ZOO / "models" / family)
    spec = read_spec(ZOO / "models" / family).tokenizer
    assert (spec.padding_side, spec.vocab_size, spec.model_max_length) == (
        auto.padding_side,
        len(auto),
        auto.model_max_length,
    )


@settings(max_examples=60, deadline=None)
@given(flags=st.dictionaries(st.sampled_from(sorted(FLAGS)), st.booleans()), include=st.booleans())
def test_flags_mean_what_they_mean_to_sentence_transformers(flags, include, tmp_path_factory):
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    folder = tmp_path_factory.mktemp("pooling")
    config = {"word_embedding_dimension": 8, "include_prompt": include, **flags}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    theirs = modules.Pooling.load(str(folder)).pooling_mode
    names = (theirs,) if isinstance(theirs, str) else theirs
    ours = read_mode(Module("Pooling", "", Document("config.json", config)))
    assert ours.value == "+".join(POOLING_NAMES[name] for name in names)


def test_all_modes_of_sentence_transformers_have_a_name():
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    assert set(POOLING_NAMES) == set(modules.Pooling.POOLING_MODES)
