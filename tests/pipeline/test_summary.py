"""What a summary says in words."""

from poolembed.pipeline import RunSummary


def summary(**changes):
    values = {
        "command": "embed",
        "outputs": ("out.parquet",),
        "model": "m",
        "device": "cpu",
        "dtype": "float32",
        "int8_cosine": None,
        "workers": 1,
        "attention": "packed",
        "self_check": None,
        "num_rows": 1000,
        "num_computed": 1000,
        "num_reused": 0,
        "num_absent": 0,
        "num_removed": 0,
        "num_rejected": 0,
        "num_truncated": 0,
        "num_replaced": 0,
        "num_tokens": 8000,
        "load_s": 1.0,
        "run_s": 2.0,
        "read_s": 0.0,
        "tokenize_s": 0.0,
        "forward_s": 2.0,
        "pool_s": 0.125,
        "write_s": 0.0,
        "wait_s": 0.0,
    }
    return RunSummary(**values | changes)


def counts(**changes):
    return summary(**changes).lines()[0].partition(" in ")[0]


def test_a_plain_run_says_rows_and_tokens():
    assert counts() == "1,000 rows, 8,000 tokens"


def test_what_was_not_computed_is_said_with_its_reason():
    assert counts(num_computed=12, num_reused=988, num_removed=10) == (
        "1,000 rows, 8,000 tokens, 12 computed, 988 reused, 10 removed"
    )
    assert counts(num_computed=400) == "1,000 rows, 8,000 tokens, 600 with the text of another row"
    assert counts(num_computed=0, num_reused=1000) == "1,000 rows, 8,000 tokens, 1,000 reused"


def test_rows_that_share_a_text_are_in_the_json():
    assert summary(num_computed=400, num_reused=100).to_json()["num_shared"] == 500


def test_a_few_files_are_named_and_many_are_counted():
    parts = [f"out/part-{number:05d}.parquet" for number in range(4)]
    assert summary(outputs=tuple(parts[:3])).lines()[2:] == [f"-> {part}" for part in parts[:3]]
    assert summary(outputs=(*parts, "out.rejects.jsonl")).lines()[2:] == [
        "-> out/ (4 files)",
        "-> out.rejects.jsonl",
    ]
