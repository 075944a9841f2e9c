"""Outputs behind URLs: made on this machine like any other, and sent when they are complete.

The copy on this machine stays: the next run reuses it, and a killed one goes on from it.
"""

from collections.abc import Sequence
from pathlib import Path

from poolembed.errors import OutputError
from poolembed.io.names import is_part
from poolembed.io.remote import delete, exists, names_in, upload
from poolembed.io.target import OutputTarget


def check_remote(target: OutputTarget) -> None:
    """See that nothing behind the URL of an output would be lost.

    Raises:
        OutputError: something stands there that was not made on this machine, or the store cannot be reached.
    """
    if target.url is None or target.overwrite or target.existing():
        return
    taken = any(map(is_part, names_in(target.url))) if target.in_parts else exists(target.url)
    if taken:
        raise OutputError(
            f"{target.url}: exists already, and was not made on this machine", "--overwrite replaces it"
        )


def publish(target: OutputTarget, files: Sequence[Path]) -> list[str]:
    """Send a complete output to where it belongs.

    Args:
        target: the output.
        files: all of its files, rejects included.

    Returns:
        The names under which they stand; those of `files` where there is no URL.

    Raises:
        OutputError: the store cannot be reached, or refuses; the same command sends it again.
    """
    if target.url is None:
        return [str(file) for file in files]
    urls = {file: _url_of(target, file) for file in files}
    for file, url in urls.items():
        upload(file, url)
    if target.in_parts:
        sent = {file.name for file in files}
        for name in names_in(target.url):
            if is_part(name) and name not in sent:
                delete(_url_of(target, target.path / name))
    if target.rejects not in urls:
        delete(_url_of(target, target.rejects))
    return list(urls.values())


def _url_of(target: OutputTarget, file: Path) -> str:
    """Return where a file of the output belongs: in the directory, or beside the output."""
    place, sign, settings = str(target.url).partition("?")
    inside = file.parent == target.path
    name = f"/{file.name}" if inside else file.name.removeprefix(target.path.name)
    return f"{place.rstrip('/')}{name}{sign}{settings}"
