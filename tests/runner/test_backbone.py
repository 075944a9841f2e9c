"""Hidden states of a batch are those of each row alone, by transformers' own eager attention."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding

from poolembed.runner.attention_interface import PACKED_ATTENTION
from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import TokenizedRows, pack
from poolembed.runner.self_check import TOLERANCES, relative_error
from tests.runner.backbones import rows_of
from tests.runner.tiny import DECODER, tiny

# float32 hidden states after a few layers, sums in another order: the limit that the zoo's notes give.
TOLERANCE = {"rtol": 0, "atol": 1e-4}

PACKED = [
    "bert-mean",
    "roberta-mean",
    "xlmroberta-cls",
    "distilbert-mean",
    "electra-cls",
    "modernbert-cls",
    "nomic-bert-mean",
    "llama-last",
    "mistral-last",
    "qwen2-last",
    "qwen3-last",
    "gemma3-bidirectional",
    "bert-mean-fp16",
    "mpnet-mean",
]
EQUAL_LENGTH = ["deberta-v2-mean", "t5-encoder-mean"]

# Two rows of one length, one longer than the windows of the zoo (32 and 64), one of a single token.
LENGTHS = (150, 40, 40, 9, 1)


def random_rows(lengths, vocab_size, *, seed=1):
    return TokenizedRows(
        token_ids=np.random.default_rng(seed).integers(10, vocab_size, sum(lengths)),
        lengths=np.asarray(lengths, np.int64),
        truncated=np.zeros(len(lengths), np.bool_),
    )


@pytest.fixture(scope="module")
def alone(models):
    """Return the hidden states of token ids alone, by a model loaded for this test."""
    loaded = {}

    def run(family, ids):
        if family not in loaded:
            auto = AutoModelForTextEncoding if family.startswith("t5") else AutoModel
            loaded[family] = auto.from_pretrained(
                models / family, attn_implementation="eager", dtype=torch.float32
            ).eval()
        with torch.inference_mode():
            return loaded[family](input_ids=torch.as_tensor(ids)[None]).last_hidden_state[0]

    return run


def batches_of(backbone, rows):
    """One batch of everything, or one for each length."""
    if backbone.path == "packed":
        return [pack(rows, np.arange(len(rows.lengths)))]
    return [pack(rows, np.flatnonzero(rows.lengths == length)) for length in np.unique(rows.lengths)]


@pytest.mark.parametrize("family", PACKED + EQUAL_LENGTH)
def test_a_batch_gives_each_row_the_hidden_states_it_has_alone(family, runner_of, alone):
    backbone = runner_of(family).backbone
    assert backbone.path == ("packed" if family in PACKED else "equal-length")
    rows = random_rows(LENGTHS, backbone.model.get_input_embeddings().num_embeddings)
    row_ids = np.split(rows.token_ids, np.cumsum(rows.lengths)[:-1])
    for batch in batches_of(backbone, rows):
        hidden_states = backbone.forward(batch)
        assert hidden_states.shape == (batch.num_tokens, backbone.hidden_size)
        split = hidden_states.split(batch.lengths.tolist())
        for row, states in zip(batch.rows.tolist(), split, strict=True):
            torch.testing.assert_close(states, alone(family, row_ids[row]), **TOLERANCE)


@pytest.mark.parametrize("family", ["roberta-mean", "xlmroberta-cls"])
def test_a_pad_token_inside_a_text_has_the_position_that_transformers_gives_it(family, runner_of, alone):
    runner = runner_of(family)
    rows = random_rows((12, 12, 5), runner.backbone.model.get_input_embeddings().num_embeddings)
    rows.token_ids[[3, 4, 20, 24, 28]] = runner.backbone.model.config.pad_token_id
    hidden_states = runner.backbone.forward(pack(rows, np.arange(3)))
    row_ids = np.split(rows.token_ids, np.cumsum(rows.lengths)[:-1])
    for ids, states in zip(row_ids, hidden_states.split([12, 12, 5]), strict=True):
        # Without a mask, transformers sees the pad tokens as part of the text, as the packed path does.
        torch.testing.assert_close(states, alone(family, ids), **TOLERANCE)


def test_the_segments_of_pairs_reach_the_model(runner_of):
    backbone = runner_of("bert-mean").backbone
    rows = random_rows((8, 6), backbone.model.get_input_embeddings().num_embeddings)
    types = np.asarray([0] * 4 + [1] * 4 + [0] * 3 + [1] * 3)
    typed = TokenizedRows(rows.token_ids, rows.lengths, rows.truncated, token_type_ids=types)
    hidden_states = backbone.forward(pack(typed, np.arange(2)))
    backbone.use_path("equal-length")
    try:
        alone = torch.cat([backbone.forward(pack(typed, np.asarray([row]))) for row in range(2)])
        untyped = backbone.forward(pack(rows, np.asarray([0])))
    finally:
        backbone.use_path("packed")
    torch.testing.assert_close(hidden_states, alone, **TOLERANCE)
    assert (hidden_states[:8] - untyped).abs().max() > 1e-2


def test_a_path_can_be_changed_and_changed_back(models):
    model = AutoModel.from_pretrained(models / "bert-mean").eval()
    backbone = Backbone(model, torch.device("cpu"))
    assert backbone.path == "equal-length"
    batch = pack(random_rows((20, 20), 900), np.arange(2))
    first = backbone.forward(batch)
    backbone.use_path("packed")
    packed, num_calls = backbone.count_packed_calls(batch)
    assert num_calls == model.config.num_hidden_layers
    torch.testing.assert_close(packed, first, **TOLERANCE)
    backbone.use_path("equal-length")
    assert model.config._attn_implementation == backbone.own_attention
    torch.testing.assert_close(backbone.forward(batch), first)


class Watched(torch.nn.Module):
    """Keeps the last tokens and boundaries that a model was given."""

    def __init__(self, model):
        super().__init__()
        self.inner = model
        self.config = model.config
        self.input_ids = self.packed_rows = self.position_ids = None

    def forward(self, input_ids, packed_rows=None, position_ids=None):
        self.input_ids, self.packed_rows, self.position_ids = input_ids, packed_rows, position_ids
        return self.inner(input_ids=input_ids, packed_rows=packed_rows, position_ids=position_ids)


def test_off_the_cpu_attention_is_told_where_rows_begin(models):
    with torch.device("meta"):  # shapes and types, and no numbers
        model = Watched(AutoModel.from_config(AutoConfig.from_pretrained(models / "bert-mean")))
    model.inner.set_attn_implementation(PACKED_ATTENTION)
    backbone = Backbone(model, torch.device("meta"), path="packed")
    states = backbone.forward(pack(random_rows((7, 5, 5), 900), np.arange(3)))
    assert (states.shape, states.device.type) == ((17, backbone.hidden_size), "meta")
    rows = model.packed_rows
    assert (rows.cu_seq_lens.shape, rows.cu_seq_lens.dtype) == ((4,), torch.int32)
    assert (rows.runs, rows.max_length) == ([(1, 7), (2, 5)], 7)


def test_no_gradient_is_kept(runner_of):
    backbone = runner_of("bert-mean").backbone
    assert backbone.forward(pack(random_rows((4,), 900), np.asarray([0]))).is_inference()


@pytest.mark.parametrize("family", ["bert-mean", "modernbert-colbert", "mpnet-mean"])
def test_tokens_that_are_not_to_be_seen_change_no_other(family, runner_of):
    backbone = runner_of(family).backbone
    vocab_size = backbone.model.get_input_embeddings().num_embeddings
    lengths = (30, 30, 30)
    rows = random_rows(lengths, vocab_size)
    changed = random_rows(lengths, vocab_size)
    seen = np.asarray([12, 30, 20])
    hidden = np.concatenate([np.arange(12, 30), np.arange(80, 90)])
    changed.token_ids[hidden] = (changed.token_ids[hidden] + 1) % (vocab_size - 10) + 10
    one, other = (
        backbone.forward(
            pack(TokenizedRows(some.token_ids, some.lengths, some.truncated, seen_lengths=seen), np.arange(3))
        )
        for some in (rows, changed)
    )
    visible = np.setdiff1d(np.arange(90), hidden)
    torch.testing.assert_close(one[visible], other[visible], **TOLERANCE)
    assert (one[hidden] - other[hidden]).abs().max() > 1e-2
    whole = pack(TokenizedRows(rows.token_ids[:12], np.asarray([12]), np.zeros(1, np.bool_)), np.asarray([0]))
    torch.testing.assert_close(one[:12], backbone.forward(whole), **TOLERANCE)


@pytest.mark.parametrize("family", ["llama-last", "mistral-last", "qwen2-last", "qwen3-last"])
@pytest.mark.parametrize("piece_tokens", [1, 60, 100, 1000])
def test_a_row_of_a_causal_model_may_be_run_in_pieces(family, runner_of, piece_tokens):
    backbone = runner_of(family).backbone
    assert backbone.takes_pieces
    length = 20 if piece_tokens == 1 else 150
    rows = random_rows((length,), backbone.model.get_input_embeddings().num_embeddings)
    batch = pack(rows, np.asarray([0]))
    pieces = list(backbone.forward_in_pieces(batch, piece_tokens))
    assert [len(piece) for piece in pieces[:-1]] == [piece_tokens] * (len(pieces) - 1)
    assert backbone.path == "packed"
    torch.testing.assert_close(torch.cat(pieces), backbone.forward(batch), **TOLERANCE)


def test_a_run_in_pieces_that_is_given_up_leaves_the_path_as_it_was(runner_of):
    backbone = runner_of("llama-last").backbone
    pieces = backbone.forward_in_pieces(pack(random_rows((9,), 700), np.asarray([0])), 3)
    next(pieces)
    pieces.close()
    assert backbone.path == "packed"
    assert backbone.model.config._attn_implementation != backbone.own_attention


def test_an_encoder_takes_no_pieces(runner_of):
    assert not runner_of("distilbert-mean").backbone.takes_pieces


def behind_prefixes(vocab_size, sizes):
    """Rows of several groups: (tokens of the prefix, tokens behind it in each row); and what each shares."""
    random = np.random.default_rng(5)
    rows, shared = [], []
    for num_shared, own in sizes:
        prefix = random.integers(10, vocab_size, num_shared).tolist()
        rows += [[*prefix, *random.integers(10, vocab_size, length).tolist()] for length in own]
        shared += [num_shared] * len(own)
    return rows, np.asarray(shared, np.int64)


# A prefix longer than the zoo's window with rows of one length, one behind it that is longer still; a row
# that shares nothing; one whose group is elsewhere.
GROUPS = [(90, (30, 30, 5, 1)), (0, (50,)), (40, (70, 2)), (33, (4,))]


def own_states(backbone, rows, shared):
    """Hidden states of each row's own tokens."""
    batch = pack(rows_of(*rows, shared_lengths=shared), np.arange(len(rows)))
    return backbone.forward(batch).split(batch.own_lengths.tolist())


@pytest.mark.parametrize("family", ["llama-last", "mistral-last", "qwen2-last", "qwen3-last", "gpt2-seqcls"])
def test_rows_behind_a_shared_prefix_have_the_hidden_states_they_have_alone(family, runner_of, alone):
    backbone = runner_of(family).backbone
    rows, shared = behind_prefixes(backbone.model.get_input_embeddings().num_embeddings, GROUPS)
    found = own_states(backbone, rows, shared)
    assert [len(states) for states in found] == [30, 30, 5, 1, 50, 70, 2, 37]
    for ids, states in zip(rows, found, strict=True):
        torch.testing.assert_close(states, alone(family, ids)[-len(states) :], **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("family", "changes"),
    [
        # Scores are capped at 1, so that many are.
        ("Gemma2", {**DECODER, "sliding_window": 8, "attn_logit_softcapping": 1.0}),
        ("Mistral", {"sliding_window": 8}),
        ("Phi", {}),
        ("Llama", {"num_key_value_heads": 2}),
    ],
    ids=["softcap and window", "window", "part of a head turned", "no grouped heads"],
)
def test_layers_of_each_kind_may_have_prefixes(family, changes, dtype):
    model = tiny(family, attn_implementation="eager", **changes).to(dtype)
    rows, shared = behind_prefixes(64, [(36, (12, 3, 3)), (33, (1, 1)), (0, (20,))])
    with torch.inference_mode():
        expected = [model(input_ids=torch.tensor([ids])).last_hidden_state[0] for ids in rows]
    backbone = Backbone(model, torch.device("cpu"))
    backbone.use_path("packed")
    for states, whole in zip(own_states(backbone, rows, shared), expected, strict=True):
        limit = 1e-5 if dtype == torch.float32 else TOLERANCES[dtype]
        assert relative_error(states, whole[-len(states) :]) < limit


def test_the_tokens_of_a_prefix_reach_the_model_once(models):
    model = Watched(AutoModel.from_pretrained(models / "llama-last"))
    model.inner.set_attn_implementation(PACKED_ATTENTION)
    backbone = Backbone(model, torch.device("cpu"), path="packed")
    own_states(backbone, [[11, 12, 13, 14], [11, 12, 13, 15, 16], [17]], np.asarray([3, 3, 0]))
    assert model.input_ids.tolist() == [[11, 12, 13, 14, 15, 16, 17]]
    assert model.position_ids.tolist() == [[0, 1, 2, 3, 3, 4, 0]]
    assert model.packed_rows.runs == [(1, 3), (1, 1), (1, 2), (1, 1)]
    assert model.packed_rows.prefixes == [None, slice(0, 3), slice(0, 3), None]
    assert model.packed_rows.keys is None


def test_off_the_cpu_attention_is_told_the_keys_behind_prefixes(models):
    with torch.device("meta"):
        model = Watched(AutoModel.from_config(AutoConfig.from_pretrained(models / "llama-last")))
    model.inner.set_attn_implementation(PACKED_ATTENTION)
    backbone = KeysOnTheCpu(model, torch.device("meta"), path="packed")
    own_states(backbone, [[11, 12, 13, 14], [11, 12, 13, 15, 16], [17]], np.asarray([3, 3, 0]))
    keys = model.packed_rows.keys
    assert keys.index.tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 4, 5, 6]
    assert (keys.cu_seq_lens.tolist(), keys.cu_seq_lens.dtype) == ([0, 3, 7, 12, 13], torch.int32)
    assert keys.max_length == 5


class KeysOnTheCpu(Backbone):
    """Has no numbers but those that tell attention its keys."""

    def _keys(self, segments):
        device, self.device = self.device, torch.device("cpu")
        try:
            return super()._keys(segments)
        finally:
            self.device = device
