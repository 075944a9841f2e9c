"""Which rows are read, and what becomes of rows that are not as they should be."""

from dataclasses import dataclass
from typing import Literal

InputFormat = Literal["jsonl", "parquet", "arrow", "csv", "tsv", "text"]
OnError = Literal["fail", "skip"]
OnNull = Literal["fail", "reject", "null"]
OnEmpty = Literal["embed", "fail", "reject", "null"]
OnBadText = Literal["fail", "reject", "replace"]
OnDuplicateId = Literal["keep", "error", "first"]

INPUT_FORMATS: tuple[InputFormat, ...] = ("jsonl", "parquet", "arrow", "csv", "tsv", "text")
ON_ERROR: tuple[OnError, ...] = ("fail", "skip")
ON_NULL: tuple[OnNull, ...] = ("fail", "reject", "null")
ON_EMPTY: tuple[OnEmpty, ...] = ("embed", "fail", "reject", "null")
ON_BAD_TEXT: tuple[OnBadText, ...] = ("fail", "reject", "replace")
ON_DUPLICATE_ID: tuple[OnDuplicateId, ...] = ("keep", "error", "first")

_CHOICES: dict[str, tuple[str, ...]] = {
    "input_format": INPUT_FORMATS,
    "on_error": ON_ERROR,
    "on_null": ON_NULL,
    "on_empty": ON_EMPTY,
    "on_bad_text": ON_BAD_TEXT,
    "on_duplicate_id": ON_DUPLICATE_ID,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputConfig:
    r"""Which rows are read.

    Attributes:
        paths: files, directories, globs or URLs of them, or `-` for standard input; at least one, and none
            where queries, documents and candidates are joined.
        input_format: what all inputs are, whatever their names say; None goes by each name, and by the
            first bytes of standard input.
        delimiter: what stands between the cells of CSV and TSV, one character; None takes `,` and tabulator.
        text_field: the column with the text; None takes `text`, else the only string column.
        query_field: the column with the query; None looks for a known pair of names.
        document_field: the column with the document; None looks for a known pair of names.
        documents_field: the column with the list of documents; likewise. In `documents`, the column with
            the text.
        queries: join: where the queries are; a row has an id and a text.
        documents: join: where the documents are; likewise.
        candidates: join: which documents may fit which query, by their ids.
        query_id_field: join: the column with the id of a query; None looks for a known name.
        document_id_field: join: the column with the id of a document; None looks for a known name.
        template: the text, made of columns: `{title}\n{text}`; None takes one column as it is.
        id_field: the column with the name of each row; None takes `id` where there is one.
        columns: the input columns kept in the output, in this order; None keeps all.
        limit: read at most this many rows.
        on_error: what a row with unusable text does: stop the run, or go to the rejects file.
        on_null: what a row without a text does: likewise, or be written with null results; None takes
            `on_error`.
        on_empty: what a row does whose text is nothing but white space: be computed, or as in `on_null`.
        on_bad_text: what a row with lone surrogates or bytes that are not UTF-8 does: likewise, or have
            them replaced by U+FFFD; None replaces surrogates and treats bytes as `on_error` says.
        on_duplicate_id: what a row does whose id stood before: be kept, stop the run, or be rejected.
    """

    paths: tuple[str, ...]
    input_format: InputFormat | None = None
    delimiter: str | None = None
    text_field: str | None = None
    query_field: str | None = None
    document_field: str | None = None
    documents_field: str | None = None
    queries: str | None = None
    documents: str | None = None
    candidates: str | None = None
    query_id_field: str | None = None
    document_id_field: str | None = None
    template: str | None = None
    id_field: str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    on_error: OnError = "fail"
    on_null: OnNull | None = None
    on_empty: OnEmpty = "embed"
    on_bad_text: OnBadText | None = None
    on_duplicate_id: OnDuplicateId = "keep"

    def column_of(self, role: str) -> str | None:
        """Return the column that the user names for a role of texts (`query`); None where they name none."""
        named = {
            "text": self.text_field,
            "query": self.query_field,
            "document": self.document_field,
            "documents": self.documents_field,
        }
        return named.get(role)

    @property
    def is_join(self) -> bool:
        """Whether rows are put together from queries, documents and candidates."""
        return any(self._joined.values())

    @property
    def _joined(self) -> dict[str, str | None]:
        return {
            "--queries": self.queries,
            "--documents": self.documents,
            "--candidates": self.candidates,
        }

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = self._join_problems()
        if not self.paths and not self.is_join:
            problems.append("no input given")
        if self.limit is not None and self.limit < 1:
            problems.append(f"--limit must be at least 1, got {self.limit}")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                option = f"--{name.replace('_', '-')}"
                problems.append(f"{option} must be one of {', '.join(known)}, got {value!r}")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            problems.append(
                f"--delimiter must be one character, and no quote or line end, got {self.delimiter!r}"
            )
        if self.template is not None and self.text_field is not None:
            problems.append("--template and --text-field exclude each other")
        if self.paths.count("-") > 1:
            problems.append("standard input ('-') can be read only once")
        return problems

    def _join_problems(self) -> list[str]:
        if not self.is_join:
            names = ("query_id_field", "document_id_field")
            return [
                f"--{name.replace('_', '-')} is for --queries, --documents and --candidates"
                for name in names
                if getattr(self, name) is not None
            ]
        missing = [option for option, value in self._joined.items() if not value]
        problems = [f"{' and '.join(missing)} missing: a join needs all three"] if missing else []
        if self.paths:
            problems.append("INPUT and --candidates exclude each other")
        if self.candidates == "-" or (self.queries == "-" and self.documents == "-"):
            problems.append("standard input ('-') may hold the queries or the documents, nothing else")
        if "null" in (self.on_null, self.on_empty):
            problems.append(
                "--on-null null and --on-empty null are not for a join, which has no rows for them"
            )
        if self.on_duplicate_id != "keep":
            problems.append("--on-duplicate-id is not for a join, in which every id stands once")
        return problems
