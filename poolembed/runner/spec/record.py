"""ModelSpec: everything a checkpoint declares, settled, each value with its source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poolembed.config import PoolerConfig
from poolembed.runner.spec.dense import DenseSpec
from poolembed.runner.spec.late_interaction import LateInteraction
from poolembed.runner.spec.report import Row, rows, to_json
from poolembed.runner.spec.rerank import LogitHead
from poolembed.runner.spec.templates import PairTemplate
from poolembed.runner.spec.tokenizer import PaddingSide, TokenizerSpec
from poolembed.tasks import SCORE_TYPE_MAP, PoolingTask, ScoreType


@dataclass(frozen=True, slots=True, kw_only=True)
class BgeM3Heads:
    """The extra heads of BGE-M3, as pickled files relative to the model folder.

    Attributes:
        colbert: linear layer of the multi-vector output.
        sparse: linear layer of the lexical weights.
    """

    colbert: str
    sparse: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What a checkpoint is and how its authors meant it to be run, after the user's changes.

    Attributes:
        folder: the model folder.
        subfolder: where the transformer lies in it; empty for the root.
        name: hub name or folder name.
        kind: `embedding`, `sparse`, `late-interaction`, `cross-encoder`, `classifier`,
            `token-classifier`, `reward` or `process-reward`.
        architecture: class that wrote the weights.
        model_type: family name of transformers.
        tasks: pooling tasks it supports, the one to perform first.
        hidden_size: width of a token vector.
        dtype: precision of the stored weights as declared, such as `float32`; None when undeclared.
        is_causal: whether a token sees only those before it.
        weight_files: weights of the transformer, relative to `folder`.
        config_overrides: attributes that the loader must set on transformers' configuration.
        tokenizer: what the tokenizer files say.
        max_length: most tokens of a row, special tokens included.
        max_positions: most tokens the model has positions for; None for relative positions.
        do_lower_case: whether texts are lower-cased before they are tokenised.
        token_types: whether the second text of a pair gets its own token type.
        prompts: prompt texts by name.
        default_prompt_name: the prompt put before every row by default.
        pooling: `CLS`, `LAST`, `MEAN`, `MAX`, `MEAN_SQRT_LEN`, `WEIGHTED_MEAN`, several joined by `+`, or a
            registered name.
        tok_pooling: `ALL` or `STEP`.
        include_prompt: whether the prompt's tokens are pooled too.
        dense: layers after the pooling (embedding) or on every token (late interaction).
        embedding_size: width of an embedding, before any matryoshka cut.
        is_matryoshka: whether embeddings may be cut.
        matryoshka_dimensions: the sizes they may be cut to; None when any.
        similarity: how two outputs are compared: `cosine`, `dot`, `euclidean`, `manhattan` or `MaxSim`.
        activation: function of the output: `normalize` (L2), `none`, `sigmoid`, `softmax`, `log1p(relu)`,
            or an element-wise class of torch.nn.
        use_activation: whether it is applied by default.
        labels: name of every output of a classifier, in order; empty for other kinds.
        problem_type: transformers' problem type; None when undeclared.
        classifier_pooling: `cls` or `mean` where the checkpoint chooses it; None elsewhere.
        logit_head: vocabulary entries that score; None for models with a head of their own.
        template: prompt for pairs of texts; None when they are tokenised as a pair.
        late_interaction: markers, lengths, expansion; None for other kinds.
        bge_m3: BGE-M3's extra heads; None without them.
        step_tag_id: token that ends a step, for reward models; None when unknown.
        pooler_config: the user's options with what the checkpoint declares filled in.
        warnings: what the user should know, one line each.
        sources: who declares each setting, by its name in `rows()`.
    """

    folder: Path
    subfolder: str
    name: str
    kind: str
    architecture: str
    model_type: str
    tasks: tuple[PoolingTask, ...]
    hidden_size: int
    dtype: str | None
    is_causal: bool
    weight_files: tuple[str, ...]
    config_overrides: Mapping[str, object]
    tokenizer: TokenizerSpec
    max_length: int
    max_positions: int | None
    do_lower_case: bool
    token_types: bool
    prompts: Mapping[str, str]
    default_prompt_name: str | None
    pooling: str
    tok_pooling: str
    include_prompt: bool
    dense: tuple[DenseSpec, ...]
    embedding_size: int
    is_matryoshka: bool
    matryoshka_dimensions: tuple[int, ...] | None
    similarity: str
    activation: str
    use_activation: bool
    labels: tuple[str, ...]
    problem_type: str | None
    classifier_pooling: str | None
    logit_head: LogitHead | None
    template: PairTemplate | None
    late_interaction: LateInteraction | None
    bge_m3: BgeM3Heads | None
    step_tag_id: int | None
    pooler_config: PoolerConfig
    warnings: tuple[str, ...]
    sources: Mapping[str, str] = field(repr=False)

    @property
    def task(self) -> PoolingTask:
        """The task to perform when the call names none."""
        return self.tasks[0]

    @property
    def num_labels(self) -> int:
        """Number of outputs of a classifier; 0 for other kinds."""
        return len(self.labels)

    @property
    def padding_side(self) -> PaddingSide:
        """Side that padding goes to."""
        return self.tokenizer.padding_side

    @property
    def default_prompt(self) -> str:
        """Text put before every row by default; empty for none."""
        return self.prompts[self.default_prompt_name] if self.default_prompt_name else ""

    @property
    def score_type(self) -> ScoreType | None:
        """How two texts are scored; None when they cannot be."""
        score_type = SCORE_TYPE_MAP.get(self.task)
        return None if score_type == "cross-encoder" and self.num_labels != 1 else score_type

    def to_json(self) -> dict[str, object]:
        """Return the spec as plain values for `inspect --json`; pooling by sentence-transformers' names."""
        return to_json(self)

    def rows(self) -> tuple[Row, ...]:
        """Return (setting, value, source) for every setting that has a meaning for this model."""
        return rows(self)
