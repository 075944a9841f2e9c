"""Each kind of input has its tokenizer, and models without that kind say so."""

import pytest

from poolembed.config import ModelConfig
from poolembed.errors import ConfigError
from poolembed.runner.describe import describe_model
from poolembed.runner.pair_tokenizer import PairTokenizer, TemplateTokenizer
from poolembed.runner.tokenizers import Tokenizers


@pytest.fixture
def tokenizers_of(models, tokenizer_of):
    def make(family, *overrides, **options):
        config = ModelConfig(model=str(models / family), overrides=overrides, **options)
        return Tokenizers(describe_model(config)[1], tokenizer_of(family))

    return make


def test_texts_are_cut_at_the_models_length(tokenizers_of):
    assert tokenizers_of("bert-mean").texts()(["the " * 900]).lengths.tolist() == [256]
    assert tokenizers_of("bert-mean", max_length=9).texts()(["the " * 900]).lengths.tolist() == [9]


def test_a_prompt_that_the_model_does_not_pool_is_counted(tokenizers_of):
    tokenizers = tokenizers_of("bert-prompts", ("include_prompt", "false"))
    assert tokenizers.texts("query: ")(["word"]).prompt_lengths is not None
    assert tokenizers_of("bert-prompts").texts("query: ")(["word"]).prompt_lengths is None


def test_a_name_finds_its_prompt_and_no_name_the_default(tokenizers_of):
    tokenizers = tokenizers_of("bert-prompts")
    prompts = tokenizers.spec.prompts
    assert tokenizers.prompt("query") == prompts["query"] != ""
    assert tokenizers.prompt(None) == prompts["document"] != ""
    assert tokenizers_of("bert-mean").prompt(None) == ""


def test_an_unknown_prompt_is_refused_and_the_known_ones_are_named(tokenizers_of):
    with pytest.raises(ConfigError, match="declares no prompt 'qurey'") as caught:
        tokenizers_of("bert-prompts").prompt("qurey")
    assert "query" in caught.value.hint
    with pytest.raises(ConfigError, match="its prompts: none"):
        tokenizers_of("bert-mean").prompt("query")


def test_only_late_interaction_has_roles(tokenizers_of):
    assert tokenizers_of("bert-colbert").role("query").max_length == 32
    with pytest.raises(ConfigError, match="bert-mean has no roles: its kind is embedding"):
        tokenizers_of("bert-mean").role("query")


def test_pairs_go_into_the_models_prompt_where_it_has_one(tokenizers_of):
    assert isinstance(tokenizers_of("qwen3-seqcls").pairs(), TemplateTokenizer)
    assert isinstance(tokenizers_of("qwen3-seqcls", ("template", "none")).pairs(), PairTokenizer)
    assert isinstance(tokenizers_of("bert-crossencoder").pairs(), PairTokenizer)


def test_the_limits_of_pairs_are_those_that_were_asked_for(tokenizers_of):
    pairs = tokenizers_of("bert-crossencoder").pairs(max_query_tokens=2, max_document_tokens=3)
    assert pairs(["the " * 9], ["the " * 9]).lengths.tolist() == [2 + 3 + 3]
    assert tokenizers_of("bert-crossencoder").pairs()(["the " * 900], ["the"]).lengths.tolist() == [512]


def test_an_instruction_needs_a_prompt_that_takes_it(tokenizers_of):
    tokenizers = tokenizers_of("qwen3-seqcls")
    plain = tokenizers.pairs()(["q"], ["d"]).token_ids.tolist()
    assert tokenizers.pairs(instruction="Find it.")(["q"], ["d"]).token_ids.tolist() != plain
    with pytest.raises(ConfigError, match="has no prompt that takes an instruction"):
        tokenizers_of("bert-crossencoder").pairs(instruction="Find it.")


@pytest.mark.parametrize("family", ["bert-crossencoder", "bert-seqcls"])
def test_token_types_tell_the_texts_apart_where_the_model_was_trained_so(tokenizers_of, family):
    rows = tokenizers_of(family).pairs()(["q"], ["d"])
    assert rows.token_type_ids.tolist() == [0, 0, 0, 1, 1]
    without = tokenizers_of(family, ("token_types", "false")).pairs()(["q"], ["d"])
    assert without.token_type_ids is None


def test_a_vocabulary_has_the_size_that_is_asked_for(tokenizers_of):
    tokenizers = tokenizers_of("bert-mean")
    tokens = tokenizers.tokenizer.convert_ids_to_tokens(list(range(tokenizers.num_tokens)))
    assert tokenizers.vocabulary(3) == tokens[:3]
    assert tokenizers.vocabulary(tokenizers.num_tokens + 1) == [*tokens, f"<id {tokenizers.num_tokens}>"]


def test_windows_divide_what_would_be_cut(tokenizers_of):
    tokenizers = tokenizers_of("bert-mean", max_length=12)
    windows = tokenizers.windows(overlap_tokens=2)(["the " * 18])
    assert windows.tokens.lengths.max() == 12
    # Ten tokens of text a window, two of which are repeated: 10, then 2 + 8.
    assert windows.num_text_tokens.tolist() == [10, 10]


def test_located_tokens_are_those_of_the_whole_text(tokenizers_of):
    located = tokenizers_of("bert-tokencls").located()(["the " * 18])
    assert located.num_tokens.tolist() == [18]


def test_the_vocabulary_names_every_id_and_those_without_a_token(tokenizers_of, tokenizer_of):
    tokenizers = tokenizers_of("bert-splade")
    known = tokenizer_of("bert-splade").get_vocab()
    assert tokenizers.num_tokens == len(known)
    assert tokenizers.vocabulary(len(known) + 2) == [
        *sorted(known, key=known.get),
        f"<id {len(known)}>",
        f"<id {len(known) + 1}>",
    ]
    assert tokenizers.vocabulary(3) == sorted(known, key=known.get)[:3]


def test_special_ids_are_those_of_the_tokenizer_in_order(tokenizers_of, tokenizer_of):
    tokenizer = tokenizer_of("bert-mean")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizers_of("bert-mean").special_ids == sorted(tokenizer.convert_tokens_to_ids(names))
