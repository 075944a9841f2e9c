"""Types of stored vectors, against sentence-transformers and stored outputs."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sentence_transformers.util import quantize_embeddings

from poolembed.config import OUTPUT_DTYPES
from poolembed.errors import ConfigError
from poolembed.model.quantize import Ranges, check_size, quantize, stored_type
from tests.model.parity import inputs

NUMBERS = st.floats(-2, 2, width=32, allow_subnormal=False)
VECTORS = arrays(np.float32, st.tuples(st.integers(1, 5), st.just(16)), elements=NUMBERS)


TINY = float(np.finfo(np.float32).tiny)


@given(vectors=VECTORS, bounds=VECTORS, dtype=st.sampled_from(OUTPUT_DTYPES))
@example(np.ones((1, 16), np.float32), np.asarray([[0] * 16, [TINY] * 16], np.float32), "int8")
@example(-np.ones((1, 16), np.float32), np.asarray([[0] * 16, [TINY] * 16], np.float32), "uint8")
def test_vectors_are_stored_as_sentence_transformers_stores_them(vectors, bounds, dtype):
    ranges = Ranges.of(bounds)
    stored = quantize(vectors, dtype, ranges)
    with np.errstate(over="ignore"):
        expected = (
            vectors.astype(np.float16)
            if dtype == "float16"
            else quantize_embeddings(vectors, dtype, ranges=ranges.bounds)
        )
    np.testing.assert_array_equal(stored, expected)
    assert (str(stored.dtype), stored.shape[1]) == stored_type(16, dtype)


@pytest.mark.parametrize("dtype", ["binary", "ubinary"])
def test_bits_are_those_of_the_reference(dtype, shared, model_of):
    texts = inputs(shared / "zoo")
    rows = [
        row
        for row in pq.read_table(shared / "zoo" / "expected" / "bert-mean.parquet").to_pylist()
        if json.loads(row["params"]) == {"precision": dtype}
    ]
    assert len(rows) > 20
    vectors = model_of("bert-mean").embed([texts[row["input_id"]] for row in rows])
    np.testing.assert_array_equal(quantize(vectors, dtype, None), [row["output"] for row in rows])


@given(bounds=VECTORS)
def test_bounds_come_back_from_their_text_to_the_bit(bounds):
    ranges = Ranges.of(bounds)
    np.testing.assert_array_equal(Ranges.parse(ranges.dump(), 16).bounds, ranges.bounds)


@pytest.mark.parametrize("text", ["no json", "[1, 2]", '[["a"], ["b"]]', "[[1.0], [2.0, 3.0]]"])
def test_bounds_of_another_shape_are_refused(text):
    with pytest.raises(ConfigError, match="bounds"):
        Ranges.parse(text, 2)


def test_bits_need_whole_bytes():
    check_size(16, "binary")
    check_size(12, "int8")
    with pytest.raises(ConfigError, match="multiple of 8 dimensions; these vectors have 12"):
        check_size(12, "ubinary")
