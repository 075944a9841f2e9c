"""Files behind URLs: a local S3 server, and fsspec's file system in memory."""

import gzip
import json
import os
import socket

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError, OutputError
from poolembed.io import TextRole, open_source
from poolembed.io.inputs import find_inputs
from poolembed.io.remote import delete, exists, find_remote, open_output, upload

TEXT = TextRole("text", ("text",))
ROWS = [{"id": number, "text": f"row {number}"} for number in range(5)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.fixture(scope="module")
def s3():
    """An empty bucket called `corpus` on a server of this process; the environment points to it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    own = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    store = fs.S3FileSystem(allow_bucket_creation=True, endpoint_override=f"{host}:{port}", scheme="http")
    store.create_dir("corpus")
    yield store
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(params=["s3", "memory"])
def root(request):
    """The URL of an empty directory in a store."""
    if request.param == "s3":
        store = request.getfixturevalue("s3")
        store.delete_dir_contents("corpus")
        return "s3://corpus"
    fsspec.filesystem("memory").store.clear()
    return "memory://corpus"


def put(root: str, **files: bytes) -> None:
    for name, data in files.items():
        with open_output(f"{root}/{name.replace('__', '/').replace('_', '.')}") as handle:
            handle.write(data)


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue().to_pybytes()


def arrow() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def csv() -> bytes:
    return ("id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in ROWS)).encode()


CONTENTS = {
    "a_jsonl": LINES,
    "a_jsonl_gz": gzip.compress(LINES),
    "a_parquet": parquet(),
    "a_parquet_zst": pa.compress(parquet(), codec="zstd", asbytes=True),
    "a_arrow": arrow(),
    "a_csv": csv(),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_is_read_as_from_a_disk(root, read, name):
    put(root, **{name: CONTENTS[name]})
    url = f"{root}/{name.replace('_', '.')}"
    whole = read(url)
    assert whole.texts == [row["text"] for row in ROWS]
    assert [str(value) for value in whole.table["id"].to_pylist()] == ["0", "1", "2", "3", "4"]
    assert whole.chunks[0].ids == ("0", "1", "2", "3", "4")
    assert whole.chunks[0].places[0][0].endswith(f"corpus/{name.replace('_', '.')}")


def names(url: str, **options) -> list[str]:
    return [file.label.partition("corpus/")[2] for file in find_inputs([url], **options).files]


def test_directories_and_patterns_give_files_by_name(root):
    put(
        root,
        in__b_jsonl=LINES,
        in__a_jsonl=LINES,
        in__sub__c_parquet=parquet(),
        in__notes_txt=b"x",
        in__sub__d_md=b"x",
        **{"in___hidden__e_jsonl": LINES, "in__a_parquet_rejects_jsonl": LINES},
    )
    assert names(f"{root}/in") == ["in/a.jsonl", "in/b.jsonl", "in/sub/c.parquet"]
    assert names(f"{root}/in/") == names(f"{root}/in")
    assert names(f"{root}/in/*.jsonl")[:1] == ["in/a.jsonl"]
    assert names(f"{root}/in/[b-z].jsonl") == ["in/b.jsonl"]
    assert names(f"{root}/**/*.parquet") == ["in/sub/c.parquet"]
    assert names(f"{root}/in/*/c.*") == ["in/sub/c.parquet"]
    assert names(f"{root}/in", input_format="text") == ["in/notes.txt"]
    assert names(f"{root}/in/sub/d.md", input_format="text") == ["in/sub/d.md"]


def test_what_is_not_there_is_an_input_error(root):
    put(root, a_md=b"x")
    with pytest.raises(InputError, match=r"corpus/no\.jsonl: no such file or directory"):
        find_inputs([f"{root}/no.jsonl"])
    with pytest.raises(InputError, match="holds no input"):
        find_inputs([f"{root}/*.jsonl"])
    with pytest.raises(InputError, match="not a kind of file that can be read"):
        find_inputs([f"{root}/a.md"])


def test_a_file_given_twice_is_refused(root):
    put(root, a_jsonl=LINES)
    with pytest.raises(ConfigError, match="is given twice"):
        find_inputs([f"{root}/a.jsonl", f"{root}/*.jsonl"])


def test_a_file_that_changes_after_the_survey_is_noticed(root):
    put(root, a_jsonl=LINES)
    with open_source(InputConfig(paths=(f"{root}/a.jsonl",)), [TEXT]) as source:
        put(root, a_jsonl=LINES + LINES)
        with pytest.raises(InputError, match="changed while it was being read"):
            list(source.chunks(10, 1000))


def test_what_is_written_appears_whole_or_not_at_all(root):
    url = f"{root}/out.bin"
    assert not exists(url)
    with pytest.raises(ZeroDivisionError), open_output(url) as handle:
        handle.write(b"half" * (1 // 0))
    assert not exists(url)
    with open_output(url) as handle:
        handle.write(b"whole")
    assert exists(url)
    with pytest.raises(ZeroDivisionError), open_output(url) as handle:
        handle.write(b"half" * (1 // 0))
    (file,) = find_remote(url)[0]
    with file.open() as handle:
        assert handle.read() == b"whole"
    delete(url)
    delete(url)
    assert not exists(url)


def test_a_large_file_is_sent_in_several_requests_and_arrives_whole(root, tmp_path):
    data = os.urandom(2**20) * 24
    (tmp_path / "large").write_bytes(data)
    upload(tmp_path / "large", f"{root}/large")
    (file,) = find_remote(f"{root}/large")[0]
    assert file.size_and_time()[0] == len(data)
    with file.open() as handle:
        assert handle.read() == data


def test_a_bucket_that_does_not_exist_is_told(s3, tmp_path):
    with pytest.raises(InputError, match=r"s3://nowhere/a\.jsonl: no such file or directory"):
        find_inputs(["s3://nowhere/a.jsonl"])
    (tmp_path / "a").write_bytes(b"x")
    with pytest.raises(OutputError, match=r"s3://nowhere/a\.jsonl: cannot be written: .+"):
        upload(tmp_path / "a", "s3://nowhere/a.jsonl")


def test_a_server_that_does_not_answer_is_an_input_error_and_keys_are_not_shown():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"s3://key:secret@corpus/a.jsonl?endpoint_override=127.0.0.1:{port}&scheme=http&connect_timeout=0.1"
    with pytest.raises(InputError, match=r"s3://corpus/a\.jsonl: cannot be read") as caught:
        find_inputs([url])
    assert "secret" not in str(caught.value)


def test_a_scheme_that_nothing_reads_is_told():
    with pytest.raises(InputError, match="nothing is known that reads nosuch://"):
        find_inputs(["nosuch://a/b.jsonl"])
