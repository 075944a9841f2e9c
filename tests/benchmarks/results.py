"""Results as the harness writes them, small and with figures that one can work out in the head."""

from benchmarks.figures import spread


def contestant(*seconds, **more):
    return {
        "seconds": spread(seconds),
        "batch_size": None,
        "load_s": 1.0,
        "peak_mb": 500.0,
        "versions": {"thing": "1.0"},
        **more,
    }


def workload(contestants, **more):
    return {
        "title": "Some texts",
        "model": "some-model",
        "num_rows": 100,
        "num_tokens": 2000,
        "flops": 4e9,
        "reference": "sentence-transformers",
        "skipped_contestants": {},
        "contestants": contestants,
        **more,
    }


def result(**more):
    return {
        "machine": {
            "cpu": "Some CPU",
            "flags": ["avx2"],
            "cores": 2,
            "cores_of_machine": 8,
            "memory_gib": 16.0,
            "system": "Linux 6.1",
            "python": "3.11.7",
            "date": "2026-11-30",
            "load_before": 0.1,
        },
        "settings": {"cores": [0, 1], "rounds": 5, "scale": 1.0, "options": []},
        **more,
    }


SAME = {"max_difference": 2e-7, "min_cosine": 1.0, "mean_cosine": 1.0}
