"""From what the user typed to the files that are read: files, directories, globs, standard input."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from poolembed.errors import ConfigError, InputError
from poolembed.io.files import InputFile
from poolembed.io.formats import META_SUFFIX
from poolembed.io.names import PARQUET_SUFFIX, REJECTS_SUFFIX, STDIN, SUPPORTED_SUFFIXES, input_suffix
from poolembed.io.parquet import is_own_output

SUPPORTED_HINT = f"supported: {', '.join(SUPPORTED_SUFFIXES)}, directories and globs of them, '-'"


@dataclass(frozen=True, slots=True)
class FoundInputs:
    """The files behind the user's paths.

    Attributes:
        files: the files in reading order: paths as given, directories and globs sorted by name.
        skipped: outputs and rejects of earlier runs found in directories, which are not read.
    """

    files: tuple[InputFile, ...]
    skipped: tuple[Path, ...]


def find_inputs(paths: Sequence[str]) -> FoundInputs:
    """Expand the user's paths.

    Directories are searched recursively for supported files; hidden ones are ignored, and so are
    outputs and rejects of earlier runs, unless they are named one by one. Links to directories are
    not followed.

    Args:
        paths: files, directories, globs, or `-`.

    Returns:
        The files in reading order, and those that were passed over.

    Raises:
        InputError: nothing is there, or it is not a file that can be read.
        ConfigError: the same file is named twice.
    """
    files: list[InputFile] = []
    skipped: list[Path] = []
    for path in paths:
        try:
            found, own = _expand(path)
        except OSError as error:
            raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error
        files += found
        skipped += own
    _refuse_repeats(files)
    return FoundInputs(tuple(files), tuple(skipped))


def _expand(path: str) -> tuple[list[InputFile], list[Path]]:
    if path == STDIN:
        return [InputFile(None)], []
    if not path:
        raise InputError("the name of an input is empty", "is a variable of your script unset?")
    if Path(path).is_dir():
        return _search(Path(path))
    if Path(path).exists() or not glob.has_magic(path):
        return [_named_file(path)], []
    return _matches(path), []


def _named_file(name: str) -> InputFile:
    path = Path(name)
    if "://" in name:
        raise InputError(f"{name}: remote files are not read", "copy it to this machine first")
    if not path.exists():
        raise InputError(f"{name}: no such file or directory", _near_miss(path))
    if input_suffix(path) is None:
        raise InputError(f"{name}: not a kind of file that can be read", SUPPORTED_HINT)
    if not path.is_file():
        raise InputError(f"{name}: not a regular file", "pipe it through standard input with '-'")
    return InputFile(path)


def _near_miss(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the directory {folder} does not exist"
    close = get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1)
    return f"did you mean {folder / close[0]}?" if close else SUPPORTED_HINT


def _search(folder: Path) -> tuple[list[InputFile], list[Path]]:
    inside, own = [], []
    for path in sorted(_visible_files(folder)):
        if path.name.endswith(REJECTS_SUFFIX) or _is_own(path):
            own.append(path)
        else:
            inside.append(InputFile(path))
    if not inside:
        hint = f"name the {len(own)} outputs of earlier runs in it one by one" if own else SUPPORTED_HINT
        raise InputError(f"{folder}: the directory holds no input", hint)
    return inside, own


def _is_own(path: Path) -> bool:
    if path.suffix == PARQUET_SUFFIX:
        return is_own_output(path)
    return path.with_name(path.name + META_SUFFIX).exists()


def _visible_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if not name.startswith(".") and input_suffix(path) is not None and path.is_file():
                yield path


def _unreadable(error: OSError) -> None:
    # os.walk would pass over a folder that cannot be listed, and its rows would be missing.
    raise error


def _matches(pattern: str) -> list[InputFile]:
    # Path.glob takes no absolute patterns.
    found = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
    files = [InputFile(path) for path in found if path.is_file() and input_suffix(path) is not None]
    if not files:
        what = f"{len(found)} names, none a readable file" if found else "nothing"
        raise InputError(f"{pattern}: the pattern matches {what}", SUPPORTED_HINT)
    return files


def _refuse_repeats(files: Sequence[InputFile]) -> None:
    seen: dict[Path, Path] = {}
    for file in files:
        if file.path is None:
            continue
        real = file.path.resolve()
        if real in seen:
            raise ConfigError(
                f"{file.path} is given twice (also as {seen[real]}), so its rows would be read twice",
                "name each file once",
            )
        seen[real] = file.path
