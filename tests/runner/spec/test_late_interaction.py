import string

import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from tests.runner.spec.folders import BERT, DENSE, NORMALIZE, POOLING, TRANSFORMER, base_folder

LIBRARY = "config_sentence_transformers.json"
PYLATE = "pylate.models.Dense.Dense"
MASK = "sentence_transformers.multi_vector_encoder.modules.MultiVectorMask"
PUNCTUATION = tuple(string.punctuation)


@pytest.fixture
def stanford(tmp_path):
    folder = base_folder(
        tmp_path / "colbert", {**BERT, "architectures": ["HF_ColBERT"]}, **{"linear.weight": (4, 8)}
    )
    return folder.write(
        "artifact.metadata",
        {"query_token_id": "[Q!]", "doc_token_id": "[D!]", "query_maxlen": 16, "doc_maxlen": 50, "dim": 4},
    )


@pytest.fixture
def pylate(library):
    library.modules(TRANSFORMER, PYLATE).dense("1_Dense", 4, 8, bias=False)
    return library.write(
        LIBRARY, {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] "}
    )


@pytest.fixture
def native(library):
    library.modules(TRANSFORMER, DENSE, MASK, NORMALIZE)
    library.dense("1_Dense", 4, 8, activation_function="torch.nn.modules.linear.Identity")
    library.edit("1_Dense/config.json", module_input_name="token_embeddings")
    library.write("3_Normalize/config.json", {"module_input_name": "token_embeddings"})
    return library.write(
        LIBRARY, {"model_type": "MultiVectorEncoder", "prompts": {"query": "[Q] ", "document": "[D] "}}
    )


def test_the_metadata_of_stanford(stanford):
    spec = read_spec(stanford.path)
    late = spec.late_interaction
    assert (late.query_prefix, late.document_prefix, late.query_length, late.document_length) == (
        "[Q!]",
        "[D!]",
        16,
        50,
    )
    assert (late.query_expansion, late.expansion_length, late.attend_to_expansion, late.skip_in_queries) == (
        True,
        None,
        False,
        False,
    )
    assert (late.skiplist, late.expansion_token) == (PUNCTUATION, None)
    assert (
        spec.dense[0].in_features,
        spec.dense[0].out_features,
        spec.dense[0].bias,
        spec.dense[0].files,
    ) == (
        8,
        4,
        False,
        ("model.safetensors",),
    )
    assert (spec.embedding_size, spec.similarity, spec.use_activation, spec.pooling) == (
        4,
        "MaxSim",
        True,
        "ALL",
    )
    assert (spec.tasks, spec.score_type, spec.warnings) == (("token_embed",), "late-interaction", ())
    assert (spec.pooler_config.seq_pooling_type, spec.pooler_config.tok_pooling_type) == (None, "ALL")


@pytest.mark.parametrize(("flag", "skiplist"), [(True, PUNCTUATION), (False, ())])
def test_punctuation_is_skipped_as_declared(stanford, flag, skiplist):
    stanford.edit("artifact.metadata", mask_punctuation=flag, attend_to_mask_tokens=True)
    spec = read_spec(stanford.path)
    assert spec.late_interaction.skiplist == skiplist
    assert spec.late_interaction.attend_to_expansion is True
    assert spec.sources["skiplist"] == "artifact.metadata: mask_punctuation"


def test_a_colbert_with_code_of_its_own_is_refused_until_it_is_trusted(stanford):
    stanford.config(
        model_type="xlm-roberta", position_embedding_type="rotary", auto_map={"AutoModel": "x--y.Z"}
    )
    stanford.edit("artifact.metadata", query_token_id="[QueryMarker]", doc_token_id="[DocumentMarker]")
    with pytest.raises(ModelError, match="auto_map"):
        read_spec(stanford.path)
    late = read_spec(stanford.path, trust_remote_code=True).late_interaction
    assert (late.query_prefix, late.document_prefix) == ("[QueryMarker]", "[DocumentMarker]")


def test_missing_metadata_means_the_defaults_and_a_warning(stanford):
    spec = read_spec(stanford.remove("artifact.metadata").path)
    late = spec.late_interaction
    assert (late.query_prefix, late.document_prefix, late.query_length, late.document_length) == (
        "[unused0]",
        "[unused1]",
        32,
        None,
    )
    assert "artifact.metadata is missing" in spec.warnings[0]


def test_a_missing_projection_is_an_error(stanford):
    stanford.weights(**{"bert.embeddings.weight": (12, 8)})
    with pytest.raises(ModelError, match=r"has no linear\.weight"):
        read_spec(stanford.path)


def test_pickled_weights_need_the_width_from_the_metadata(stanford):
    stanford.remove("model.safetensors").write("pytorch_model.bin", "")
    assert (
        read_spec(stanford.path).dense[0].out_features,
        read_spec(stanford.path).dense[0].in_features,
    ) == (4, 8)
    stanford.edit("artifact.metadata", "dim").config(dim=3)
    assert read_spec(stanford.path).embedding_size == 3
    with pytest.raises(ModelError, match=r"artifact\.metadata: dim is missing"):
        read_spec(stanford.config("dim").path)


def test_a_projection_that_does_not_fit_is_an_error(stanford):
    with pytest.raises(
        ModelError, match=r"the projection: in_features is 9, but what comes before is 8 wide"
    ):
        read_spec(stanford.weights(**{"linear.weight": (4, 9)}).path)


def test_the_layout_of_pylate(pylate):
    pylate.edit(
        LIBRARY,
        query_length=32,
        document_length=180,
        attend_to_expansion_tokens=True,
        do_query_expansion=False,
        skiplist_words=["!", "?"],
        similarity_fn_name="MaxSim",
    )
    spec = read_spec(pylate.path)
    late = spec.late_interaction
    assert (late.query_prefix, late.document_prefix, late.query_length, late.document_length) == (
        "[Q] ",
        "[D] ",
        32,
        180,
    )
    assert (late.query_expansion, late.attend_to_expansion, late.skiplist) == (False, True, ("!", "?"))
    assert (spec.dense[0].activation, spec.embedding_size, spec.use_activation) == ("Identity", 4, True)
    assert spec.to_json()["skiplist"] == ["!", "?"]


def test_what_pylate_leaves_out_is_colberts_default(pylate):
    late = read_spec(pylate.path).late_interaction
    assert (late.query_length, late.query_expansion, late.skiplist) == (32, True, PUNCTUATION)


def test_a_pylate_module_alone_is_enough(pylate):
    assert read_spec(pylate.remove(LIBRARY).path).kind == "late-interaction"


def test_the_layout_of_sentence_transformers(native):
    native.write(
        "sentence_bert_config.json",
        {
            "document_length": 90,
            "query_length": 48,
            "query_expansion": {"strategy": "min", "length": 24, "attend": True, "token": "[X]"},
        },
    )
    native.write(
        "2_MultiVectorMask/config.json", {"skiplist_words": ["."], "skiplist_tasks": ["query", "document"]}
    )
    spec = read_spec(native.path)
    late = spec.late_interaction
    assert (late.query_prefix, late.document_prefix, late.query_length, late.document_length) == (
        "[Q] ",
        "[D] ",
        48,
        90,
    )
    assert (late.query_expansion, late.expansion_length, late.attend_to_expansion, late.expansion_token) == (
        True,
        24,
        True,
        "[X]",
    )
    assert (late.skiplist, late.skip_in_queries, spec.use_activation) == ((".",), True, True)
    # The markers are no prompts on top of themselves.
    assert spec.prompts == {}


def test_what_sentence_transformers_leaves_out_is_off(native):
    native.edit(LIBRARY, prompts={})
    late = read_spec(native.path).late_interaction
    assert (late.query_prefix, late.document_prefix, late.query_length, late.document_length) == (
        "",
        "",
        None,
        None,
    )
    assert (late.query_expansion, late.skiplist) == (False, ())


@pytest.mark.parametrize(("tasks", "expected"), [("query", True), ("document", False), (["document"], False)])
def test_the_mask_says_where_tokens_are_skipped(native, tasks, expected):
    native.write("2_MultiVectorMask/config.json", {"skiplist_words": ["."], "skiplist_tasks": tasks})
    assert read_spec(native.path).late_interaction.skip_in_queries is expected


def test_a_mask_without_normalize_does_not_normalise(native):
    native.modules(TRANSFORMER, DENSE, MASK)
    spec = read_spec(native.path)
    assert (spec.use_activation, spec.sources["activation"]) == (False, "modules.json")


def test_expansion_with_the_defaults_of_its_settings(native):
    native.write("sentence_bert_config.json", {"query_expansion": {"strategy": "fixed", "length": 32}})
    late = read_spec(native.path).late_interaction
    assert late.query_length == 32
    assert (late.query_expansion, late.expansion_length, late.attend_to_expansion, late.expansion_token) == (
        True,
        None,
        False,
        None,
    )


@pytest.mark.parametrize(
    "expansion", [{"strategy": "wild", "length": 3}, {"strategy": "fixed"}, {"length": 3}]
)
def test_an_expansion_that_is_not_understood_is_an_error(native, expansion):
    native.write("sentence_bert_config.json", {"query_expansion": expansion})
    with pytest.raises(ModelError, match=r"query_expansion needs a strategy"):
        read_spec(native.path)


def test_a_floor_without_a_ceiling_cuts_no_query(native):
    native.write("sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 24}})
    late = read_spec(native.path).late_interaction
    assert (late.query_length, late.expansion_length) == (None, 24)


@pytest.mark.parametrize("strategy", ["fixed", "min"])
def test_a_ceiling_below_the_floor_is_an_error(native, strategy):
    native.write(
        "sentence_bert_config.json",
        {"query_length": 16, "query_expansion": {"strategy": strategy, "length": 24}},
    )
    with pytest.raises(ModelError, match=r"query_length is 16, below the 24 tokens"):
        read_spec(native.path)


def test_a_mask_for_images_is_an_error(native):
    native.write("2_MultiVectorMask/config.json", {"keep_only_token_ids": [5]})
    with pytest.raises(ModelError, match=r"keep_only_token_ids is not supported"):
        read_spec(native.path)


def test_another_module_is_an_error(pylate):
    with pytest.raises(ModelError, match=r"a late-interaction model with Dense, Pooling is not supported"):
        read_spec(pylate.modules(TRANSFORMER, PYLATE, POOLING).write("2_Pooling/config.json", {}).path)


def test_a_chain_of_projections(pylate):
    pylate.modules(TRANSFORMER, PYLATE, PYLATE).dense("2_Dense", 2, 4)
    assert read_spec(pylate.path).embedding_size == 2
    with pytest.raises(ModelError, match=r"2_Dense: in_features is 5"):
        read_spec(pylate.dense("2_Dense", 2, 5).path)


def test_no_projection_keeps_the_width(native):
    assert read_spec(native.modules(TRANSFORMER, MASK, NORMALIZE).path).embedding_size == 8


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("query_prefix", "Q:", "Q:"),
        ("document_prefix", "", ""),
        ("query_length", "8", 8),
        ("document_length", "9", 9),
        ("query_expansion", "false", False),
        ("attend_to_expansion", "true", True),
        ("skiplist", '["x"]', ("x",)),
    ],
)
def test_the_user_decides(stanford, key, text, value):
    spec = read_spec(stanford.path, overrides={key: text})
    assert (getattr(spec.late_interaction, key), spec.sources[key]) == (value, "user")
