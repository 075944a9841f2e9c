"""docs/output.md names the columns and the metadata that a run writes, all of them and no others."""

import re

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli


@pytest.fixture(scope="module")
def written(default_model, tmp_path_factory):
    """The schema of an output of the default model."""
    folder = tmp_path_factory.mktemp("output")
    (folder / "texts.jsonl").write_text('{"id": 7, "text": "one"}\n', "utf-8")
    done = CliRunner().invoke(cli, ["embed", str(folder / "texts.jsonl"), "--model", str(default_model)])
    assert done.exit_code == 0, done.output
    return pq.read_schema(folder / "texts.embed.parquet")


@pytest.fixture(scope="module")
def document(root):
    return (root / "docs" / "output.md").read_text("utf-8")


@pytest.mark.slow
def test_the_columns_are_those_that_are_documented(written, document):
    types = {"fixed_size_list of float32": "fixed_size_list<element: float>[384]"}
    rows = re.findall(r"^\| `(\w+)` \| (\w[\w ]+) \|", document, re.MULTILINE)
    added = [(field.name, str(field.type)) for field in written if not field.nullable]
    assert added == [(name, types.get(kind, kind)) for name, kind in rows]


@pytest.mark.slow
def test_the_metadata_is_what_is_documented(written, document):
    keys = re.findall(r"^\| `(poolembed\.\w+)` \|", document, re.MULTILINE)
    assert [key.decode() for key in written.metadata] == keys
