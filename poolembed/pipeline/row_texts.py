"""What an operation reads of a chunk: its texts as they are, or filled into a template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolembed.io import RowChunk, Source
from poolembed.pipeline.template import Template

_SAMPLE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class RowTexts:
    """The rows of the input, and how their texts are made.

    Attributes:
        source: the input.
        template: what makes the role `text` of several columns; None takes columns as they are.
    """

    source: Source
    template: Template | None

    @property
    def metadata(self) -> Mapping[str, str]:
        """The template, where there is one."""
        return {} if self.template is None else {"template": self.template.text}

    def of(self, chunk: RowChunk) -> Mapping[str, Sequence[str]]:
        """Return the texts of a chunk by role."""
        return chunk.texts if self.template is None else {"text": self.template.fill(chunk.texts)}

    def first(self, num_rows: int) -> Mapping[str, Sequence[str]] | None:
        """Return the texts among the first rows that have any; the same whatever the size of chunks.

        Args:
            num_rows: most rows to look at together.

        Returns:
            At least one text a role; None where no row has one.
        """
        for chunk in self.source.chunks(num_rows, _SAMPLE_BYTES):
            if chunk.num_rows:
                return self.of(chunk)
        return None
