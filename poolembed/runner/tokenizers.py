"""The tokenizers of one model: for texts, for pairs, and for the roles of late interaction."""

from dataclasses import dataclass

from poolembed.config import Role
from poolembed.errors import ConfigError
from poolembed.runner.located_tokens import LocatingTokenizer
from poolembed.runner.pair_tokenizer import PairLimits, PairTokenizer, TemplateTokenizer
from poolembed.runner.plain_tokenizer import TextTokenizer
from poolembed.runner.pooling_request import named_prompt
from poolembed.runner.role_tokenizer import RoleTokenizer
from poolembed.runner.spec import ModelSpec
from poolembed.runner.spec.document import USER
from poolembed.runner.tokenizer import RowTokenizer
from poolembed.runner.windows import WindowTokenizer


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """Makes a tokenizer for each kind of input that the model can read.

    All of them share one backend, so only one may run at a time.

    Attributes:
        spec: what the checkpoint declares.
        tokenizer: the tokenizer as transformers builds it.
    """

    spec: ModelSpec
    tokenizer: TextTokenizer

    def texts(self, prompt: str = "", *, with_offsets: bool = False) -> RowTokenizer:
        """Return the tokenizer of single texts, each behind a prompt.

        Args:
            prompt: what stands before every text.
            with_offsets: whether rows tell the characters of each token.

        Raises:
            ConfigError: the maximum length has no room for text.
        """
        return RowTokenizer(
            self.tokenizer,
            max_length=self.spec.max_length,
            prompt=prompt,
            pools_prompt=self.spec.include_prompt,
            with_offsets=with_offsets,
        )

    def windows(
        self, prompt: str = "", overlap_tokens: int = 0, *, with_spans: bool = False
    ) -> WindowTokenizer:
        """Return the tokenizer that divides long texts into windows instead of cutting them.

        Args:
            prompt: what stands before every text.
            overlap_tokens: tokens of text that a window repeats from the one before.
            with_spans: whether windows tell the characters that they stand for.

        Raises:
            ConfigError: windows of the model's length have no room for prompt and overlap.
        """
        return WindowTokenizer(
            self.tokenizer,
            max_length=self.spec.max_length,
            overlap_tokens=overlap_tokens,
            prompt=prompt,
            pools_prompt=self.spec.include_prompt,
            with_spans=with_spans,
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

    def role(self, role: Role, *, with_offsets: bool = False) -> RoleTokenizer:
        """Return the tokenizer of queries or documents of a late-interaction model.

        Args:
            role: whose texts these are.
            with_offsets: whether rows tell the characters of each token.

        Raises:
            ConfigError: the model does not tell queries from documents by tokens.
        """
        if self.spec.late_interaction is None:
            raise ConfigError(
                f"{self.spec.name} has no roles: its kind is {self.spec.kind}", "leave out --role"
            )
        return RoleTokenizer(
            self.tokenizer,
            self.spec.late_interaction,
            role,
            max_length=self._role_length(role),
            with_offsets=with_offsets,
        )

    def _role_length(self, role: Role) -> int:
        """Return the most tokens of a row of one role.

        Where the authors limit a role, that replaces their limit for all texts, which does not count the
        marker; only the user's own limit, and the model's positions, stand above it.
        """
        spec, settings = self.spec, self.spec.late_interaction
        assert settings is not None
        declared = settings.query_length if role == "query" else settings.document_length
        if declared is None:
            return spec.max_length
        by_user = spec.sources["max_length"] == USER
        return min(declared, spec.max_length if by_user else spec.max_positions or declared)

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

    def vocabulary(self, size: int) -> list[str]:
        """Return tokens as the tokenizer writes it, by its id.

        Args:
            size: how many there are to be; outputs of a model may be more than its tokens, and those
                without a token are called `<id N>`.
        """
        tokens = [f"<id {token_id}>" for token_id in range(size)]
        for token, token_id in self.tokenizer.get_vocab().items():
            if token_id < size:
                tokens[token_id] = token
        return tokens

    @property
    def num_tokens(self) -> int:
        """Number of token ids, added ones included."""
        return 1 + max(int(token_id) for token_id in self.tokenizer.get_vocab().values())

    @property
    def special_ids(self) -> list[int]:
        """Ids of the tokens that stand for no text: begin, end, padding, unknown and the like."""
        return sorted(self.tokenizer.all_special_ids)
