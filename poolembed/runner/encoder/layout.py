"""Where checkpoints of each family keep the weights of an encoder.

All of one shape: embeddings of words, positions and types; layers of attention and of two linear layers,
each with a norm after it. They differ in names, in how positions are counted and in what MPNet and ELECTRA
have besides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

# Names of parts in `model`, by names below the prefix of the family.
_BERT_EMBEDDINGS = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_UNTYPED_EMBEDDINGS = {part: name for part, name in _BERT_EMBEDDINGS.items() if part != "types"}
_BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}
_MPNET_LAYER = _BERT_LAYER | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "output": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}
_DISTILBERT_LAYER = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "output": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "norm": "output_layer_norm",
}


# Names in config.json, by attributes of `settings.Settings`.
_BERT_SETTINGS = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "activation": "hidden_act",
    "norm_eps": "layer_norm_eps",
}
_DISTILBERT_SETTINGS = {
    "num_layers": "n_layers",
    "num_heads": "n_heads",
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "activation": "activation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedHead:
    """Names of what comes before the output embeddings of a masked language model, and of those.

    Attributes:
        dense: linear layer.
        norm: behind the activation.
        decoder: the output embeddings; where they are not in the checkpoint, those of words.
        biases: of the output embeddings; the first of these names that is there.
        activation: behind the linear layer; None for that of the layers.
    """

    dense: str
    norm: str
    decoder: str
    biases: tuple[str, ...]
    activation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierHead:
    """Names of the two linear layers of a classifier of texts, and the activation between them."""

    dense: str
    activation: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Names in the checkpoints of a family.

    Attributes:
        prefix: of the encoder, where it has a head; the head's own names are given in full.
        classifier: head of a classifier of texts.
        masked: head of a masked language model; None where transformers has to load it.
        embeddings: parts of the embeddings; without `types`, texts of a pair are not told apart.
        layer: parts of a layer.
        layers: prefix of a layer, with its number.
        settings: names in config.json.
        norm_eps: what norms add to the variance, where config.json does not say it.
        padding_idx: positions count on from the next number; None where they begin at 0.
        counts_from_pad: positions count on from the configuration's pad token instead.
        position_bias: embedding of relative positions, for each head; None for absolute positions alone.
        projection: linear layer behind embeddings that are narrower than the layers.
    """

    prefix: str
    classifier: ClassifierHead
    masked: MaskedHead | None
    embeddings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_BERT_EMBEDDINGS))
    layer: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_BERT_LAYER))
    layers: str = "encoder.layer.{}."
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_BERT_SETTINGS))
    norm_eps: float | None = None
    padding_idx: int | None = None
    counts_from_pad: bool = False
    position_bias: str | None = None
    projection: str | None = None


_TANH_CLASSIFIER = ClassifierHead(dense="classifier.dense", activation="tanh", output="classifier.out_proj")
_LM_HEAD = MaskedHead(
    dense="lm_head.dense",
    norm="lm_head.layer_norm",
    decoder="lm_head.decoder",
    biases=("lm_head.decoder.bias", "lm_head.bias"),
    activation="gelu",
)
_ROBERTA = Family(prefix="roberta.", classifier=_TANH_CLASSIFIER, masked=_LM_HEAD, counts_from_pad=True)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "bert": Family(
            prefix="bert.",
            classifier=ClassifierHead(dense="bert.pooler.dense", activation="tanh", output="classifier"),
            masked=MaskedHead(
                dense="cls.predictions.transform.dense",
                norm="cls.predictions.transform.LayerNorm",
                decoder="cls.predictions.decoder",
                biases=("cls.predictions.decoder.bias", "cls.predictions.bias"),
            ),
        ),
        "camembert": _ROBERTA,
        "distilbert": Family(
            prefix="distilbert.",
            classifier=ClassifierHead(dense="pre_classifier", activation="relu", output="classifier"),
            masked=MaskedHead(
                dense="vocab_transform",
                norm="vocab_layer_norm",
                decoder="vocab_projector",
                biases=("vocab_projector.bias",),
            ),
            embeddings=_UNTYPED_EMBEDDINGS,
            layer=_DISTILBERT_LAYER,
            layers="transformer.layer.{}.",
            settings=_DISTILBERT_SETTINGS,
            norm_eps=1e-12,
        ),
        "electra": Family(
            prefix="electra.",
            classifier=ClassifierHead(
                dense="classifier.dense", activation="gelu", output="classifier.out_proj"
            ),
            masked=None,
            projection="embeddings_project",
        ),
        "mpnet": Family(
            prefix="mpnet.",
            classifier=_TANH_CLASSIFIER,
            masked=_LM_HEAD,
            embeddings=_UNTYPED_EMBEDDINGS,
            layer=_MPNET_LAYER,
            padding_idx=1,
            position_bias="encoder.relative_attention_bias",
        ),
        "roberta": _ROBERTA,
        "xlm-roberta": _ROBERTA,
    }
)
"""By transformers' `model_type`."""
