"""What a run keeps beside its output: results until it ends, and a record for the next run.

.corpus.embed.parquet.job/     (for a directory of parts: `.job` inside of it)
  lock
  run.json                     settings of the run under way
  results-00000.arrow ...      what it has computed so far, with keys
  output-0.json, .keys         record of the output that stands there, and the key of each of its rows
"""

import glob
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from poolembed.errors import OutputError
from poolembed.io.atomic import AtomicFile, translated
from poolembed.io.result_arrays import describe_column, result_schema
from poolembed.io.store.blocks import EarlierOutput, FreshBlock, GroupCache, SavedBlock
from poolembed.io.store.keys import Keys
from poolembed.io.store.lock import take_lock
from poolembed.io.store.records import FileRecord, OutputRecord, identity_of, keys_of, write_text
from poolembed.io.store.results import ResultStore
from poolembed.io.target import OutputTarget
from poolembed.results import ResultColumn

_RUN = "run.json"
_RESULTS = "results-*.arrow"
_COLUMNS = "columns"


class JobFolder:
    """The folder of a locked output; made by `open_job_folder`.

    Attributes:
        target: the output.
        path: the folder.
    """

    def __init__(self, target: OutputTarget, path: Path) -> None:
        self.target = target
        self.path = path
        self._records = sorted(path.glob("output-*.json"))
        self._standing = list(_standing(target, self._records))
        self._number = max((_number(record) for record in self._records), default=-1) + 1
        self._block_number = max((_number(block) for block in path.glob(_RESULTS)), default=-1) + 1
        self._keys: AtomicFile | None = None
        self._settings: Mapping[str, str] = {}

    @property
    def known_settings(self) -> Mapping[str, str]:
        """The settings of the run that this one goes on with or whose output it renews; {} without any."""
        unfinished = self._unfinished()
        if unfinished is not None or self.target.overwrite:
            return unfinished or {}
        return next((output.record.settings for output in self._standing), {})

    def check(self) -> None:
        """See whether the output may be written.

        Raises:
            OutputError: something stands there that no run of this tool left, or that was changed since.
        """
        if self.target.overwrite:
            return
        known = {file for output in self._standing for file in output.files}
        unknown = [path for path in self.target.existing() if path not in known]
        if unknown:
            raise OutputError(
                f"{unknown[0]}: exists already, and is not as a run of poolembed left it",
                "--overwrite replaces it",
            )

    def begin(self, settings: Mapping[str, str], columns: Sequence[ResultColumn]) -> ResultStore:
        """Begin a run, or go on with one.

        Args:
            settings: all that decides a result beside the texts.
            columns: the columns of results.

        Returns:
            The results that need not be computed again.

        Raises:
            OutputError: the output, or an unfinished run, was made with other settings.
        """
        settings = {**settings, _COLUMNS: json.dumps({c.name: describe_column(c) for c in columns})}
        unfinished = self._unfinished()
        standing = [] if self.target.overwrite else self._standing
        for output in standing:
            _compare(output.record.settings, settings, f"{self.target.path}: was made")
        if unfinished is not None and not self.target.overwrite:
            _compare(unfinished, settings, f"{self.target.path}: an unfinished run was started")
        elif unfinished is not None and unfinished != settings:
            self._forget_run()
        self._settings = settings
        write_text(self.path / _RUN, json.dumps(settings, ensure_ascii=False))
        store = ResultStore(result_schema(columns))
        cache = GroupCache(store.schema)
        for output in standing:
            output.add_to(store, cache)
        self._know_saved(store)
        return store

    def save(self, block: FreshBlock) -> None:
        """Make results last.

        Raises:
            OutputError: the disk is full or fails.
        """
        block.save(self.path / f"results-{self._block_number:05d}.arrow")
        self._block_number += 1

    def add_keys(self, keys: Keys) -> None:
        """Note the keys of the next rows of the output.

        Raises:
            OutputError: the disk is full or fails.
        """
        if self._keys is None:
            self._keys = AtomicFile(self.path / f"output-{self._number}.keys", may_replace=True)
        with translated(self._keys.path):
            self._keys.handle.write(keys.tobytes())

    def record(self, files: Sequence[FileRecord]) -> None:
        """Describe the output, complete but not yet under its final name.

        Args:
            files: its files, in the order of their rows.

        Raises:
            OutputError: the disk is full or fails.
        """
        if self._keys is not None:
            self._keys.finish()
            self._keys.place()
        write_text(
            self.path / f"output-{self._number}.json", OutputRecord(self._settings, tuple(files)).dump()
        )

    def finish(self) -> None:
        """Forget what is needed no more, now that the output stands under its final name.

        Raises:
            OutputError: a file cannot be removed.
        """
        self._forget_run()
        with translated(self.path):
            for record in self._records:
                record.unlink(missing_ok=True)
                record.with_suffix(".keys").unlink(missing_ok=True)

    def close(self) -> None:
        """Give up what is half-written, and the lock; the folder goes where it holds nothing of use."""
        if self._keys is not None:
            self._keys.discard()
        if not any(self.path.glob(_RESULTS)):
            with translated(self.path):
                (self.path / _RUN).unlink(missing_ok=True)

    def _unfinished(self) -> Mapping[str, str] | None:
        try:
            return dict(json.loads((self.path / _RUN).read_text("utf-8", "surrogatepass")))
        except FileNotFoundError:
            return None

    def _know_saved(self, store: ResultStore) -> None:
        for path in sorted(self.path.glob(_RESULTS)):
            block = SavedBlock(path)
            if block.schema.equals(store.schema):
                store.know(block, block.keys(), in_output=False)

    def _forget_run(self) -> None:
        with translated(self.path):
            (self.path / _RUN).unlink(missing_ok=True)
            for results in self.path.glob(_RESULTS):
                results.unlink()


@contextmanager
def open_job_folder(target: OutputTarget) -> Iterator[JobFolder]:
    """Lock an output, and remove what killed runs have left half-written.

    Args:
        target: the output.

    Yields:
        The folder beside it; where nothing is worth keeping, it is gone afterwards.

    Raises:
        LockedError: another run is writing this output.
        OutputError: the folder cannot be made.
    """
    made_parts_folder = target.in_parts and not target.path.exists()
    with translated(target.path):
        if target.in_parts:
            target.path.mkdir(exist_ok=True)
        lock = take_lock(target.job_folder, target.path)
    try:
        with translated(target.path):
            _remove_remains(target)
            folder = JobFolder(target, target.job_folder)
        try:
            yield folder
        finally:
            folder.close()
    finally:
        with translated(target.path):
            is_empty = len(list(target.job_folder.iterdir())) == 1
            lock.release(remove=is_empty)
        if is_empty:
            with suppress(OSError):  # another run may have come
                target.job_folder.rmdir()
                if made_parts_folder:
                    target.path.rmdir()


@dataclass(frozen=True, slots=True)
class _StandingOutput:
    """What still stands of the output of an earlier run.

    Attributes:
        record: what the run left.
        keys: the file of keys.
        files: those files that are as the run left them.
    """

    record: OutputRecord
    keys: Path
    files: Mapping[Path, FileRecord]

    def add_to(self, store: ResultStore, cache: GroupCache) -> None:
        known = {file.name: path for path, file in self.files.items()}
        for file, keys in keys_of(self.keys, self.record):
            if file.name in known:
                store.know(EarlierOutput(known[file.name], cache), keys, in_output=True)


def _standing(target: OutputTarget, records: Sequence[Path]) -> Iterator[_StandingOutput]:
    identities = {path: identity_of(path) for path in target.existing()}
    for path in records:
        record = OutputRecord.parse(path.read_text("utf-8", "surrogatepass"))
        if record is None:
            continue
        named = {target.file(file.name): file for file in record.files}
        files = {path: file for path, file in named.items() if identities.get(path) == file.identity}
        if files:
            yield _StandingOutput(record, path.with_suffix(".keys"), files)


def _compare(before: Mapping[str, str], now: Mapping[str, str], what: str) -> None:
    if before == now:
        return
    differing = [
        f"{key} {before.get(key)!r}, not {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key) and key != _COLUMNS
    ]
    raise OutputError(
        f"{what} with other settings: {'; '.join(differing) or 'other columns of results'}",
        "--overwrite starts afresh; the same options go on",
    )


def _remove_remains(target: OutputTarget) -> None:
    """Remove the temporary files of runs that were killed; nobody writes them, as the lock is ours."""
    names = [target.path.name, target.rejects.name]
    remains = [found for name in names for found in target.path.parent.glob(f".{glob.escape(name)}.tmp-*")]
    remains += target.job_folder.glob(".*.tmp-*")
    if target.in_parts:
        remains += target.path.glob(".*.tmp-*")
    for remain in remains:
        remain.unlink(missing_ok=True)


def _number(path: Path) -> int:
    found = re.search(r"-(\d+)\.", path.name)
    return int(found[1]) if found else -1
