"""Where the output goes, decided and checked before any work is done."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError, OutputError
from poolembed.io.atomic import translated
from poolembed.io.formats import FORMATS, Format, format_of
from poolembed.io.inputs import find_inputs
from poolembed.io.names import JOB_SUFFIX, PARTS_PATTERN, STDIN, rejects_path, stem
from poolembed.io.remote import is_remote

DEFAULT_FORMAT = "parquet"


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """Where results and rejects go.

    Attributes:
        path: a file, or the directory of the parts.
        in_parts: whether `path` is a directory that gets one part a chunk.
        format: the format of the file, or of the parts.
        overwrite: whether what is there already may be replaced.
        url: where it is sent when it is complete; None for an output of this machine.
    """

    path: Path
    in_parts: bool
    format: Format
    overwrite: bool = False
    url: str | None = None

    @property
    def rejects(self) -> Path:
        """Where refused rows go."""
        return rejects_path(self.path)

    @property
    def files(self) -> tuple[Path, ...]:
        """The output file and what its format puts beside it; nothing for a directory."""
        return () if self.in_parts else self.format.files(self.path)

    @property
    def job_folder(self) -> Path:
        """What runs keep there for the next one; hidden, so that no reader takes it for data."""
        if self.in_parts:
            return self.path / JOB_SUFFIX
        return self.path.with_name(f".{self.path.name}{JOB_SUFFIX}")

    def existing(self) -> list[Path]:
        """Return the files of the output that are there already, with what stands beside them; by name."""
        if not self.in_parts:
            return [path for path in self.files if path.exists()]
        endings = [ending for kind in FORMATS.values() for ending in (*kind.suffixes, *kind.beside)]
        return sorted(path for path in self.path.glob(PARTS_PATTERN) if path.name.endswith(tuple(endings)))

    def file(self, name: str) -> Path:
        """Return where the file of a name stands that is the output, a part of it, or beside it."""
        return self.path / name if self.in_parts else self.path.with_name(name)


def plan_output(config: OutputConfig, inputs: InputConfig, suffix: str) -> OutputTarget:
    """Decide where the output goes, and see that it can; nothing is created but the folder for staging.

    Args:
        config: the user's wish.
        inputs: what is read, for the default name and so that no input is overwritten.
        suffix: what the default name gets before the suffix of the format (`embed`).

    Returns:
        The final names.

    Raises:
        ConfigError: no default name fits, or the name says no format, or another than `config.format`.
        OutputError: something is there already, or it cannot be written, or it is an input.
        InputError: an input does not exist.
    """
    labels, files = _inputs(inputs)
    if config.output is not None and is_remote(config.output):
        named = _remote(config, labels)
    elif config.output is not None:
        named = _named(config.output, config.format)
    else:
        named = _default(inputs, files, suffix, FORMATS[config.format or DEFAULT_FORMAT])
    target = replace(named, overwrite=config.overwrite)
    with translated(target.path):
        _check_is_no_input(target, files)
        _check_folder(target.path.parent)
        if target.in_parts:
            _check_parts(target)
        else:
            _check_file(target)
    return target


def _named(output: str, format_name: str | None) -> OutputTarget:
    path = Path(output)
    if not output:
        raise ConfigError("-o: the name of the output is empty", "is a variable of your script unset?")
    with translated(path):
        if output.endswith(("/", os.sep)) or path.is_dir():
            return OutputTarget(path, in_parts=True, format=FORMATS[format_name or DEFAULT_FORMAT])
    kind = format_of(path)
    if kind is None:
        known = ", ".join(ending for each in FORMATS.values() for ending in each.suffixes)
        raise ConfigError(
            f"-o {output}: the name of the output must end in {known}",
            "or end it in '/' for a directory of parts",
        )
    if format_name not in (None, kind.name):
        raise ConfigError(
            f"-o {output} is the name of {kind.name}, and --format says {format_name}",
            f"end the name in {FORMATS[format_name].suffixes[0]}, or leave --format out",
        )
    return OutputTarget(path, in_parts=False, format=kind)


def _inputs(inputs: InputConfig) -> tuple[list[str], list[Path]]:
    """Return the names of all that is read, and those of the files of this machine."""
    paths = inputs.paths
    if inputs.is_join:
        paths = tuple(path for path in (inputs.queries, inputs.documents) if path is not None)
    found = find_inputs(paths, inputs.input_format).files
    labels = [file.label for file in found]
    files = [file.path for file in found if file.path is not None]
    if inputs.candidates is not None:
        # Candidates may have any name; their reader says what it cannot read.
        labels.append(inputs.candidates)
        files.append(Path(inputs.candidates))
    return labels, files


def _remote(config: OutputConfig, inputs: Sequence[str]) -> OutputTarget:
    """Return the output on this machine that is sent to a URL later."""
    url = str(config.output)
    # Stores write the same name with more or fewer slashes.
    if re.sub("/+", "/", url) in [re.sub("/+", "/", name) for name in inputs]:
        raise OutputError(f"{url}: is an input, and the output would replace it", "choose another -o")
    base = (
        Path.home() / ".cache" / "poolembed" / "outputs" if config.staging is None else Path(config.staging)
    )
    # One folder for each URL, so that equal names in different places never meet.
    folder = base / hashlib.blake2b(url.rstrip("/").encode(), digest_size=10).hexdigest()
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
    name = PurePosixPath(url.partition("?")[0].partition("://")[2]).name
    ending = "/" if url.partition("?")[0].endswith("/") else ""
    return replace(_named(f"{folder / name}{ending}", config.format), url=url)


def _default(inputs: InputConfig, files: list[Path], suffix: str, kind: Format) -> OutputTarget:
    ending = f".{suffix}{kind.suffixes[0]}"
    if inputs.candidates is not None:
        candidates = Path(inputs.candidates)
        return OutputTarget(candidates.with_name(stem(candidates) + ending), in_parts=False, format=kind)
    if len(inputs.paths) == 1 and inputs.paths[0] != STDIN:
        given = Path(inputs.paths[0])
        if given.is_dir():
            folder = given.resolve()
            return OutputTarget(folder.parent / (folder.name + ending), in_parts=False, format=kind)
        if len(files) == 1:
            path = files[0].with_name(stem(files[0]) + ending)
            return OutputTarget(path, in_parts=False, format=kind)
    raise ConfigError(
        "this input gives no name to the output", "name it with -o FILE.parquet or -o DIRECTORY/"
    )


def _check_is_no_input(target: OutputTarget, files: list[Path]) -> None:
    written = {
        target.path.resolve(),
        *(path.resolve() for path in target.files),
        target.rejects.resolve(),
        *(path.resolve() for path in target.existing()),
    }
    for file in files:
        if file.resolve() in written:
            raise OutputError(f"{file}: is an input, and the output would replace it", "choose another -o")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError(
            f"{folder}: the folder for the output does not exist", "make it first, or choose another -o"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: the folder for the output cannot be written to", "choose another -o")


def _check_parts(target: OutputTarget) -> None:
    if target.path.is_dir():
        _check_folder(target.path)
    elif target.path.exists():
        raise OutputError(f"{target.path}: is not a directory", "choose another -o")


def _check_file(target: OutputTarget) -> None:
    if target.path.is_dir():
        raise OutputError(f"{target.path}: is a directory", "choose another -o")
