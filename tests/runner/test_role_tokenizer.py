"""Queries and documents of late interaction: marker, filling, length, tokens left out."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from transformers import AutoTokenizer

from poolembed.config import ModelConfig
from poolembed.errors import ConfigError, ModelError
from poolembed.runner.describe import describe_model
from poolembed.runner.role_tokenizer import RoleTokenizer
from poolembed.runner.spec import LateInteraction
from poolembed.runner.tokenizers import Tokenizers

SETTINGS = LateInteraction(
    query_prefix="[unused0]",
    document_prefix="[unused1]",
    query_length=8,
    document_length=10,
    query_expansion=True,
    expansion_length=None,
    attend_to_expansion=False,
    expansion_token=None,
    skiplist=(".", ","),
    skip_in_queries=False,
)


@pytest.fixture
def tokenizer(tokenizer_of):
    return tokenizer_of("bert-colbert")


def tokens(tokenizer, rows, row=0):
    ids = np.split(rows.token_ids, np.cumsum(rows.lengths)[:-1])[row]
    return " ".join(tokenizer.convert_ids_to_tokens(ids.tolist()))


def query(tokenizer, text, max_length=8, **settings):
    return RoleTokenizer(tokenizer, replace(SETTINGS, **settings), "query", max_length=max_length)([text])


def document(tokenizer, text, max_length=10, **settings):
    return RoleTokenizer(tokenizer, replace(SETTINGS, **settings), "document", max_length=max_length)([text])


def test_a_query_has_its_marker_and_is_filled_with_masks_that_no_token_sees(tokenizer):
    rows = query(tokenizer, "a b.")
    assert tokens(tokenizer, rows) == "[CLS] [unused0] a b . [SEP] [MASK] [MASK]"
    assert rows.seen_lengths.tolist() == [6]
    assert rows.kept is None
    assert rows.truncated.tolist() == [False]


def test_a_query_may_see_its_filling(tokenizer):
    assert query(tokenizer, "a b", attend_to_expansion=True).seen_lengths is None


def test_a_query_is_filled_with_the_token_that_the_checkpoint_names(tokenizer):
    rows = query(tokenizer, "a", expansion_token="[PAD]")
    assert tokens(tokenizer, rows) == "[CLS] [unused0] a [SEP] [PAD] [PAD] [PAD] [PAD]"


def test_a_query_is_filled_with_the_token_that_ends_a_text_where_there_is_no_mask(tokenizer_of):
    tokenizer = tokenizer_of("qwen3-last")
    assert tokenizer.mask_token_id is None
    rows = query(tokenizer, "a", query_prefix="")
    assert rows.token_ids[-1] == tokenizer.eos_token_id
    assert rows.lengths.tolist() == [8]


def test_a_query_that_nothing_can_fill_is_an_error(tokenizer_of):
    tokenizer = tokenizer_of("gpt2-seqcls")
    tokenizer.eos_token = None
    with pytest.raises(ModelError, match="neither a mask token nor one that ends a text"):
        query(tokenizer, "a", query_prefix="")
    assert query(tokenizer, "a", query_prefix="", query_expansion=False).lengths.tolist() == [1]


@pytest.mark.parametrize("strategy", ["fixed", "min"])
@pytest.mark.parametrize("attend", [True, False])
def test_queries_are_filled_and_cut_as_sentence_transformers_does(strategy, attend, models, tmp_path):
    library = pytest.importorskip("sentence_transformers.base.modules.transformer")
    shutil.copytree(models / "modernbert-colbert", tmp_path / "model")
    path = tmp_path / "model" / "sentence_bert_config.json"
    written = json.loads(path.read_text("utf-8"))
    expansion = {"strategy": strategy, "length": 8, "attend": attend}
    written |= {"query_length": 12, "query_expansion": expansion}
    path.write_text(json.dumps(written), "utf-8")
    theirs = library.Transformer(
        str(models / "modernbert-colbert"), query_length=12, query_expansion=expansion
    )
    spec = describe_model(ModelConfig(model=str(tmp_path / "model")))[1]
    role = Tokenizers(spec, AutoTokenizer.from_pretrained(models / "modernbert-colbert")).role("query")
    prefix = spec.late_interaction.query_prefix
    for text in ("a", "one two three four five", "one two three " * 2, "one two three four " * 9):
        features = theirs.preprocess([prefix + text], task="query")
        rows = role([text])
        assert rows.token_ids.tolist() == features["input_ids"][0].tolist()
        seen = rows.lengths if rows.seen_lengths is None else rows.seen_lengths
        assert seen.tolist() == features["attention_mask"].sum(1).tolist()


def test_a_long_query_is_cut_to_its_length(tokenizer):
    rows = query(tokenizer, "a b c d e f g h")
    assert tokens(tokenizer, rows) == "[CLS] [unused0] a b c d e [SEP]"
    assert rows.truncated.tolist() == [True]


def test_a_query_without_expansion_stays_as_it_is(tokenizer):
    rows = query(tokenizer, "a b", query_expansion=False)
    assert tokens(tokenizer, rows) == "[CLS] [unused0] a b [SEP]"
    assert rows.seen_lengths is None


def test_documents_are_not_filled_and_lose_the_outputs_of_skipped_tokens(tokenizer):
    rows = document(tokenizer, "a, b.")
    assert tokens(tokenizer, rows) == "[CLS] [unused1] a , b . [SEP]"
    assert rows.kept.tolist() == [True, True, True, False, True, False, True]
    assert rows.seen_lengths is None


def test_queries_lose_skipped_tokens_where_the_checkpoint_says_so(tokenizer):
    rows = query(tokenizer, "a b.", skip_in_queries=True)
    assert rows.kept.tolist() == [True, True, True, True, False, True, True, True]


def test_words_of_the_skip_list_that_are_no_tokens_skip_nothing(tokenizer):
    assert document(tokenizer, "a, b.", skiplist=("no such token",)).kept is None


def test_a_marker_that_is_no_token_is_text_before_the_text(tokenizer):
    rows = document(tokenizer, "a", document_prefix="b c ")
    assert tokens(tokenizer, rows) == "[CLS] b c a [SEP]"


def test_no_marker_is_no_token(tokenizer):
    assert tokens(tokenizer, document(tokenizer, "a", document_prefix="")) == "[CLS] a [SEP]"


def test_a_marker_comes_first_where_texts_begin_with_no_special_token(tokenizer_of):
    tokenizer = tokenizer_of("gpt2-seqcls")
    rows = document(tokenizer, "ab", document_prefix="a")
    assert rows.token_ids.tolist()[0] == tokenizer.get_vocab()["a"]
    assert rows.token_ids.tolist()[1:] == tokenizer("ab")["input_ids"]


def test_an_empty_text_has_its_marker_alone(tokenizer_of):
    tokenizer = tokenizer_of("gpt2-seqcls")
    rows = document(tokenizer, "", document_prefix="a")
    assert rows.token_ids.tolist() == [tokenizer.get_vocab()["a"]]


@pytest.mark.parametrize(
    ("side", "kept"),
    [("right", "[CLS] [unused1] a b c [SEP]"), ("left", "[CLS] [unused1] f g h [SEP]")],
)
def test_a_long_document_is_cut_on_the_tokenizers_side(tokenizer, side, kept):
    tokenizer.truncation_side = side
    for text in ("a b c d e f g h", "a b c " + "d e " * 9000 + "f g h"):
        rows = document(tokenizer, text, max_length=6)
        assert tokens(tokenizer, rows) == kept
        assert rows.truncated.tolist() == [True]


def test_rows_stay_apart_and_in_order(tokenizer):
    rows = RoleTokenizer(tokenizer, SETTINGS, "document", max_length=10)(["a.", "", "b c"])
    assert [tokens(tokenizer, rows, row) for row in range(3)] == [
        "[CLS] [unused1] a . [SEP]",
        "[CLS] [unused1] [SEP]",
        "[CLS] [unused1] b c [SEP]",
    ]
    assert len(rows.kept) == rows.lengths.sum()


def test_a_length_without_room_for_text_is_refused(tokenizer):
    with pytest.raises(
        ConfigError, match="length of 3 has no room for text beside 3 special tokens"
    ) as caught:
        RoleTokenizer(tokenizer, SETTINGS, "document", max_length=3)
    assert "at least 4" in str(caught.value)


@pytest.fixture
def lengths_of(models, tokenizer):
    """The lengths that a model's roles have, with settings changed."""

    def lengths(family, *, user=None, positions=None, **settings):
        spec = describe_model(ModelConfig(model=str(models / family), max_length=user))[1]
        spec = replace(
            spec,
            late_interaction=replace(spec.late_interaction, **settings),
            max_positions=positions or spec.max_positions,
        )
        made = Tokenizers(spec, tokenizer)
        return made.role("query").max_length, made.role("document").max_length

    return lengths


def test_a_roles_own_length_replaces_that_of_all_texts(lengths_of):
    # PyLate writes max_seq_length = 299 beside document_length = 300: the marker is the difference.
    assert lengths_of("modernbert-colbert") == (32, 300)
    assert lengths_of("bert-colbert") == (32, 220)


def test_the_users_length_is_above_that_of_a_role(lengths_of):
    assert lengths_of("modernbert-colbert", user=20) == (20, 20)
    assert lengths_of("modernbert-colbert", user=400) == (32, 300)


def test_the_models_positions_are_above_the_length_of_a_role(lengths_of):
    assert lengths_of("modernbert-colbert", positions=16) == (16, 16)


def test_a_role_without_a_length_has_that_of_all_texts(lengths_of):
    assert lengths_of("modernbert-colbert", document_length=None, query_length=None) == (299, 299)


def test_expansion_that_only_fills_cuts_no_query(lengths_of, tokenizer):
    fill = {"query_length": None, "expansion_length": 8}
    assert lengths_of("modernbert-colbert", **fill) == (299, 300)
    long = query(tokenizer, "a b c d e f g h i", max_length=64, **fill)
    assert tokens(tokenizer, long) == "[CLS] [unused0] a b c d e f g h i [SEP]"
    short = query(tokenizer, "a", max_length=64, **fill)
    assert tokens(tokenizer, short) == "[CLS] [unused0] a [SEP] [MASK] [MASK] [MASK] [MASK]"


@pytest.mark.parametrize(
    ("role", "prefix", "spans"),
    [
        ("query", "[unused0]", [(0, 0), (0, 0), (0, 1), (2, 3), (0, 0), (0, 0), (0, 0), (0, 0)]),
        ("document", "[unused1]", [(0, 0), (0, 0), (0, 1), (2, 3), (0, 0)]),
        ("document", "c ", [(0, 0), (0, 0), (0, 1), (2, 3), (0, 0)]),
    ],
    ids=["filled", "marked", "prompted"],
)
def test_offsets_count_in_the_text_alone(tokenizer, role, prefix, spans):
    settings = replace(SETTINGS, **{f"{role}_prefix": prefix})
    rows = RoleTokenizer(tokenizer, settings, role, max_length=8, with_offsets=True)(["a b"])
    assert [tuple(span) for span in rows.offsets.tolist()] == spans


def test_offsets_are_there_only_where_they_are_wanted(tokenizer):
    assert document(tokenizer, "a b").offsets is None
