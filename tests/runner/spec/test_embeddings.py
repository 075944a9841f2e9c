import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec import read_spec
from tests.runner.spec.folders import BERT, NORMALIZE, POOLING, TRANSFORMER, base_folder

SPLADE = "sentence_transformers.sparse_encoder.models.SpladePooling"
MLM = "sentence_transformers.sparse_encoder.models.MLMTransformer"
LIBRARY = "config_sentence_transformers.json"


@pytest.mark.parametrize(
    ("config", "allowed", "sizes"),
    [
        ({}, False, None),
        ({"matryoshka_dimensions": [2, 4, 8]}, True, (2, 4, 8)),
        ({"is_matryoshka": True}, True, None),
        ({"is_matryoshka": False}, False, None),
        ({"matryoshka_dimensions": []}, False, None),
    ],
)
def test_cuts_are_allowed_where_the_checkpoint_says_so(library, config, allowed, sizes):
    spec = read_spec(library.config(**config).path)
    assert (spec.is_matryoshka, spec.matryoshka_dimensions) == (allowed, sizes)


@pytest.mark.parametrize("sizes", [[0, 4], [4, 9]])
def test_impossible_cuts_are_an_error(library, sizes):
    with pytest.raises(ModelError, match=r"matryoshka_dimensions is .* but embeddings are 8 wide"):
        read_spec(library.config(matryoshka_dimensions=sizes).path)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_the_similarity_is_the_declared_one(library, name):
    assert read_spec(library.write(LIBRARY, {"similarity_fn_name": name}).path).similarity == name


def test_an_unknown_similarity_is_an_error(library):
    with pytest.raises(ModelError, match=r"similarity_fn_name is 'psychic'"):
        read_spec(library.write(LIBRARY, {"similarity_fn_name": "psychic"}).path)


@pytest.mark.parametrize("missing", ["colbert_linear.pt", "sparse_linear.pt"])
def test_half_of_bge_m3_is_an_error(library, missing):
    for name in ("colbert_linear.pt", "sparse_linear.pt"):
        library.write(name, "")
    assert read_spec(library.path).tasks == ("embed", "token_embed", "token_classify")
    assert read_spec(library.path).to_json()["bge_m3"]["sparse"] == "sparse_linear.pt"
    with pytest.raises(ModelError, match=rf"{missing} is missing"):
        read_spec(library.remove(missing).path)


@pytest.fixture
def splade(tmp_path):
    config = {**BERT, "architectures": ["BertForMaskedLM"]}
    folder = base_folder(tmp_path / "splade", config, **{"cls.predictions.decoder.weight": (12, 8)})
    return folder.modules(MLM, SPLADE).write("1_SpladePooling/config.json", {"pooling_strategy": "max"})


def test_a_sparse_encoder_gives_one_weight_a_vocabulary_entry(splade):
    spec = read_spec(splade.path)
    assert (spec.kind, spec.pooling, spec.activation, spec.embedding_size, spec.similarity) == (
        "sparse",
        "MAX",
        "log1p(relu)",
        12,
        "dot",
    )
    assert (spec.tasks, spec.warnings) == (("embed",), ())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"pooling_strategy": "sum"},
            "1_SpladePooling/config.json: pooling_strategy is 'sum', supported is 'max'",
        ),
        ({"activation_function": "log1p_relu"}, "activation_function is 'log1p_relu', supported is 'relu'"),
    ],
)
def test_another_strategy_is_an_error(splade, config, message):
    with pytest.raises(ModelError, match=message):
        read_spec(splade.write("1_SpladePooling/config.json", config).path)


def test_another_module_behind_is_an_error(splade):
    with pytest.raises(ModelError, match=r"a sparse model of Transformer, SpladePooling, Normalize"):
        read_spec(splade.modules(MLM, SPLADE, NORMALIZE).path)


def test_missing_head_weights_are_an_error(splade):
    with pytest.raises(ModelError, match=r"no masked-language head"):
        read_spec(splade.weights(**{"embeddings.word_embeddings.weight": (12, 8)}).path)


def test_a_missing_vocabulary_size_is_an_error(splade):
    with pytest.raises(ModelError, match=r"vocab_size is missing"):
        read_spec(splade.config("vocab_size").path)


def test_a_bare_masked_language_model_is_taken_for_splade_and_said(splade):
    spec = read_spec(splade.remove("modules.json").path)
    assert spec.kind == "sparse"
    assert "taken for a SPLADE model" in spec.warnings[0]
    dense = read_spec(splade.path, pooler_config=PoolerConfig(pooling_type="MEAN"))
    assert (dense.kind, dense.pooling, dense.sources["kind"]) == ("embedding", "MEAN", "user")


def test_the_pooling_of_a_declared_sparse_encoder_is_not_changed(splade):
    with pytest.raises(ConfigError, match=r"pooling: no meaning for a model of kind 'sparse'"):
        read_spec(splade.path, pooler_config=PoolerConfig(pooling_type="MEAN"))


def test_a_sparse_encoder_is_no_embedding_model(splade):
    with pytest.raises(ModelError, match=r"modules\.json does not describe an embedding model"):
        read_spec(splade.path, overrides={"kind": "embedding"})


def test_a_sparse_kind_without_its_module_is_an_error(library):
    library.write(LIBRARY, {"model_type": "SparseEncoder"}).modules(TRANSFORMER, POOLING)
    with pytest.raises(ModelError, match=r"a sparse model of Transformer, Pooling is not supported"):
        read_spec(library.path)
