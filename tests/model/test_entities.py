"""Entities are those of transformers' pipeline, and long texts give what a whole reading of them would."""

import itertools
import json
import warnings

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

from poolembed.config import AGGREGATIONS, EntityConfig, ModelConfig
from poolembed.errors import ConfigError
from poolembed.model import entities as module
from poolembed.model.entities import check_entities, make_entities
from poolembed.runner import describe_model, load_runner
from tests.model.failing import FailingRunner

FAMILIES = ("bert-tokencls", "modernbert-tokencls", "roberta-tokencls")
TOLERANCE = 1e-5

TEXTS = [
    "Zoë  O'Neil-Smith\tmet 東京都 and Łódź; e-mail: a.b@c.de 🙂 end",
    "a\u0301b U\u0308ber naïve ﬁne",
    "   leading and trailing   ",
    "x",
]


def found(runner, texts, on_batch=None, **config):
    """The entities of each text as dicts, and the outcome."""
    check_entities(runner.spec)
    operation = make_entities(runner, EntityConfig(**config))
    outcome = operation.compute(operation.tokenize({"text": texts}), on_batch)
    column = outcome.columns["entities"]
    names = ("label", "score", "start", "end", "text")
    entities = [
        dict(zip(names, values, strict=True))
        for values in zip(*(column.values[name] for name in names), strict=True)
    ]
    ends = np.cumsum(column.lengths)
    return [entities[end - length : end] for end, length in zip(ends, column.lengths, strict=True)], outcome


def assert_equal(ours, theirs):
    """Compare with what a pipeline gives."""
    label = [entity.get("entity_group", entity.get("entity")) for entity in theirs]
    assert [entity["label"] for entity in ours] == label
    assert [(entity["start"], entity["end"]) for entity in ours] == [(e["start"], e["end"]) for e in theirs]
    np.testing.assert_allclose([e["score"] for e in ours], [e["score"] for e in theirs], atol=TOLERANCE)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_entities_are_those_of_the_reference(family, aggregation, zoo, runner_of, inputs_of):
    lines = (zoo / "expected" / f"{family}.entities.jsonl").read_text("utf-8").splitlines()
    wanted = {
        row["id"]: row["entities"]
        for row in map(json.loads, lines)
        if row["aggregation_strategy"] == aggregation
    }
    texts = {row["id"]: row["text"] for row in inputs_of("spans") if row["id"] in wanted}
    assert len(texts) == 11
    ours, outcome = found(runner_of(family), list(texts.values()), aggregation=aggregation)
    assert outcome.failures == {}
    for name, entities in zip(texts, ours, strict=True):
        assert_equal(entities, wanted[name])


@pytest.fixture(scope="module")
def pipelines(zoo):
    """Return transformers' pipeline for a family and a strategy."""

    def make(family, aggregation):
        folder = zoo / "models" / family
        return pipeline(
            "token-classification",
            model=AutoModelForTokenClassification.from_pretrained(folder),
            tokenizer=AutoTokenizer.from_pretrained(folder),
            aggregation_strategy=aggregation,
            device="cpu",
        )

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_characters_of_any_kind_are_counted_as_the_pipeline_counts_them(family, pipelines, runner_of):
    for aggregation in ("none", "average"):
        ours, _ = found(runner_of(family), TEXTS, aggregation=aggregation)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = pipelines(family, aggregation)(TEXTS)
        for text, mine, reference in zip(TEXTS, ours, theirs, strict=True):
            assert_equal(mine, reference)
            assert [e["text"] for e in mine] == [text[e["start"] : e["end"]] for e in mine]


def by_windows(folder, text, max_length, overlap):
    """The label of each token of a long text, from windows cut by hand: [(start, end, label)]."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, spans = whole["input_ids"], whole["offset_mapping"]
    room = max_length - 2
    starts = [
        start for start in range(0, len(ids), room - overlap) if start == 0 or start + overlap < len(ids)
    ]
    chosen = []
    for index, (_, _) in enumerate(spans):
        # The window whose nearer edge, if it is not that of the text, is farthest.
        def distance(start, index=index):
            end = min(start + room, len(ids))
            left = index - start if start else len(ids)
            right = end - 1 - index if end < len(ids) else len(ids)
            return min(left, right) if start <= index < end else -1

        chosen.append(max(starts, key=distance))
    labels = []
    for index, start in enumerate(chosen):
        window = ids[start : start + room]
        row = torch.tensor([[tokenizer.cls_token_id, *window, tokenizer.sep_token_id]])
        with torch.no_grad():
            logits = model(row).logits[0, 1 + index - start]
        labels.append((*spans[index], model.config.id2label[int(logits.argmax())]))
    return labels


@pytest.mark.parametrize("overlap", [0, 2, 5])
def test_a_long_text_is_read_in_windows_each_token_where_it_has_most_context(overlap, zoo):
    folder = zoo / "models" / "bert-tokencls"
    text = "Angela Merkel was born in Hamburg and met Jane O'Neil-Smith of Acme Corp. in Leipzig"
    model = ModelConfig(model=str(folder), device="cpu", max_length=12)
    runner = load_runner(model, batch_tokens=512)
    [ours], outcome = found(runner, [text], aggregation="none", overlap_tokens=overlap)
    wanted = [token for token in by_windows(folder, text, 12, overlap) if token[2] != "O"]
    assert [(e["start"], e["end"], e["label"]) for e in ours] == wanted
    assert not outcome.truncated.any()
    assert outcome.num_tokens[0] > 12


def test_an_entity_across_the_edge_of_windows_is_found_once(zoo):
    text = " ".join(["Angela"] * 40)
    model = ModelConfig(model=str(zoo / "models" / "bert-tokencls"), device="cpu", max_length=16)
    [ours], _ = found(load_runner(model, batch_tokens=512), [text], aggregation="simple")
    starts = [entity["start"] for entity in ours]
    assert starts == sorted(set(starts))
    assert all(left["end"] <= right["start"] for left, right in itertools.pairwise(ours))


def test_windows_do_not_change_a_text_that_fits(zoo, runner_of, inputs_of):
    texts = [row["text"] for row in inputs_of("spans")][:4]
    assert (
        found(runner_of("bert-tokencls"), texts)[0]
        == found(runner_of("bert-tokencls"), texts, overlap_tokens=100)[0]
    )


def test_texts_do_not_depend_on_those_around_them(runner_of):
    together, outcome = found(runner_of("roberta-tokencls"), TEXTS, aggregation="max")
    for row, text in enumerate(TEXTS):
        [alone], single = found(runner_of("roberta-tokencls"), [text], aggregation="max")
        assert [e["start"] for e in alone] == [e["start"] for e in together[row]]
        assert single.num_tokens[0] == outcome.num_tokens[row]


def test_texts_without_entities_have_empty_lists(runner_of):
    ours, outcome = found(runner_of("bert-tokencls"), ["", "Angela Merkel", ""])
    assert [len(entities) > 0 for entities in ours] == [False, True, False]
    assert outcome.failures == {}
    assert found(runner_of("bert-tokencls"), [])[0] == []
    assert found(runner_of("bert-tokencls"), ["", ""])[0] == [[], []]


def test_a_text_of_which_a_window_failed_has_no_entities_and_the_others_keep_theirs(zoo):
    model = ModelConfig(model=str(zoo / "models" / "bert-tokencls"), device="cpu", max_length=12)
    runner = load_runner(model, batch_tokens=512)
    texts = ["Angela Merkel was born in Hamburg and met Jane", "Acme Corp.", "Leipzig"]
    whole, _ = found(runner, texts)
    ours, outcome = found(FailingRunner(runner), texts)
    assert {text: failure.code for text, failure in outcome.failures.items()} == {0: "non_finite"}
    assert ours[0] == []
    assert ours[1:] == whole[1:]


def test_progress_is_told_in_rows(runner_of):
    told = []
    found(runner_of("bert-tokencls"), TEXTS, lambda rows, tokens: told.append((rows, tokens)))
    assert sum(rows for rows, _ in told) == len(TEXTS)


def test_texts_are_computed_in_blocks_of_bounded_size():
    blocks = list(module.blocks_of(np.asarray([3, 4, 100, 1, 0, 2]), 2, most=16))
    assert blocks == [(0, 2), (2, 3), (3, 6)]
    assert list(module.blocks_of(np.zeros(0, np.int64), 2, most=16)) == []


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("bert-mean", "cannot token_classify"),
        ("bert-seqcls", "cannot token_classify"),
        ("qwen2-prm", "is a model of kind 'process-reward', whose tokens have no classes"),
        ("xlmroberta-bge-m3", "is a model of kind 'embedding', whose tokens have no classes"),
    ],
)
def test_a_model_without_classes_for_tokens_is_refused_before_it_is_loaded(family, message, zoo):
    _, spec = describe_model(ModelConfig(model=str(zoo / "models" / family)))
    with pytest.raises(ConfigError, match=message):
        check_entities(spec)


def test_windows_without_room_for_their_overlap_are_refused(runner_of):
    with pytest.raises(ConfigError, match="cannot overlap by 510") as caught:
        make_entities(runner_of("bert-tokencls"), EntityConfig(overlap_tokens=510))
    assert caught.value.hint == "--overlap-tokens must be below 510"


def test_bad_values_are_all_told():
    assert EntityConfig(aggregation="best", overlap_tokens=-1).check() == [
        "--aggregation must be one of none, simple, first, average, max, got 'best'",
        "--overlap-tokens must be at least 0, got -1",
    ]


def test_the_metadata_tell_how_entities_were_found(runner_of):
    metadata = make_entities(runner_of("bert-tokencls"), EntityConfig(aggregation="max")).metadata
    assert (metadata["aggregation"], metadata["overlap_tokens"]) == ("max", "127")
