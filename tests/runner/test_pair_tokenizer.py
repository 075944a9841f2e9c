"""Pairs have the tokens that transformers gives them, and prompts keep what follows the document."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.pair_tokenizer import PairLimits, PairTokenizer, TemplateTokenizer, longest_first
from poolembed.runner.spec import PairTemplate
from poolembed.runner.spec.templates import BUILT_IN

# Frames: [CLS] a [SEP] b [SEP]; <s> a </s></s> b </s>; <s> a <s> b; a </s> b </s>; none.
KINDS = [
    "bert-crossencoder",
    "roberta-seqcls",
    "xlmroberta-crossencoder",
    "modernbert-cls",
    "llama-last",
    "t5-encoder-mean",
    "qwen3-seqcls",
]

TEXT = st.builds(
    lambda unit, count, tail: (unit * count + tail).encode("utf-8", "replace").decode("utf-8"),
    st.sampled_from(["", "the cat ", "a-b ", "日本", "naïve\n", "x"]),
    st.integers(0, 30),
    st.text(max_size=12),
)


def by_removal(first, second, room):
    """The strategy as transformers describes it: token by token, from the longer text.

    Where both are equal, tokens leave in turns, so that the second text never ends up shorter by more
    than the odd token.
    """
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def rows_of(tokenized):
    return [row.tolist() for row in np.split(tokenized.token_ids, np.cumsum(tokenized.lengths)[:-1])]


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 100))
def test_the_longer_text_is_cut_first(first, second, room):
    kept = longest_first(first, second, room)
    removed = by_removal(first, second, room)
    assert sum(kept) == sum(removed) == min(first + second, room)
    # Who gets the odd token of two equal halves differs between transformers and tokenizers.
    assert max(abs(kept[0] - removed[0]), abs(kept[1] - removed[1])) <= 1
    assert kept[0] <= first
    assert kept[1] <= second


def test_a_room_below_nothing_holds_nothing():
    assert longest_first(3, 4, -1) == (0, 0)


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tokenizer_of):
    return tokenizer_of(request.param)


@settings(max_examples=40, deadline=None)
@given(
    query=TEXT,
    document=TEXT,
    max_length=st.sampled_from([8, 17, 24, 64]),
    side=st.sampled_from(["right", "left"]),
)
def test_a_pair_has_the_tokens_that_transformers_gives(kind, query, document, max_length, side):
    kind.truncation_side = side
    rows = PairTokenizer(kind, PairLimits(max_length=max_length), token_types=True)([query], [document])
    # As a list, since transformers takes a lone empty text for none.
    expected = kind(
        [query], [document], truncation="longest_first", max_length=max_length, return_token_type_ids=True
    )
    assert rows.token_ids.tolist() == expected["input_ids"][0]
    types = expected["token_type_ids"][0]
    assert (rows.token_type_ids is not None and rows.token_type_ids.tolist() == types) or not any(types)
    whole = kind([query], [document])["input_ids"][0]
    assert rows.truncated.tolist() == [len(whole) > max_length]


def test_pairs_keep_their_order_and_share_texts(tokenizer_of):
    tokenizer = tokenizer_of("bert-crossencoder")
    queries, documents = ["one", "two", "one"], ["a b c", "one", "d"]
    rows = PairTokenizer(tokenizer, PairLimits(max_length=32), token_types=True)(queries, documents)
    expected = tokenizer(queries, documents)
    assert rows_of(rows) == expected["input_ids"]
    assert rows.token_type_ids.tolist() == [kind for row in expected["token_type_ids"] for kind in row]


def test_a_model_without_token_types_gets_none(tokenizer_of):
    tokenizer = tokenizer_of("bert-crossencoder")
    rows = PairTokenizer(tokenizer, PairLimits(max_length=32), token_types=False)(["one"], ["two"])
    assert rows.token_type_ids is None


def test_no_pairs_are_no_rows(tokenizer_of):
    rows = PairTokenizer(tokenizer_of("bert-crossencoder"), PairLimits(max_length=32), token_types=True)(
        [], []
    )
    assert (len(rows.token_ids), len(rows.lengths), len(rows.truncated)) == (0, 0, 0)


@pytest.mark.parametrize("side", ["right", "left"])
def test_each_text_may_have_a_limit_of_its_own(tokenizer_of, side):
    tokenizer = tokenizer_of("bert-crossencoder")
    tokenizer.truncation_side = side
    limits = PairLimits(max_length=64, max_query_tokens=2, max_document_tokens=3)
    rows = PairTokenizer(tokenizer, limits, token_types=True)(["a b c d", "a"], ["e f g h", "e f g"])
    ids = tokenizer.convert_tokens_to_ids
    kept = (["a", "b"], ["e", "f", "g"]) if side == "right" else (["c", "d"], ["f", "g", "h"])
    assert rows_of(rows) == [
        ids(["[CLS]", *kept[0], "[SEP]", *kept[1], "[SEP]"]),
        ids(["[CLS]", "a", "[SEP]", "e", "f", "g", "[SEP]"]),
    ]
    assert rows.truncated.tolist() == [True, False]


def test_a_length_without_room_for_text_is_refused(tokenizer_of):
    with pytest.raises(ConfigError, match="has no room for text beside 3 special tokens") as caught:
        PairTokenizer(tokenizer_of("bert-crossencoder"), PairLimits(max_length=3), token_types=True)
    assert "at least 4" in str(caught.value)


TEMPLATES = [PairTemplate(name=name, jinja=jinja) for name, jinja in BUILT_IN.items()]


def prompt(tokenizer, template, query, document, **variables):
    """The whole prompt, by transformers."""
    messages = [{"role": "query", "content": query}, {"role": "document", "content": document}]
    return tokenizer.apply_chat_template(
        messages, chat_template=template.jinja, tokenize=False, **{**template.kwargs, **variables}
    )


def rendered(tokenizer, template, query, document, **variables):
    """Tokens of the whole prompt."""
    return tokenizer(prompt(tokenizer, template, query, document, **variables), verbose=False)["input_ids"]


@pytest.mark.parametrize("family", ["qwen3-causal-reranker", "llama-last", "gemma3-bidirectional"])
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_prompt_that_fits_has_the_tokens_of_the_rendered_text(tokenizer_of, family, template):
    tokenizer = tokenizer_of(family)
    rows = TemplateTokenizer(tokenizer, PairLimits(max_length=4096), template)(
        ["what is it?", ""], ["  a thing\n", ""]
    )
    assert rows_of(rows) == [
        rendered(tokenizer, template, "what is it?", "  a thing\n"),
        rendered(tokenizer, template, "", ""),
    ]
    assert rows.truncated.tolist() == [False, False]


@pytest.mark.parametrize("family", ["qwen3-causal-reranker", "llama-last", "gemma3-bidirectional"])
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_prompt_that_is_too_long_loses_the_end_of_its_document_alone(tokenizer_of, family, template):
    tokenizer = tokenizer_of(family)
    document = " ".join(["the cat sat on the mat."] * 200) + " end"
    whole = rendered(tokenizer, template, "what is it?", document)
    ending = prompt(tokenizer, template, "what is it?", document).partition(document)[2]
    # Some tokenizers end every text with a token; the one that they begin with stands before the prompt.
    ending_ids = [token for token in tokenizer(ending)["input_ids"] if token != tokenizer.bos_token_id]
    max_length = len(rendered(tokenizer, template, "what is it?", "")) + 100
    rows = TemplateTokenizer(tokenizer, PairLimits(max_length=max_length), template)(
        ["what is it?"], [document]
    )
    ids = rows.token_ids.tolist()
    assert len(ids) == max_length
    assert ids[: -len(ending_ids)] == whole[: max_length - len(ending_ids)]
    assert ids[-len(ending_ids) :] == ending_ids
    assert rows.truncated.tolist() == [True]


def test_a_prompt_takes_an_instruction(tokenizer_of):
    tokenizer, template = tokenizer_of("qwen3-causal-reranker"), TEMPLATES[0]
    tokenize = TemplateTokenizer(tokenizer, PairLimits(max_length=4096), template, "Find the song.")
    expected = rendered(tokenizer, template, "q", "d", instruction="Find the song.")
    assert rows_of(tokenize(["q"], ["d"])) == [expected]
    assert expected != rendered(tokenizer, template, "q", "d")


def test_a_prompt_takes_the_variables_of_its_checkpoint(tokenizer_of):
    tokenizer = tokenizer_of("qwen3-causal-reranker")
    template = PairTemplate(name="own", jinja=BUILT_IN["qwen3-reranker"], kwargs={"instruction": "Judge."})
    expected = rendered(tokenizer, template, "q", "d", instruction="Judge.")
    assert rows_of(TemplateTokenizer(tokenizer, PairLimits(max_length=4096), template)(["q"], ["d"])) == [
        expected
    ]


@pytest.mark.parametrize(
    "document", ["the cat sat on the mat. " * 40, "x" * 3000, " " * 900 + "the cat " * 30]
)
def test_the_texts_of_a_prompt_may_have_limits_of_their_own(tokenizer_of, document):
    tokenizer, template = tokenizer_of("qwen3-causal-reranker"), TEMPLATES[0]
    limits = PairLimits(max_length=4096, max_query_tokens=2, max_document_tokens=5)
    rows = TemplateTokenizer(tokenizer, limits, template)(["the cat sat on", "the"], [document, "mat"])
    query_ids = tokenizer("the cat sat on", add_special_tokens=False)["input_ids"][:2]
    document_ids = tokenizer(document, add_special_tokens=False)["input_ids"][:5]
    assert rows_of(rows)[0] == rendered(
        tokenizer, template, tokenizer.decode(query_ids), tokenizer.decode(document_ids)
    )
    assert rows_of(rows)[1] == rendered(tokenizer, template, "the", "mat")
    assert rows.truncated.tolist() == [True, False]


@pytest.mark.parametrize("blanks", [1, 5000])
def test_a_text_is_cut_at_its_limit_and_not_before(tokenizer_of, blanks):
    tokenizer, template = tokenizer_of("bert-mean"), TEMPLATES[2]
    words = [word for word in tokenizer.get_vocab() if word.isalpha() and len(word) > 4]
    document = words[0] + " " * blanks + " ".join(words[1:] * 20)
    for max_tokens in range(1, 12):
        limits = PairLimits(max_length=4096, max_document_tokens=max_tokens)
        rows = TemplateTokenizer(tokenizer, limits, template)(["q"], [document])
        assert rows_of(rows) == [rendered(tokenizer, template, "q", " ".join(words[:max_tokens]))]


def test_a_prompt_without_room_for_text_is_refused(tokenizer_of):
    tokenizer, template = tokenizer_of("qwen3-causal-reranker"), TEMPLATES[0]
    size = len(rendered(tokenizer, template, "", ""))
    with pytest.raises(ConfigError, match=f"no room for text beside {size} tokens of its prompt"):
        TemplateTokenizer(tokenizer, PairLimits(max_length=size), template)


def test_a_prompt_without_a_place_for_the_document_is_refused(tokenizer_of):
    template = PairTemplate(name="odd", jinja="{{ messages[0].content }}")
    with pytest.raises(ModelError, match="the prompt 'odd' has no place for the document"):
        TemplateTokenizer(tokenizer_of("qwen3-causal-reranker"), PairLimits(max_length=64), template)


def test_no_pairs_need_no_prompts(tokenizer_of):
    tokenize = TemplateTokenizer(
        tokenizer_of("qwen3-causal-reranker"), PairLimits(max_length=4096), TEMPLATES[0]
    )
    assert len(tokenize([], []).lengths) == 0
