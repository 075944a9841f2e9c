import math
import weakref

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils._python_dispatch import TorchDispatchMode

from poolembed.errors import PoolingError
from poolembed.poolers import PoolingParams, SpladePooler
from tests.poolers.batches import FLOAT32, batch, packed, rows64

LENS = [3, 1, 9, 2]
VOCABULARY = 23


def decoder(width=8, vocabulary=VOCABULARY):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(vocabulary, width, generator=generator), torch.randn(vocabulary, generator=generator)


def expected(hidden, weight, bias, transform=lambda x: x, strategy="max", function="relu"):
    """The formula, entry by entry in float64."""
    rows = []
    for row in rows64(hidden, LENS):
        logits = [
            weight.double() @ transform(token) + (0 if bias is None else bias.double()) for token in row
        ]
        entries = []
        for entry in range(len(weight)):
            values = [math.log1p(max(0.0, token[entry].item())) for token in logits]
            if function == "log1p_relu":
                values = [math.log1p(value) for value in values]
            entries.append(max(values) if strategy == "max" else sum(values))
        rows.append(entries)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("max_chunk_bytes", [1, 4 * 8 * 3, 4 * 8 * 5, 1 << 20])
@pytest.mark.parametrize("strategy", ["max", "sum"])
@pytest.mark.parametrize("function", ["relu", "log1p_relu"])
def test_it_equals_the_formula_whatever_the_slices(max_chunk_bytes, strategy, function):
    hidden = packed(LENS)
    weight, bias = decoder()
    pooler = SpladePooler(None, weight, bias, strategy, function, max_chunk_bytes)
    out = pooler(hidden, batch(LENS))
    assert out.shape == (len(LENS), VOCABULARY)
    assert out.dtype == torch.float32
    torch.testing.assert_close(
        out.double(), expected(hidden, weight, bias, strategy=strategy, function=function), **FLOAT32
    )


def test_max_and_relu_are_the_default():
    hidden = packed(LENS)
    weight, bias = decoder()
    torch.testing.assert_close(
        SpladePooler(None, weight, bias)(hidden, batch(LENS)).double(),
        expected(hidden, weight, bias),
        **FLOAT32,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    hidden = packed(LENS, dtype=dtype)
    weight, bias = (part.to(dtype) for part in decoder())
    out = SpladePooler(None, weight, bias)(hidden, batch(LENS))
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), expected(hidden, weight, bias), **FLOAT32)


@pytest.mark.parametrize("max_chunk_bytes", [1, 1 << 20])
def test_the_transform_comes_before_the_decoder(max_chunk_bytes):
    weight, _ = decoder(width=5)
    torch.manual_seed(2)
    layer = nn.Linear(8, 5).requires_grad_(False)
    hidden = packed(LENS)
    pooler = SpladePooler(nn.Sequential(layer, nn.GELU()), weight, max_chunk_bytes=max_chunk_bytes)
    exact = layer.double()
    reference = expected(hidden, weight, None, lambda token: nn.functional.gelu(exact(token)))
    layer.float()
    torch.testing.assert_close(pooler(hidden, batch(LENS)).double(), reference, **FLOAT32)


def test_negative_logits_weigh_nothing():
    out = SpladePooler(None, torch.tensor([[-1.0], [1.0]]))(torch.tensor([[2.0], [3.0]]), batch([2]))
    assert out[0].tolist() == pytest.approx([0.0, math.log(4.0)])


def test_a_prompt_that_is_excluded_from_pooling_counts_here():
    hidden = packed(LENS)
    weight, bias = decoder()
    pooler = SpladePooler(None, weight, bias)
    assert torch.equal(pooler(hidden, batch(LENS, excluded=[2, 0, 3, 1])), pooler(hidden, batch(LENS)))


def test_a_value_that_is_none_is_not_hidden():
    hidden = packed(LENS)
    hidden[1, 0] = torch.nan
    out = SpladePooler(None, *decoder())(hidden, batch(LENS))
    assert out[0].isnan().all()
    assert not out[1:].isnan().any()


@pytest.mark.parametrize("strategy", ["max", "sum"])
@pytest.mark.parametrize("function", ["relu", "log1p_relu"])
def test_it_equals_sentence_transformers(strategy, function):
    module = pytest.importorskip("sentence_transformers.sparse_encoder.modules.splade_pooling")
    hidden = packed(LENS)
    weight, bias = decoder()
    logits = pad_sequence(torch.split(hidden @ weight.T + bias, LENS), batch_first=True)
    mask = pad_sequence([torch.ones(n) for n in LENS], batch_first=True).long()
    theirs = module.SpladePooling(strategy, function).eval()(
        {"token_embeddings": logits, "attention_mask": mask}
    )
    out = SpladePooler(None, weight, bias, strategy, function)(hidden, batch(LENS))
    torch.testing.assert_close(out, theirs["sentence_embedding"], **FLOAT32)


def test_an_empty_batch_gives_no_rows():
    assert SpladePooler(None, *decoder())(torch.zeros(0, 8), batch([])).shape == (0, VOCABULARY)


def test_it_serves_embed_only():
    assert SpladePooler(None, *decoder()).get_supported_tasks() == {"embed"}


@pytest.mark.parametrize("strategy", ["mean", "", "relu"])
def test_unknown_strategies_are_refused(strategy):
    with pytest.raises(PoolingError, match=f"knows max and sum, not '{strategy}'"):
        SpladePooler(None, *decoder(), pooling_strategy=strategy)


def test_unknown_functions_are_refused():
    with pytest.raises(PoolingError, match="knows relu and log1p_relu, not 'gelu'"):
        SpladePooler(None, *decoder(), activation_function="gelu")


def test_a_bias_of_another_size_is_refused():
    with pytest.raises(PoolingError, match=r"decoder bias \(5,\) does not fit weight \(23, 8\)"):
        SpladePooler(None, decoder()[0], torch.zeros(5))


def test_rows_must_be_whole_and_uncut():
    pooler = SpladePooler(None, *decoder())
    with pytest.raises(RuntimeError, match="partial prefill is not supported with SPLADE"):
        pooler(packed([2]), batch([3], scheduled=[2]))
    with pytest.raises(PoolingError, match="do not fit"):
        pooler(packed([4]), batch([3]))
    with pytest.raises(PoolingError, match="'dimensions' cannot cut it"):
        pooler(
            packed([3, 3]),
            batch([3, 3], params=[PoolingParams(task="embed"), PoolingParams(task="embed", dimensions=4)]),
        )


def test_it_needs_no_gradients_and_holds_no_state():
    weight = nn.Parameter(decoder()[0])
    bias = nn.Parameter(decoder()[1])
    pooler = SpladePooler(None, weight, bias)
    assert pooler(packed(LENS), batch(LENS)).requires_grad is False
    assert pooler.state_dict() == {}
    assert pooler.decoder_weight.data_ptr() == weight.data_ptr()


class Products(TorchDispatchMode):
    """Keeps the shapes of all matrix products."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.shapes.append(tuple(out.shape))
        return out


@pytest.mark.parametrize(
    ("max_chunk_bytes", "width", "side"), [(400, 8, 10), (400, 50, 2), (100, 1, 5), (1, 8, 1), (400, 1000, 1)]
)
def test_slices_are_as_large_as_logits_and_copies_may_be(max_chunk_bytes, width, side):
    weight, _ = decoder(width)
    pooler = SpladePooler(None, weight, max_chunk_bytes=max_chunk_bytes)
    with Products() as seen:
        pooler(packed([12], width), batch([12]))
    assert seen.shapes[0] == (side, side)
    assert max(rows for rows, _ in seen.shapes) == max(columns for _, columns in seen.shapes) == side


class Peak(TorchDispatchMode):
    """Sums the bytes of all tensors that live at once, those from before excepted."""

    def __init__(self, *known):
        super().__init__()
        self.alive = {tensor.untyped_storage()._cdata: None for tensor in known}
        self.now = self.most = self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.count(tensor)
        return out

    def count(self, tensor):
        storage = tensor.untyped_storage()
        known = self.alive.get(storage._cdata, 0)
        if known is None:
            return
        if known == 0:
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            self.largest = max(self.largest, storage.nbytes())
        self.alive[storage._cdata] = known + 1
        weakref.finalize(tensor, self.release, storage._cdata, storage.nbytes())

    def release(self, key, num_bytes):
        self.alive[key] -= 1
        if self.alive[key] == 0:
            del self.alive[key]
            self.now -= num_bytes


@pytest.mark.parametrize(("strategy", "dtype"), [("max", torch.bfloat16), ("sum", torch.float32)])
def test_a_vocabulary_of_250_000_is_pooled_in_bounded_memory(strategy, dtype):
    """64 rows of 512 tokens: 33 GB of logits, of which a few slices exist at once.

    On the meta device every tensor has its true size and nothing is computed.
    """
    rows, tokens, vocabulary, width = 64, 512, 250_000, 768
    hidden = torch.zeros(rows * tokens, width, dtype=dtype, device="meta")
    weight = torch.zeros(vocabulary, width, dtype=dtype, device="meta")
    bias = torch.zeros(vocabulary, dtype=dtype, device="meta")
    transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)).to("meta")
    pooler = SpladePooler(transform, weight, bias, strategy)
    metadata = batch([tokens] * rows)
    with Peak(hidden, weight, bias, *transform.parameters()) as peak:
        out = pooler(hidden, metadata)
    assert out.shape == (rows, vocabulary)
    result = rows * vocabulary * 4
    assert peak.largest == result
    chunk = 16 * 1024 * 1024
    assert peak.most <= result + 6 * chunk


def test_the_measure_of_memory_finds_the_dense_way_out():
    states, weight = torch.zeros(512, 768, device="meta"), torch.zeros(250_000, 768, device="meta")
    with Peak(states, weight) as naive:
        (states @ weight.T).relu().log1p().amax(0)
    assert naive.most >= 2 * 512 * 250_000 * 4


def test_smaller_chunks_take_less_memory():
    """The same bound with real tensors."""
    hidden, metadata = packed([64] * 4, width=16), batch([64] * 4)
    weight, bias = decoder(16, 5000)
    pooler = SpladePooler(None, weight, bias, max_chunk_bytes=16 * 1024)
    with Peak(hidden, weight, bias) as peak:
        pooler(hidden, metadata)
    assert peak.most <= 4 * 5000 * 4 + 6 * 16 * 1024
