"""Results whose values tell which text they are of."""

import numpy as np
import pyarrow as pa
import pytest

from poolembed.io import result_table, text_keys
from poolembed.results import Ragged, ResultColumn

COLUMNS = [
    ResultColumn("embedding", "float32", 3),
    ResultColumn("tokens", "str", is_list=True),
    ResultColumn("num_tokens", "int32"),
]


def results_of(texts) -> pa.Table:
    """Return results that can be checked against their texts."""
    sizes = np.asarray([len(text) for text in texts], np.int32)
    vectors = np.asarray([[len(text), *map(ord, text[:2].ljust(2))] for text in texts], np.float32)
    lists = Ragged(sizes.astype(np.int64), [character for text in texts for character in text])
    data = {"embedding": vectors.reshape(-1, 3), "tokens": lists, "num_tokens": sizes}
    return result_table(COLUMNS, data)


def keys_of(texts):
    return text_keys({"text": list(texts)})


@pytest.fixture
def schema():
    return results_of([]).schema
