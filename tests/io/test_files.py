"""Standard input is copied once and read twice; files tell when they change."""

import gzip
import io
import os
import subprocess
import sys
from contextlib import ExitStack

import pyarrow as pa
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source
from poolembed.io.files import InputFile, spooled


class FailingInput(io.RawIOBase):
    def read(self, size=-1):
        raise OSError(5, "Input/output error")


def test_standard_input_is_read_like_a_file(read):
    whole = read("-", stdin=io.BytesIO(b'{"text": "a", "n": 1}\n{"text": "b", "n": 2.5}\n'))
    assert whole.texts == ["a", "b"]
    assert whole.schema.field("n").type == pa.float64()
    assert whole.chunks[0].places == (("<stdin>", 1), ("<stdin>", 2))


def test_compressed_standard_input_is_decompressed(read):
    assert read("-", stdin=io.BytesIO(gzip.compress(b'{"text": "a"}\n'))).texts == ["a"]


def test_standard_input_takes_its_place_among_files(read, write):
    paths = [write("a.jsonl", {"text": "a"}), "-", write("c.jsonl", {"text": "c"})]
    assert read(*paths, stdin=io.BytesIO(b'{"text": "b"}')).texts == ["a", "b", "c"]


def test_bad_rows_of_standard_input_are_named():
    with pytest.raises(InputError, match="<stdin>:2: the text in 'text' is null"):
        open_source(
            InputConfig(paths=("-",)),
            [TextRole("text", ("text",))],
            io.BytesIO(b'{"text":"a"}\n{"text":null}'),
        )


def test_the_copy_is_gone_after_a_failed_survey_and_after_reading():
    def num_open() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = num_open()
    with pytest.raises(InputError):
        open_source(InputConfig(paths=("-",)), [TextRole("text", ("text",))], io.BytesIO(b"broken"))
    assert num_open() == before
    with open_source(
        InputConfig(paths=("-",)), [TextRole("text", ("text",))], io.BytesIO(b'{"text":"a"}')
    ) as source:
        assert len(list(source.chunks(9, 9))) == 1
    assert num_open() == before


def test_failing_standard_input_is_an_input_error():
    with ExitStack() as opened, pytest.raises(InputError, match="<stdin>: cannot be copied") as caught:
        spooled(FailingInput(), opened)
    assert "TMPDIR" in caught.value.hint


def test_without_a_stream_the_standard_input_of_the_process_is_taken():
    with (
        ExitStack() as opened,
        pytest.raises(InputError, match="<stdin>: cannot be copied"),
    ):  # pytest lets nobody read it
        spooled(None, opened)


SCRIPT = """
from poolembed.config import InputConfig
from poolembed.io import TextRole, open_source
with open_source(InputConfig(paths=("-",)), [TextRole("text", ("text",))]) as source:
    print([chunk.texts["text"] for chunk in source.chunks(9, 99)])
"""


def test_what_is_piped_into_the_process_is_read():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=b'{"text": "a"}\n', capture_output=True, check=True
    )
    assert done.stdout == b"[['a']]\n"


def test_a_closed_standard_input_is_told():
    done = subprocess.run(
        f"{sys.executable} -c '{SCRIPT}' <&-", shell=True, capture_output=True, text=True, check=False
    )
    assert "InputError: standard input is closed (pipe JSON Lines into the command)" in done.stderr


def test_standard_input_must_be_copied_first():
    with pytest.raises(ValueError, match="spooled"):
        InputFile(None).open()


def test_a_missing_file_has_no_state(tmp_path):
    with pytest.raises(InputError, match=r"a\.jsonl: cannot be read: No such file"):
        InputFile(tmp_path / "a.jsonl").state()


def test_standard_input_never_changes():
    assert InputFile(None).state() is None
