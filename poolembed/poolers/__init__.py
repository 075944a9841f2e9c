"""From hidden states to pooled data: the pooling layer.

In: packed hidden states (num_tokens, hidden_size) and `PoolingMetadata`, which says where rows begin
    and end and what each of them asks for.
Out: pooled data, one entry a row in row order: a vector or a matrix of floats.
Never: a model, a tokenizer, a file, padding; torch is all that is imported.

To read it in order: `params` (what a row asks for), `cursor` and `metadata` (where rows lie),
`segments` (sums and maxima over rows), `methods` (token vectors to pooled vectors), `heads` and
`token_heads` with `activations` and `act_fn` (pooled vectors to results), `sequence_pooler` and
`token_pooler` (a method and a head), `dispatch` (a pooler for each task). `special`, `splade` and
`late_interaction` stand for themselves.
"""

from poolembed.config.params import LateChunkingParams, PoolingParams, PoolingSpec
from poolembed.poolers.act_fn import get_act_fn, resolve_classifier_act_fn
from poolembed.poolers.activations import (
    LambdaPoolerActivation,
    PoolerActivation,
    PoolerClassify,
    PoolerIdentity,
    PoolerMultiLabelClassify,
    PoolerNormalize,
)
from poolembed.poolers.base import Pooler, PoolerOutput, PoolingParamsUpdate
from poolembed.poolers.cursor import PoolingCursor
from poolembed.poolers.dispatch import DispatchPooler
from poolembed.poolers.heads import ClassifierPoolerHead, EmbeddingPoolerHead, SequencePoolerHead
from poolembed.poolers.late_interaction import (
    compute_maxsim_one_to_many,
    compute_maxsim_score,
    compute_maxsim_score_batched,
)
from poolembed.poolers.metadata import PoolingMetadata, PoolingStates
from poolembed.poolers.methods.base import PoolingMethod, SequencePoolingMethod, TokenPoolingMethod
from poolembed.poolers.methods.concat import ConcatPool
from poolembed.poolers.methods.conformance import check_pooling_method
from poolembed.poolers.methods.maximum import MaxPool
from poolembed.poolers.methods.mean import MeanPool, MeanSqrtLenPool, WeightedMeanPool
from poolembed.poolers.methods.pick import CLSPool, LastPool
from poolembed.poolers.methods.registry import get_seq_pooling_method, get_tok_pooling_method
from poolembed.poolers.methods.tokens import AllPool, StepPool
from poolembed.poolers.sequence_pooler import SequencePooler, pooler_for_classify, pooler_for_embed
from poolembed.poolers.special import BgeM3Pooler, BOSEOSFilter, IdentityPooler
from poolembed.poolers.splade import SpladePooler
from poolembed.poolers.token_heads import TokenClassifierPoolerHead, TokenEmbeddingPoolerHead, TokenPoolerHead
from poolembed.poolers.token_pooler import TokenPooler, pooler_for_token_classify, pooler_for_token_embed

__all__ = [
    "AllPool",
    "BOSEOSFilter",
    "BgeM3Pooler",
    "CLSPool",
    "ClassifierPoolerHead",
    "ConcatPool",
    "DispatchPooler",
    "EmbeddingPoolerHead",
    "IdentityPooler",
    "LambdaPoolerActivation",
    "LastPool",
    "LateChunkingParams",
    "MaxPool",
    "MeanPool",
    "MeanSqrtLenPool",
    "Pooler",
    "PoolerActivation",
    "PoolerClassify",
    "PoolerIdentity",
    "PoolerMultiLabelClassify",
    "PoolerNormalize",
    "PoolerOutput",
    "PoolingCursor",
    "PoolingMetadata",
    "PoolingMethod",
    "PoolingParams",
    "PoolingParamsUpdate",
    "PoolingSpec",
    "PoolingStates",
    "SequencePooler",
    "SequencePoolerHead",
    "SequencePoolingMethod",
    "SpladePooler",
    "StepPool",
    "TokenClassifierPoolerHead",
    "TokenEmbeddingPoolerHead",
    "TokenPooler",
    "TokenPoolerHead",
    "TokenPoolingMethod",
    "WeightedMeanPool",
    "check_pooling_method",
    "compute_maxsim_one_to_many",
    "compute_maxsim_score",
    "compute_maxsim_score_batched",
    "get_act_fn",
    "get_seq_pooling_method",
    "get_tok_pooling_method",
    "pooler_for_classify",
    "pooler_for_embed",
    "pooler_for_token_classify",
    "pooler_for_token_embed",
    "resolve_classifier_act_fn",
]
