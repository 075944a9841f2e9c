"""What the commands on queries and documents must know."""

from dataclasses import dataclass

from poolembed.config.tasks import TaskConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PairConfig(TaskConfig):
    """What `score` must know.

    Attributes:
        max_query_tokens: cross-encoders: most tokens of a query; None for no limit of its own.
        max_document_tokens: cross-encoders: most tokens of a document; None for no limit of its own.
        instruction: rerankers with a prompt: what the prompt calls `instruction`.
        query_prompt_name: bi-encoders: prompt put before queries; None takes the model's own for queries.
        document_prompt_name: bi-encoders: the same for documents.
    """

    max_query_tokens: int | None = None
    max_document_tokens: int | None = None
    instruction: str | None = None
    query_prompt_name: str | None = None
    document_prompt_name: str | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return [
            f"--{name.replace('_', '-')} must be at least 1, got {value}"
            for name in ("max_query_tokens", "max_document_tokens")
            if (value := getattr(self, name)) is not None and value < 1
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig(PairConfig):
    """What `rerank` must know.

    Attributes:
        top_k: most documents of a ranking, at least 1; None for all.
        texts: give the texts of the documents as well.
        run_tag: name of the run in the lines of a TREC run, one word; None takes `poolembed`.
    """

    top_k: int | None = None
    texts: bool = False
    run_tag: str | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = PairConfig.check(self)
        if self.top_k is not None and self.top_k < 1:
            problems.append(f"--top-k must be at least 1, got {self.top_k}")
        if self.run_tag is not None and self.run_tag.split() != [self.run_tag]:
            problems.append(f"--run-tag must be one word, got {self.run_tag!r}")
        return problems
