import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from poolembed.errors import PoolingError, UnknownPoolingError
from poolembed.poolers import (
    AllPool,
    CLSPool,
    ConcatPool,
    LastPool,
    MaxPool,
    MeanPool,
    MeanSqrtLenPool,
    SequencePoolingMethod,
    StepPool,
    TokenPoolingMethod,
    WeightedMeanPool,
    get_seq_pooling_method,
    get_tok_pooling_method,
)
from poolembed.poolers.methods.registry import ENTRY_POINT_GROUP, SEQUENCE_METHODS, PoolingMethodRegistry

SEQUENCE = {
    "CLS": CLSPool,
    "LAST": LastPool,
    "MEAN": MeanPool,
    "MAX": MaxPool,
    "MEAN_SQRT_LEN": MeanSqrtLenPool,
    "WEIGHTED_MEAN": WeightedMeanPool,
}


class FirstTwoPool(CLSPool):
    """Stands for a method of another package."""


def registry(*points, kind=SequencePoolingMethod):
    found = [EntryPoint(name=name, value=value, group=ENTRY_POINT_GROUP) for name, value in points]
    return PoolingMethodRegistry(kind, {"CLS": CLSPool}, installed=lambda: found)


@pytest.mark.parametrize(("name", "kind"), SEQUENCE.items())
def test_sequence_methods_by_name(name, kind):
    assert type(get_seq_pooling_method(name)) is kind


@pytest.mark.parametrize(("name", "kind"), [("ALL", AllPool), ("STEP", StepPool)])
def test_token_methods_by_name(name, kind):
    assert type(get_tok_pooling_method(name)) is kind


def test_a_sum_of_names_is_a_concatenation_in_that_order():
    method = get_seq_pooling_method("MAX+CLS+MEAN")
    assert type(method) is ConcatPool
    assert [type(part) for part in method.methods] == [MaxPool, CLSPool, MeanPool]


@pytest.mark.parametrize("name", ["FOO", "mean", "", "CLS+", "CLS+FOO", "ALL"])
def test_unknown_sequence_methods_are_refused_by_name(name):
    with pytest.raises(NotImplementedError, match=f"called '{name.split('+')[-1]}'"):
        get_seq_pooling_method(name)


@pytest.mark.parametrize("name", ["FOO", "CLS", "ALL+STEP"])
def test_unknown_token_methods_are_refused_by_name(name):
    with pytest.raises(NotImplementedError, match="no TokenPoolingMethod is called"):
        get_tok_pooling_method(name)


def test_a_near_miss_is_pointed_out():
    with pytest.raises(UnknownPoolingError, match=r"'MEANS', did you mean 'MEAN'\?.*known: CLS, LAST"):
        get_seq_pooling_method("MEANS")
    with pytest.raises(UnknownPoolingError, match=r"'MEAN_LEN', did you mean 'MEAN_SQRT_LEN'\? \(known"):
        get_seq_pooling_method("MEAN_LEN")
    with pytest.raises(UnknownPoolingError, match="is called 'XYZZY' "):
        get_seq_pooling_method("XYZZY")


def test_a_method_of_another_package_is_found():
    found = registry(("FIRST_TWO", f"{__name__}:FirstTwoPool")).create("FIRST_TWO")
    assert type(found) is FirstTwoPool


def test_the_entry_point_group_is_a_promise_to_other_packages():
    assert ENTRY_POINT_GROUP == "poolembed.pooling_methods"


def test_built_in_names_cannot_be_taken():
    assert type(registry(("CLS", f"{__name__}:FirstTwoPool")).create("CLS")) is CLSPool


def test_two_packages_with_one_name_are_refused():
    twice = registry(("X", f"{__name__}:FirstTwoPool"), ("X", "poolembed.poolers:LastPool"))
    with pytest.raises(PoolingError, match=r"'X' is brought by .*FirstTwoPool, poolembed.poolers:LastPool"):
        twice.create("X")


@pytest.mark.parametrize("value", ["no_such_package_here:Pool", "poolembed.poolers:NoSuchPool"])
def test_a_method_that_does_not_load_is_told(value):
    with pytest.raises(PoolingError, match=r"'X' .* does not load: ") as caught:
        registry(("X", value)).create("X")
    assert isinstance(caught.value.__cause__, ImportError | AttributeError)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("poolembed.poolers:AllPool", SequencePoolingMethod),
        ("poolembed.poolers:CLSPool", TokenPoolingMethod),
        ("poolembed.poolers:get_act_fn", SequencePoolingMethod),
    ],
)
def test_what_is_no_such_method_is_refused(value, kind):
    with pytest.raises(PoolingError, match=f"'X' .* is no {kind.__name__}"):
        registry(("X", value), kind=kind).create("X")


def test_each_call_gives_a_method_of_its_own():
    assert SEQUENCE_METHODS.create("MEAN") is not SEQUENCE_METHODS.create("MEAN")


def test_an_installed_package_brings_its_method(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "from poolembed.poolers import CLSPool\n\n\nclass TheirPool(CLSPool):\n    pass\n"
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nTHEIRS = theirs:TheirPool\n")
    code = (
        "from poolembed.poolers import check_pooling_method, get_seq_pooling_method\n"
        "check_pooling_method(get_seq_pooling_method('THEIRS'))\n"
        "print(type(get_seq_pooling_method('CLS+THEIRS').methods[1]).__name__)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "TheirPool"
