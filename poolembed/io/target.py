"""Where the output goes, decided and checked before any work is done."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError, OutputError
from poolembed.io.atomic import translated
from poolembed.io.inputs import find_inputs
from poolembed.io.names import PARQUET_SUFFIX, PARTS_PATTERN, STDIN, rejects_path, stem
from poolembed.io.trec_run import RUN_SUFFIXES


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """Where results and rejects go.

    Attributes:
        path: a file, or the directory of the parts.
        in_parts: whether `path` is a directory that gets one part a chunk.
        overwrite: whether what is there already may be replaced.
    """

    path: Path
    in_parts: bool
    overwrite: bool = False

    @property
    def rejects(self) -> Path:
        """Where refused rows go."""
        return rejects_path(self.path)

    def old_parts(self) -> list[Path]:
        """Return the parts that an earlier run left in the directory, by name."""
        return sorted(self.path.glob(PARTS_PATTERN)) if self.in_parts else []


def plan_output(config: OutputConfig, inputs: InputConfig, suffix: str) -> OutputTarget:
    """Decide where the output goes, and see that it can; nothing is created.

    Args:
        config: the user's wish.
        inputs: what is read, for the default name and so that no input is overwritten.
        suffix: what the default name gets before `.parquet` (`embed`).

    Returns:
        The final names.

    Raises:
        ConfigError: no default name fits, or the name says another format.
        OutputError: something is there already, or it cannot be written, or it is an input.
        InputError: an input does not exist.
    """
    files = _input_files(inputs)
    named = _default(inputs, files, suffix) if config.output is None else _named(config.output)
    target = replace(named, overwrite=config.overwrite)
    with translated(target.path):
        _check_is_no_input(target, files)
        _check_folder(target.path.parent)
        if target.in_parts:
            _check_parts(target)
        else:
            _check_file(target)
    return target


def _named(output: str) -> OutputTarget:
    path = Path(output)
    if not output:
        raise ConfigError("-o: the name of the output is empty", "is a variable of your script unset?")
    with translated(path):
        if output.endswith(("/", os.sep)) or path.is_dir():
            return OutputTarget(path, in_parts=True)
    if path.suffix not in (PARQUET_SUFFIX, *RUN_SUFFIXES):
        raise ConfigError(
            f"-o {output}: the name of the output must end in {PARQUET_SUFFIX}",
            f"or end it in '/' for a directory of parts; rankings also in {' or '.join(RUN_SUFFIXES)}",
        )
    return OutputTarget(path, in_parts=False)


def _input_files(inputs: InputConfig) -> list[Path]:
    if not inputs.is_join:
        return [file.path for file in find_inputs(inputs.paths).files if file.path is not None]
    # Candidates may have any name; their reader says what it cannot read.
    joined = [path for path in (inputs.queries, inputs.documents) if path is not None]
    files = [file.path for file in find_inputs(joined).files if file.path is not None]
    return files if inputs.candidates is None else [*files, Path(inputs.candidates)]


def _default(inputs: InputConfig, files: list[Path], suffix: str) -> OutputTarget:
    ending = f".{suffix}{PARQUET_SUFFIX}"
    if inputs.candidates is not None:
        candidates = Path(inputs.candidates)
        return OutputTarget(candidates.with_name(stem(candidates) + ending), in_parts=False)
    if len(inputs.paths) == 1 and inputs.paths[0] != STDIN:
        given = Path(inputs.paths[0])
        if given.is_dir():
            folder = given.resolve()
            return OutputTarget(folder.parent / (folder.name + ending), in_parts=False)
        if len(files) == 1:
            return OutputTarget(files[0].with_name(stem(files[0]) + ending), in_parts=False)
    raise ConfigError(
        "this input gives no name to the output", "name it with -o FILE.parquet or -o DIRECTORY/"
    )


def _check_is_no_input(target: OutputTarget, files: list[Path]) -> None:
    written = {
        target.path.resolve(),
        target.rejects.resolve(),
        *(part.resolve() for part in target.old_parts()),
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
    old = target.old_parts()
    if old and not target.overwrite:
        raise OutputError(f"{target.path}: holds {len(old)} parts already", "--overwrite replaces them")


def _check_file(target: OutputTarget) -> None:
    if target.path.is_dir():
        raise OutputError(f"{target.path}: is a directory", "choose another -o")
    if target.path.exists() and not target.overwrite:
        raise OutputError(f"{target.path}: exists already", "--overwrite replaces it")
