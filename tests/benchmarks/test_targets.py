"""Targets: which figure a result gives, and whether it is met."""

import pytest

from benchmarks.targets import TARGETS
from tests.benchmarks.results import SAME, contestant, result, workload

OFF = {"max_difference": 1e-3, "min_cosine": 0.999, "mean_cosine": 0.9995}


def docstrings(**contestants):
    found = {key.replace("_", "-"): entry for key, entry in contestants.items()}
    return result(workloads={"docstrings": workload(found)})


def test_nothing_measured_meets_nothing():
    assert {target.verdict(result()) for target in TARGETS.values()} == {"not measured"}


def test_a_ratio_is_the_median_of_the_rounds():
    seen = docstrings(
        poolembed=contestant(1.0, 2.0, 1.0, vectors=SAME), sentence_transformers=contestant(3.0, 4.0, 1.5)
    )
    target = TARGETS["docstrings-sentence-transformers"]
    assert target.seen(seen) == {"poolembed": 2.0}
    assert target.verdict(seen) == "met"


def test_other_vectors_do_not_count_however_fast():
    seen = docstrings(poolembed=contestant(0.1, vectors=OFF), sentence_transformers=contestant(3.0))
    assert TARGETS["docstrings-sentence-transformers"].verdict(seen) == "missed: vectors too far"


@pytest.mark.parametrize(("took", "verdict"), [(1.9, "missed"), (1.1, "met")])
def test_a_target_is_missed_below_its_figure(took, verdict):
    seen = docstrings(poolembed=contestant(took, vectors=SAME), vllm=contestant(2.0))
    assert TARGETS["docstrings-vllm"].verdict(seen) == verdict


def test_the_share_of_the_ceiling_is_work_by_time_by_rate():
    ceiling = contestant(1.0, 1.0, flops_per_s={"values": [4e9, 8e9]})
    seen = docstrings(command=contestant(2.0, 1.0), ceiling=ceiling)
    assert TARGETS["ceiling"].seen(seen) == {"command": 50.0}


def test_int8_must_be_as_near_as_theirs():
    theirs = contestant(2.0, vectors={**OFF, "mean_cosine": 0.99})
    near = docstrings(poolembed_int8=contestant(1.0, vectors=OFF), onnx_int8=theirs)
    far = docstrings(poolembed_int8=contestant(1.0, vectors={**OFF, "mean_cosine": 0.98}), onnx_int8=theirs)
    assert TARGETS["docstrings-onnx-int8"].verdict(near) == "met"
    assert TARGETS["docstrings-onnx-int8"].verdict(far) == "missed: vectors too far"


def test_the_tiny_model_is_compared_with_tokenizers_alone():
    found = {"command": contestant(2.0), "tokenizers": contestant(1.0)}
    assert TARGETS["tokenizers"].seen(result(workloads={"tiny": workload(found)})) == {"command": 50.0}


def test_memory_and_startup_must_be_small():
    seen = result(
        startup={"imports": contestant(2.0), "poolembed": contestant(3.0)},
        memory_at_defaults={"peak_mb": 650.0, "model_mb": 90.0},
        memory_by_rows={"runs": [{"peak_mb": 400.0}, {"peak_mb": 500.0}]},
    )
    assert TARGETS["startup"].verdict(seen) == "missed"
    assert TARGETS["memory"].verdict(seen) == "met"
    assert TARGETS["memory-by-rows"].seen(seen) == {"command": 1.25}
    assert TARGETS["memory-by-rows"].verdict(seen) == "missed"


def test_writing_is_a_share_of_the_run():
    seen = docstrings(command=contestant(2.0, phases={"write_s": 0.1, "run_s": 2.0}))
    assert TARGETS["writing"].seen(seen) == {"command": 5.0}
