"""Tokens and characters beside token vectors, and late chunking."""

import numpy as np
import pytest
from transformers import AutoTokenizer

from poolembed import LateChunkingParams, PoolingParams
from poolembed.config import TokenEmbedConfig
from poolembed.errors import ConfigError
from poolembed.model.token_embed import TokenEmbed, group_spans

TEXT = "Hello, naïve world: 日本 and more!"


def outcome_of(model, prompt="", texts=(TEXT,), given=None, **settings):
    operation = TokenEmbed.of(model.runner, prompt, TokenEmbedConfig(**settings), given)
    return operation.compute(operation.tokenize({"text": list(texts)})).columns


@pytest.mark.parametrize("family", ["bert-mean", "qwen3-last", "gemma3-bidirectional", "xlmroberta-bge-m3"])
@pytest.mark.parametrize("prompt", ["", "query: "])
def test_every_vector_has_its_token_and_the_characters_it_stands_for(family, prompt, model_of, models):
    columns = outcome_of(model_of(family), prompt, tokens=True, offsets=True)
    tokenizer = AutoTokenizer.from_pretrained(models / family)
    encoded = tokenizer(prompt + TEXT, return_offsets_mapping=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    spans = [(max(0, a - len(prompt)), max(0, b - len(prompt))) for a, b in encoded["offset_mapping"]]
    if family == "xlmroberta-bge-m3":  # its head leaves out the first token
        tokens, spans = tokens[1:], spans[1:]
    assert columns["tokens"].values == tokens
    assert len(columns["embeddings"].values) == len(tokens)
    found = columns["offsets"].values
    assert list(zip(found["start"].tolist(), found["end"].tolist(), strict=True)) == spans


@pytest.mark.parametrize("role", ["query", "document"])
def test_tokens_of_roles_are_marked_filled_and_thinned_out(role, model_of):
    columns = outcome_of(
        model_of("bert-colbert"), texts=["Hello, world!"], tokens=True, offsets=True, role=role
    )
    tokens, found = columns["tokens"].values, columns["offsets"].values
    spans = list(zip(found["start"].tolist(), found["end"].tolist(), strict=True))
    assert len(columns["embeddings"].values) == len(tokens) == len(spans)
    assert tokens[:2] == ["[CLS]", "[unused0]" if role == "query" else "[unused1]"]
    assert spans[:2] == [(0, 0), (0, 0)]
    assert ("," in tokens) == (role == "query")
    assert (tokens[-1] == "[MASK]") == (role == "query")
    words = [
        "Hello, world!"[start:end].lower()
        for token, (start, end) in zip(tokens, spans, strict=True)
        if not token.startswith("[")
    ]
    assert words == [token.removeprefix("##") for token in tokens if not token.startswith("[")]


@pytest.mark.parametrize("size", [1, 3, 500])
def test_late_chunking_averages_tokens_before_they_are_normalised(size, model_of):
    model = model_of("bert-mean")
    [raw] = model.token_embed([TEXT], PoolingParams(use_activation=False))
    groups = [raw[start : start + size].astype(np.float64).mean(0) for start in range(0, len(raw), size)]
    expected = [group / np.linalg.norm(group) for group in groups]
    columns = outcome_of(model, chunk_tokens=size, offsets=True)
    np.testing.assert_allclose(columns["embeddings"].values, expected, rtol=0, atol=1e-6)
    [same] = model.token_embed([TEXT], PoolingParams(late_chunking_params=LateChunkingParams(size)))
    np.testing.assert_array_equal(same, columns["embeddings"].values)
    assert columns["offsets"].values["end"].max() == len(TEXT)


def test_a_group_reaches_from_its_first_character_to_its_last():
    offsets = np.asarray([(0, 0), (0, 2), (3, 5), (0, 0), (0, 0), (1, 4)])
    spans = group_spans(offsets, np.asarray([4, 0, 2]), 2)
    assert spans.tolist() == [[0, 2], [3, 5], [1, 4]]
    assert group_spans(offsets, np.asarray([4, 2]), 1).tolist() == offsets.tolist()


def test_vectors_that_are_compared_one_by_one_are_not_averaged(model_of):
    with pytest.raises(ConfigError, match="cannot be averaged in groups"):
        outcome_of(model_of("bert-colbert"), chunk_tokens=2)
