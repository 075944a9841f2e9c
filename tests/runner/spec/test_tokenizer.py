import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from poolembed.runner.spec.document import Document
from poolembed.runner.spec.tokenizer import Vocabulary


@pytest.mark.parametrize(
    ("config", "stored", "model_type", "side"),
    [
        ({"padding_side": "left"}, None, "bert", "left"),
        ({"padding_side": "right", "tokenizer_class": "GemmaTokenizer"}, None, "gemma", "right"),
        ({"tokenizer_class": "GemmaTokenizerFast"}, None, "gemma", "left"),
        ({"tokenizer_class": "LlamaTokenizer"}, None, "llama", "left"),
        ({"tokenizer_class": "LlamaTokenizer"}, None, "mistral", "right"),
        ({"tokenizer_class": "BertTokenizer"}, {"direction": "Left"}, "bert", "left"),
        ({"tokenizer_class": "BertTokenizer"}, {"direction": "Right"}, "bert", "right"),
        ({}, None, "bert", "right"),
    ],
)
def test_padding_side_is_the_files_then_the_class(bert, config, stored, model_type, side):
    bert.write("tokenizer_config.json", config).edit("tokenizer.json", padding=stored).config(
        model_type=model_type
    )
    assert read_spec(bert.path).padding_side == side


def test_a_side_that_does_not_exist_is_an_error(bert):
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: padding_side is 'top'"):
        read_spec(bert.edit("tokenizer_config.json", padding_side="top").path)


@pytest.mark.parametrize(
    ("processor", "template", "has_types"),
    [
        (None, "$A", False),
        ({"type": "ByteLevel"}, "$A", False),
        ({"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}, "<s> $A </s>", False),
        ({"type": "BertProcessing", "cls": ["[CLS]", 0], "sep": ["[SEP]", 2]}, "[CLS] $A [SEP]", True),
        ({"type": "BertProcessing"}, "? $A ?", True),
        ({"type": "TemplateProcessing", "single": [{}], "pair": []}, "?", False),
        (
            {
                "type": "Sequence",
                "processors": [
                    {"type": "ByteLevel"},
                    {
                        "type": "TemplateProcessing",
                        "single": [
                            {"Sequence": {"id": "A", "type_id": 0}},
                            {"SpecialToken": {"id": "<e>", "type_id": 0}},
                        ],
                        "pair": [{"Sequence": {"id": "B", "type_id": 1}}],
                    },
                ],
            },
            "$A <e>",
            True,
        ),
    ],
)
def test_frame_and_token_types_come_from_the_post_processor(bert, processor, template, has_types):
    spec = read_spec(bert.edit("tokenizer.json", post_processor=processor).path)
    assert (spec.tokenizer.single_template, spec.token_types) == (template, has_types)


@pytest.mark.parametrize(
    ("inputs", "has_types"), [(["input_ids"], False), (["input_ids", "token_type_ids"], True)]
)
def test_declared_inputs_decide_about_token_types(bert, inputs, has_types):
    spec = read_spec(bert.edit("tokenizer_config.json", model_input_names=inputs).path)
    assert spec.token_types is has_types
    assert spec.sources["token_types"] == "tokenizer_config.json: model_input_names"


@pytest.mark.parametrize(
    ("declared", "usable"),
    [(512, 512), (1e30, None), (10**30, None), (float("inf"), None), (0, None), (None, None), (512.0, 512)],
)
def test_sentinels_are_no_length(bert, declared, usable):
    spec = read_spec(bert.edit("tokenizer_config.json", model_max_length=declared).path)
    assert spec.tokenizer.model_max_length == usable


def vocabulary(vocab, *added):
    return Vocabulary(Document("tokenizer.json", {"model": {"vocab": vocab}, "added_tokens": list(added)}))


@pytest.mark.parametrize("vocab", [{"a": 0, "b": 1}, [["a", -0.5], ["b", -1.0]]])
def test_tokens_are_found_by_text_and_by_id(vocab):
    tokens = vocabulary(vocab, {"id": 1, "content": "b"}, {"id": 2, "content": "<c>"}, {"id": 3})
    assert len(tokens) == 3
    assert [tokens.token_id(text) for text in ("a", "b", "<c>", "d")] == [0, 1, 2, None]
    assert [tokens.token(number) for number in (0, 2, 9)] == ["a", "<c>", None]
    assert tokens.require(["b", "<c>"], "x") == (1, 2)
    with pytest.raises(ModelError, match=r"x needs 'd' as one token"):
        tokens.require(["a", "d"], "x")


@pytest.mark.parametrize("entry", [{"a": 1}, [], "a"])
def test_a_vocabulary_of_another_form_is_an_error(entry):
    with pytest.raises(ModelError, match=r"model: vocab is .*expected a list of \[token, score\] pairs"):
        vocabulary([["a", -1.0], entry])


def test_no_file_is_no_token():
    assert len(Vocabulary(Document("tokenizer.json", {}))) == 0
