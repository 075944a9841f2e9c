"""From what the user typed to the files that are read: files, directories, globs, URLs, standard input."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath, PurePosixPath

from poolembed.config import InputFormat
from poolembed.errors import ConfigError, InputError
from poolembed.io.files import InputFile
from poolembed.io.names import COMPRESSION_SUFFIXES, FORMAT_SUFFIXES, STDIN, format_of
from poolembed.io.own_output import is_own_output
from poolembed.io.remote import find_remote, is_remote

_SUFFIXES = [suffix for known in FORMAT_SUFFIXES.values() for suffix in known]
SUPPORTED_HINT = (
    f"supported: {', '.join(_SUFFIXES)}, each alone or with {', '.join(COMPRESSION_SUFFIXES)}; "
    "directories and globs of them, '-'"
)


@dataclass(frozen=True, slots=True)
class FoundInputs:
    """The files behind the user's paths.

    Attributes:
        files: the files in reading order: paths as given, directories and globs sorted by name.
        skipped: outputs and rejects of earlier runs found in directories, which are not read; paths, or
            URLs.
    """

    files: tuple[InputFile, ...]
    skipped: tuple[Path | str, ...]


def find_inputs(paths: Sequence[str], input_format: InputFormat | None = None) -> FoundInputs:
    """Expand the user's paths.

    Directories are searched recursively for supported files; hidden ones are ignored, and so are
    outputs and rejects of earlier runs, unless they are named one by one. Links to directories are
    not followed. Plain text in a directory may be anything, and is read only where `input_format` says so.

    Args:
        paths: files, directories, globs or URLs of them, or `-`.
        input_format: what all files hold, whatever their names say, and which files of a directory are
            read; None goes by each name.

    Returns:
        The files in reading order, and those that were passed over.

    Raises:
        InputError: nothing is there, or it is not a file that can be read.
        ConfigError: the same file is named twice.
    """
    files: list[InputFile] = []
    skipped: list[Path | str] = []
    for path in paths:
        try:
            found, own = _expand(path, input_format)
        except OSError as error:
            raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error
        files += found
        skipped += own
    _refuse_repeats(files)
    return FoundInputs(tuple(files), tuple(skipped))


def _expand(path: str, wanted: InputFormat | None) -> tuple[list[InputFile], list[Path | str]]:
    if path == STDIN:
        return [InputFile(None)], []
    if not path:
        raise InputError("the name of an input is empty", "is a variable of your script unset?")
    if is_remote(path):
        return _behind_url(path, wanted)
    if Path(path).is_dir():
        files = [_file(each, wanted, strict=True) for each in sorted(_visible_files(Path(path)))]
        return _sifted(path, files)
    if Path(path).exists() or not glob.has_magic(path):
        return [_named_file(path, wanted)], []
    return _matches(path, wanted), []


def _file(path: Path, wanted: InputFormat | None, *, strict: bool) -> InputFile | None:
    known = _format(path, wanted, strict=strict)
    return None if known is None else InputFile(path, known)


def _format(path: PurePath, wanted: InputFormat | None, *, strict: bool) -> InputFormat | None:
    """Return what a file is read as; None where it is passed over, `strict` as in directories."""
    known = format_of(path)
    if not strict:
        return wanted or known
    return known if known == wanted or (wanted is None and known != "text") else None


def _named_file(name: str, wanted: InputFormat | None) -> InputFile:
    path = Path(name)
    if not path.exists():
        raise InputError(f"{name}: no such file or directory", _near_miss(path))
    file = _file(path, wanted, strict=False)
    if file is None:
        raise InputError(
            f"{name}: not a kind of file that can be read", f"{SUPPORTED_HINT}; or say --input-format"
        )
    if not path.is_file():
        raise InputError(f"{name}: not a regular file", "pipe it through standard input with '-'")
    return file


def _behind_url(url: str, wanted: InputFormat | None) -> tuple[list[InputFile], list[Path | str]]:
    remote, is_one = find_remote(url)
    files = [
        None if known is None else InputFile(None, known, file)
        for file in remote
        for known in [_format(PurePosixPath(file.path), wanted, strict=not is_one)]
    ]
    if is_one and files == [None]:
        raise InputError(
            f"{url}: not a kind of file that can be read", f"{SUPPORTED_HINT}; or say --input-format"
        )
    return ([file for file in files if file is not None], []) if is_one else _sifted(url, files)


def _near_miss(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the directory {folder} does not exist"
    close = get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1)
    return f"did you mean {folder / close[0]}?" if close else SUPPORTED_HINT


def _sifted(folder: str, files: Sequence[InputFile | None]) -> tuple[list[InputFile], list[Path | str]]:
    """Part the inputs in a directory from outputs of earlier runs; None is a file of no use."""
    inside: list[InputFile] = []
    own: list[Path | str] = []
    for file in files:
        if file is not None and is_own_output(file):
            own.append(file.path or file.label)
        elif file is not None:
            inside.append(file)
    if not inside:
        hint = f"name the {len(own)} outputs of earlier runs in it one by one" if own else SUPPORTED_HINT
        raise InputError(f"{folder}: the directory holds no input", hint)
    return inside, own


def _visible_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _unreadable(error: OSError) -> None:
    # os.walk would pass over a folder that cannot be listed, and its rows would be missing.
    raise error


def _matches(pattern: str, wanted: InputFormat | None) -> list[InputFile]:
    # Path.glob takes no absolute patterns.
    found = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
    files = [
        file for path in found if path.is_file() and (file := _file(path, wanted, strict=False)) is not None
    ]
    if not files:
        what = f"{len(found)} names, none a readable file" if found else "nothing"
        raise InputError(f"{pattern}: the pattern matches {what}", SUPPORTED_HINT)
    return files


def _refuse_repeats(files: Sequence[InputFile]) -> None:
    seen: dict[Path | str, str] = {}
    for file in files:
        if file.is_stdin:
            continue
        real = file.label if file.path is None else file.path.resolve()
        if real in seen:
            raise ConfigError(
                f"{file.label} is given twice (also as {seen[real]}), so its rows would be read twice",
                "name each file once",
            )
        seen[real] = file.label
