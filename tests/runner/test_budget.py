"""Workers and tokens of a batch: the fastest by trials that end in time, and are held once."""

import itertools
import json
from typing import ClassVar

import pytest
import torch

from poolembed.runner.backbone import Backbone
from poolembed.runner.budget import CPU_CANDIDATES, TRIAL_S, Trials, fastest
from poolembed.runner.workers import ALONE, Workers
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
        ({10: 0.1, 20: 0.184, 40: 0.37}, 10),
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


def trials(backbone, file, key="model", max_length=64):
    return Trials(backbone=backbone, key=key, max_length=max_length, token_id=5, file=file)


def choose(backbone, file, key="model"):
    return trials(backbone, file, key).batch_tokens(ALONE)


KEY = f"model cpu 1 threads torch-{torch.__version__} batch tokens of 1 threads"


@pytest.fixture(autouse=True)
def one_thread():
    """Compute with one thread, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_choice_is_one_of_the_candidates_and_is_not_tried_again(backbone_with, tmp_path):
    file = tmp_path / "deep" / "budgets.json"
    first = backbone_with(room=2100)
    assert choose(first, file) in (1024, 2048)
    # Rows are whole, so 4096 did not fit.
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
    assert key == KEY


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"KEY": -3}', '{"KEY": 1.5}', '{"KEY": 512}'])
def test_a_damaged_memory_is_written_anew(backbone_with, tmp_path, content):
    file = tmp_path / "budgets.json"
    file.write_text(content.replace("KEY", KEY), "utf-8")
    budget = choose(backbone_with(room=1100), file)
    assert budget == 1024
    assert json.loads(file.read_text("utf-8")) == {KEY: 1024}


def test_what_others_wrote_down_is_kept(backbone_with, tmp_path):
    file = tmp_path / "budgets.json"
    file.write_text('{"x": "y"}', "utf-8")
    assert choose(backbone_with(room=1100), file) == 1024
    assert json.loads(file.read_text("utf-8")) == {"x": "y", KEY: 1024}


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
    assert trials(backbone, tmp_path / "b", max_length=40).batch_tokens(ALONE) in CPU_CANDIDATES


class Paced(Backbone):
    """Takes so many seconds for a batch by the threads that compute it, on a clock of its own."""

    __slots__ = ()
    seconds: ClassVar[dict[int, float]] = {}
    clock = 0.0

    def forward(self, batch):
        type(self).clock += self.seconds[torch.get_num_threads()]
        return torch.zeros(1)


@pytest.fixture
def paced(monkeypatch):
    """A model for which a batch takes so many seconds with one thread, and with all two."""
    numbers = itertools.count()

    def make(with_one, with_two):
        kind = type(
            f"Paced{next(numbers)}", (Paced,), {"seconds": {1: with_one, 2: with_two}, "__slots__": ()}
        )
        monkeypatch.setattr("poolembed.runner.budget.time.perf_counter", lambda: kind.clock)
        torch.set_num_threads(2)
        return kind(tiny("Bert"), torch.device("cpu"))

    return make


# On this clock two threads do not go at the same time, so that two workers take two batches' time.
@pytest.mark.parametrize(("with_one", "with_two", "number"), [(1.0, 1.2, 2), (1.0, 0.95, 2), (1.0, 0.5, 1)])
def test_one_worker_must_be_faster_to_be_taken_alone(paced, tmp_path, with_one, with_two, number):
    model = paced(with_one, with_two)
    file = tmp_path / "budgets.json"
    assert trials(model, file).workers(None) == Workers(number, 3 - number)
    assert torch.get_num_threads() == 2
    assert list(json.loads(file.read_text("utf-8")).values()) == [number]
    other = paced(1.0, 0.5)
    assert trials(other, file).workers(None).number == number
    assert type(other).clock == 0


def test_a_number_that_was_asked_for_is_not_tried(paced, tmp_path):
    model = paced(1.0, 0.5)
    assert trials(model, tmp_path / "b").workers(2) == Workers(2, 1)
    assert type(model).clock == 0


def test_a_budget_is_tried_with_the_threads_of_one_worker(paced, tmp_path):
    class Seen(Paced):
        __slots__ = ()
        threads: ClassVar[set[int]] = set()

        def forward(self, batch):
            self.threads.add(torch.get_num_threads())
            return torch.zeros(1)

    torch.set_num_threads(4)
    backbone = Seen(tiny("Bert"), torch.device("cpu"))
    assert trials(backbone, tmp_path / "b").batch_tokens(Workers(2, 2)) in CPU_CANDIDATES
    assert Seen.threads == {2}
    assert torch.get_num_threads() == 4
