"""Files behind URLs: `s3://` and `gs://` by pyarrow's own file systems, all other schemes by fsspec.

What is written appears whole or not at all: it is gathered on this machine and sent when it is complete,
and a store shows an object only when its upload has ended.
"""

import fnmatch
import importlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from poolembed.errors import InputError, OutputError, PoolembedError

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://(.*)", re.DOTALL)
_MAGIC = re.compile(r"[*\[]")
_NATIVE = ("s3", "gs", "gcs", "abfs", "abfss")
_EXTRA = {"hf": "pip install 'poolembed[hf]'"}
_BUFFER_BYTES = 2**20


def is_remote(name: str) -> bool:
    """Return whether a name is a URL."""
    return _URL.match(name) is not None


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file behind a URL.

    Attributes:
        url: the name used in messages; keys that stood in the URL are left out.
        filesystem: the store, of pyarrow.
        path: where the file is in it.
    """

    url: str
    filesystem: Any
    path: str

    def open(self) -> BinaryIO:
        """Open the bytes at their beginning; the caller closes.

        Raises:
            OSError: the file cannot be opened.
        """
        return cast("BinaryIO", io.BufferedReader(self.native(), _BUFFER_BYTES))

    def native(self) -> pa.NativeFile:
        """Open the bytes for pyarrow, which reads anywhere in them; the caller closes.

        Raises:
            OSError: the file cannot be opened.
        """
        return self.filesystem.open_input_file(self.path)

    def size_and_time(self) -> tuple[int, int]:
        """Return the length in bytes and the time of the last change in nanoseconds, 0 where unknown.

        Raises:
            InputError: the file is gone, or the store cannot be reached.
        """
        with _translated(self.url, InputError, "read"):
            info = self.filesystem.get_file_info(self.path)
        if info.type != fs.FileType.File:
            raise InputError(f"{self.url}: no such file")
        return info.size or 0, info.mtime_ns or 0


def find_remote(url: str) -> tuple[list[RemoteFile], bool]:
    """Return the file behind a URL, or the files below a directory or matching a pattern, by name.

    Patterns know `*`, `**` for any number of folders, and `[...]`. Names that begin with a dot are left out
    of directories and patterns.

    Args:
        url: a file, a directory, or a pattern of files.

    Returns:
        The files, and whether the URL names one of them alone.

    Raises:
        InputError: nothing is there, or the store cannot be reached.
    """
    pattern = _MAGIC.search(_split(url)[1])
    with _translated(url, InputError, "read"):
        filesystem, path = _located(url, InputError)
        if pattern is None:
            info = filesystem.get_file_info(path)
            if info.type == fs.FileType.NotFound:
                raise InputError(f"{_without_secrets(url)}: no such file or directory")
            if info.type == fs.FileType.File:
                return [_remote_file(url, filesystem, path)], True
        base = path if pattern is None else _folder_of(path)
        infos = filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
    matches = re.compile(_regex(path)).fullmatch if pattern is not None else None
    below = [info.path for info in infos if info.type == fs.FileType.File]
    found = [
        name
        for name in sorted(below)
        if not _is_hidden(name[len(base) :]) and (matches is None or matches(name))
    ]
    return [_remote_file(url, filesystem, name) for name in found], False


def exists(url: str) -> bool:
    """Return whether a file or a directory is behind a URL.

    Raises:
        OutputError: the store cannot be reached.
    """
    with _translated(url, OutputError, "looked at"):
        filesystem, path = _located(url, OutputError)
        return bool(filesystem.get_file_info(path).type != fs.FileType.NotFound)


def names_in(url: str) -> list[str]:
    """Return the names of the files that stand in a directory behind a URL; none where it is not there.

    Raises:
        OutputError: the store cannot be reached.
    """
    with _translated(url, OutputError, "looked at"):
        filesystem, path = _located(url.rstrip("/"), OutputError)
        infos = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(info.base_name for info in infos if info.type == fs.FileType.File)


def delete(url: str) -> None:
    """Remove the file behind a URL, if there is one.

    Raises:
        OutputError: the store cannot be reached, or refuses.
    """
    with _translated(url, OutputError, "removed"):
        filesystem, path = _located(url, OutputError)
        if filesystem.get_file_info(path).type == fs.FileType.File:
            filesystem.delete_file(path)


def upload(local: Path, url: str) -> None:
    """Send a complete file; what was behind the URL is replaced when all of it has arrived.

    Args:
        local: the file.
        url: its final name.

    Raises:
        OutputError: the store cannot be reached, or refuses; what was there before is whole.
    """
    with _translated(url, OutputError, "written"):
        filesystem, path = _located(url, OutputError)
        fs.copy_files(
            str(local), path, source_filesystem=fs.LocalFileSystem(), destination_filesystem=filesystem
        )


@contextmanager
def open_output(url: str) -> Iterator[BinaryIO]:
    """Open a file for writing that appears behind a URL when the context ends without an exception.

    Args:
        url: the final name; what is there is replaced.

    Yields:
        A local file, in the folder for temporary files, which needs room for all of it.

    Raises:
        OutputError: the store cannot be reached, or refuses; what was there before is whole.
    """
    with tempfile.NamedTemporaryFile(prefix="poolembed-output-") as handle:
        yield cast("BinaryIO", handle)
        handle.flush()
        upload(Path(handle.name), url)


def network_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where the network fails: OSError, and what the hub's client has of its own."""
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return (OSError, *(client.HTTPError for client in clients))


def _split(url: str) -> tuple[str, str]:
    found = _URL.match(url)
    if found is None:
        raise ValueError(f"{url!r} is no URL")
    return found[1].lower(), found[2]


def _located(url: str, kind: type[PoolembedError]) -> tuple[Any, str]:
    """Return the file system behind a URL and the path in it, as the user wrote it."""
    scheme, rest = _split(url)
    if scheme in _NATIVE:
        place, _, query = rest.partition("?")
        bucket, _, key = place.partition("/")
        address = f"{scheme}://{quote(bucket, safe='@:')}" + (f"?{query}" if query else "")
        filesystem, name = fs.FileSystem.from_uri(address)
        return filesystem, f"{name}/{key}" if key else name
    try:
        fsspec = importlib.import_module("fsspec")
        store = fsspec.filesystem(scheme)
    except ImportError as error:
        raise kind(f"{url}: {error}", _EXTRA.get(scheme, "install what it names")) from error
    except ValueError as error:
        raise kind(f"{url}: nothing is known that reads {scheme}://", "copy it to this machine") from error
    return fs.PyFileSystem(fs.FSSpecHandler(store)), store._strip_protocol(url)


def _remote_file(url: str, filesystem: Any, path: str) -> RemoteFile:  # noqa: ANN401 - pyarrow has no types
    shown = path if is_remote(path) else f"{_split(url)[0]}://{path}"
    return RemoteFile(shown, filesystem, path)


def _without_secrets(url: str) -> str:
    """Return a URL without what may stand before `@` in it and after `?`: names of users and keys."""
    return re.sub(r"://[^/@]*@", "://", url).partition("?")[0]


def _folder_of(pattern: str) -> str:
    fixed = pattern[: cast("re.Match[str]", _MAGIC.search(pattern)).start()]
    return fixed.rpartition("/")[0]


def _regex(pattern: str) -> str:
    parts: Sequence[str] = pattern.split("/")
    regex = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            regex += ".*" if last else "(?:[^/]+/)*"
        else:
            regex += "".join(_translated_part(part)) + ("" if last else "/")
    return regex


def _translated_part(part: str) -> Iterator[str]:
    for piece in re.split(r"(\*+|\[[^]]*\])", part):
        if piece.startswith("*"):
            yield "[^/]*"
        elif piece.startswith("["):
            yield fnmatch.translate(piece).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
        else:
            yield re.escape(piece)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


@contextmanager
def _translated(url: str, kind: type[PoolembedError], verb: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, *network_errors()) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{_without_secrets(url)}: cannot be {verb}: {reason}") from error
