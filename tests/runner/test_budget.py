"""The budget of tokens: the fastest by a trial that ends in time, and is held once."""

import itertools
import json

import pytest
import torch

from poolembed.runner.backbone import Backbone
from poolembed.runner.budget import CPU_CANDIDATES, TRIAL_S, choose_budget, fastest
from tests.runner.tiny import tiny


class Speed:
    """Seconds of a batch by its tokens, without a clock; remembers what it was asked."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.asked = []

    def __call__(self, tokens):
        self.asked.append(tokens)
        return self.seconds[tokens]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({10: 0.1, 20: 0.1, 40: 0.1}, 40),
        ({10: 0.1, 20: 0.15, 40: 0.5}, 20),
        ({10: 0.1, 20: 0.3, 40: 0.9}, 10),
        # Near equals: the smaller needs less memory.
        ({10: 0.1, 20: 0.196, 40: 0.39}, 10),
        # A dip in the middle does not hide what is faster behind it.
        ({10: 0.1, 20: 0.3, 40: 0.2}, 40),
        # What does not fit is never chosen.
        ({10: 0.1, 20: 0.1, 40: float("inf")}, 20),
    ],
)
def test_the_most_tokens_a_second_win(seconds, expected):
    assert fastest(tuple(seconds), Speed(seconds)) == expected


def test_the_trial_ends_when_its_time_is_spent():
    speed = Speed({10: TRIAL_S * 0.4, 20: TRIAL_S * 0.7, 40: 0.001})
    assert fastest((10, 20, 40), speed) == 20
    assert speed.asked == [10, 20]


def test_nothing_larger_is_tried_behind_what_does_not_fit():
    speed = Speed({10: 0.1, 20: float("inf"), 40: 0.001})
    assert fastest((10, 20, 40), speed) == 10
    assert speed.asked == [10, 20]


def test_where_nothing_fits_the_smallest_is_taken():
    assert fastest((10, 20), Speed({10: float("inf"), 20: float("inf")})) == 10


class Counting(Backbone):
    """Counts its batches; has room for so many tokens."""

    room = 10**9
    sizes = ()

    def forward(self, batch):
        type(self).sizes += (batch.num_tokens,)
        if batch.num_tokens > self.room:
            raise torch.OutOfMemoryError("no room")
        return super().forward(batch)


@pytest.fixture
def backbone_with():
    numbers = itertools.count()

    def make(room):
        kind = type(f"Counting{next(numbers)}", (Counting,), {"room": room, "sizes": (), "__slots__": ()})
        return kind(tiny("Bert"), torch.device("cpu"))

    return make


def choose(backbone, file, key="model"):
    return choose_budget(backbone, key, max_length=64, token_id=5, file=file)


def test_a_choice_is_one_of_the_candidates_and_is_not_tried_again(backbone_with, tmp_path):
    file = tmp_path / "deep" / "budgets.json"
    first = backbone_with(room=2100)
    assert choose(first, file) in (1024, 2048)
    # Each size runs twice: once to warm up, once for the clock. Rows are whole, so 4096 did not fit.
    assert set(first.sizes) <= {1024, 2048, 4096}
    second = backbone_with(room=10**9)
    assert choose(second, file) == choose(first, file)
    assert second.sizes == ()


def test_another_model_has_a_choice_of_its_own(backbone_with, tmp_path):
    file = tmp_path / "budgets.json"
    choose(backbone_with(room=1100), file)
    other = backbone_with(room=1100)
    assert choose(other, file, key="other") == 1024
    assert other.sizes
    assert len(json.loads(file.read_text("utf-8"))) == 2


def test_a_choice_names_device_threads_and_torch(backbone_with, tmp_path):
    file = tmp_path / "budgets.json"
    choose(backbone_with(room=1100), file)
    (key,) = json.loads(file.read_text("utf-8"))
    assert key == f"model cpu {torch.get_num_threads()} threads torch-{torch.__version__}"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", '{"x": "y"}', '{"KEY": -3}', '{"KEY": 1.5}', '{"KEY": 512}']
)
def test_a_damaged_memory_is_written_anew(backbone_with, tmp_path, content):
    file = tmp_path / "budgets.json"
    key = f"model cpu {torch.get_num_threads()} threads torch-{torch.__version__}"
    file.write_text(content.replace("KEY", key), "utf-8")
    budget = choose(backbone_with(room=1100), file)
    assert budget == 1024
    assert json.loads(file.read_text("utf-8")) == {key: 1024}


def test_a_memory_that_cannot_be_written_is_no_error(backbone_with, tmp_path):
    (tmp_path / "file").write_text("in the way", "utf-8")
    assert choose(backbone_with(room=1100), tmp_path / "file" / "budgets.json") in CPU_CANDIDATES


def test_rows_are_no_longer_than_the_model_takes(tmp_path):
    class Strict(Counting):
        __slots__ = ()

        def forward(self, batch):
            assert batch.lengths.max() <= 40
            return super().forward(batch)

    backbone = Strict(tiny("Bert"), torch.device("cpu"))
    assert choose_budget(backbone, "m", max_length=40, token_id=5, file=tmp_path / "b") in CPU_CANDIDATES
