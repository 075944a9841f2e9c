"""The tokenizers of one model: for texts, for pairs, and for the roles of late interaction."""

from dataclasses import dataclass
from typing import Any

from poolembed.errors import ConfigError
from poolembed.runner.located_tokens import LocatingTokenizer
from poolembed.runner.pair_tokenizer import PairLimits, PairTokenizer, TemplateTokenizer
from poolembed.runner.request import named_prompt
from poolembed.runner.role_tokenizer import Role, RoleTokenizer
from poolembed.runner.spec import ModelSpec
from poolembed.runner.tokenizer import RowTokenizer
from poolembed.runner.windows import WindowTokenizer


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """Makes a tokenizer for each kind of input that the model can read.

    All of them share one backend, so only one may run at a time.

    Attributes:
        spec: what the checkpoint declares.
        tokenizer: the tokenizer as transformers built it.
    """

    spec: ModelSpec
    tokenizer: Any

    def texts(self, prompt: str = "") -> RowTokenizer:
        """Return the tokenizer of single texts, each behind a prompt."""
        return RowTokenizer(
            self.tokenizer,
            max_length=self.spec.max_length,
            prompt=prompt,
            pools_prompt=self.spec.include_prompt,
        )

    def windows(self, prompt: str = "", overlap_tokens: int = 0) -> WindowTokenizer:
        """Return the tokenizer that divides long texts into windows instead of cutting them.

        Raises:
            ConfigError: windows of the model's length have no room for prompt and overlap.
        """
        return WindowTokenizer(
            self.tokenizer,
            max_length=self.spec.max_length,
            overlap_tokens=overlap_tokens,
            prompt=prompt,
            pools_prompt=self.spec.include_prompt,
        )

    def located(self, overlap_tokens: int | None = None) -> LocatingTokenizer:
        """Return the tokenizer of whole texts that tells where in its text each token stands.

        Args:
            overlap_tokens: tokens of text that neighbouring windows share; None takes a quarter of a window.

        Raises:
            ConfigError: windows of the model's length have no room for the overlap.
        """
        return LocatingTokenizer(
            self.tokenizer, max_length=self.spec.max_length, overlap_tokens=overlap_tokens
        )

    def role(self, role: Role) -> RoleTokenizer:
        """Return the tokenizer of queries or documents of a late-interaction model.

        Raises:
            ConfigError: the model does not tell queries from documents by tokens.
        """
        if self.spec.late_interaction is None:
            raise ConfigError(
                f"{self.spec.name} is a {self.spec.kind} model, which has no roles", "leave out --role"
            )
        return RoleTokenizer(
            self.tokenizer, self.spec.late_interaction, role, max_length=self.spec.max_length
        )

    def pairs(
        self,
        *,
        max_query_tokens: int | None = None,
        max_document_tokens: int | None = None,
        instruction: str | None = None,
    ) -> PairTokenizer | TemplateTokenizer:
        """Return the tokenizer of pairs: the model's prompt where it has one, else its pair form.

        Args:
            max_query_tokens: most tokens of a query; None for no limit of its own.
            max_document_tokens: most tokens of a document; None for no limit of its own.
            instruction: what a prompt calls `instruction`.

        Raises:
            ConfigError: an instruction for a model without a prompt.
        """
        limits = PairLimits(
            max_length=self.spec.max_length,
            max_query_tokens=max_query_tokens,
            max_document_tokens=max_document_tokens,
        )
        if self.spec.template is not None:
            return TemplateTokenizer(self.tokenizer, limits, self.spec.template, instruction)
        if instruction is not None:
            raise ConfigError(f"{self.spec.name} has no prompt that takes an instruction")
        return PairTokenizer(self.tokenizer, limits, token_types=self.spec.token_types)

    def prompt(self, name: str | None) -> str:
        """Return a prompt of the model by name; None returns the one it puts before every row.

        Raises:
            ConfigError: the model declares no prompt of that name.
        """
        return named_prompt(self.spec, name)
