"""Texts that a Python program hands over, chunk by chunk and checked."""

from collections.abc import Iterable, Iterator
from itertools import islice

from poolembed.errors import InputError

CHUNK_TEXTS = 8192
"""Texts held and sorted by length together."""


def chunks_of(texts: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first text, and the texts, of each chunk.

    Args:
        texts: any iterable of strings; a generator is used up as far as it is computed. Unpaired
            surrogates become U+FFFD.

    Raises:
        InputError: it is one string, or holds something that is no string.
    """
    if isinstance(texts, str):
        raise InputError("the texts are one string", "put it in a list: [text]")
    first, remaining = 0, iter(texts)
    while chunk := [_checked(first + row, text) for row, text in enumerate(islice(remaining, CHUNK_TEXTS))]:
        yield first, chunk
        first += len(chunk)


def _checked(row: int, text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"text {row} is no string but {type(text).__name__}")
    # Tokenizers take UTF-8, which has no unpaired surrogates.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
