import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.errors import PoolingError
from poolembed.poolers import compute_maxsim_one_to_many, compute_maxsim_score, compute_maxsim_score_batched
from poolembed.poolers.late_interaction import MAX_BATCH_SIZE, MAX_SCORE_MATRIX_ELEMENTS
from tests.poolers.batches import FLOAT32, packed


def maxsim(query, document):
    """The formula in float64, token by token."""
    return sum(max(float(q @ d) for d in document.double()) for q in query.double())


def matrices(lens, width=8, dtype=torch.float32, seed=0):
    return list(torch.split(packed(lens, width, dtype, seed), lens))


def close(scores, expected):
    torch.testing.assert_close(
        torch.stack(list(scores)).double(), torch.tensor(expected, dtype=torch.float64), **FLOAT32
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_score_is_the_sum_of_the_best_matches(dtype):
    (query,), (document,) = matrices([3], dtype=dtype), matrices([5], dtype=dtype, seed=1)
    score = compute_maxsim_score(query, document)
    assert score.shape == ()
    assert score.dtype == torch.float32
    close([score], [maxsim(query, document)])


QUERIES = matrices([3, 1, 4, 2, 5])
DOCUMENTS = matrices([7, 2, 1, 9, 3], seed=1)
SCORES = [maxsim(q, d) for q, d in zip(QUERIES, DOCUMENTS, strict=True)]


@pytest.mark.parametrize("max_batch_size", [1, 2, 3, 64])
@pytest.mark.parametrize("max_elements", [1, 20, 60, 10_000])
def test_batches_of_any_size_give_the_same_scores(max_batch_size, max_elements):
    scores = compute_maxsim_score_batched(QUERIES, DOCUMENTS, max_batch_size, max_elements)
    assert all(score.shape == () and score.dtype == torch.float32 for score in scores)
    close(scores, SCORES)


@pytest.mark.parametrize("max_elements", [1, 8, 40, 10_000])
def test_one_query_with_many_documents(max_elements):
    scores = compute_maxsim_one_to_many(QUERIES[0], DOCUMENTS, max_elements)
    assert scores.shape == (5,)
    assert scores.dtype == torch.float32
    close(scores, [maxsim(QUERIES[0], d) for d in DOCUMENTS])


def test_padding_never_counts():
    """Every product is negative: a padded document token (0) would win, a padded query token would add."""
    queries = [torch.full((n, 2), 1.0) for n in (1, 3)]
    documents = [torch.full((n, 2), -1.0) for n in (4, 2)]
    assert [score.item() for score in compute_maxsim_score_batched(queries, documents)] == [-2.0, -6.0]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=8),
    max_batch_size=st.integers(1, 9),
    max_elements=st.integers(1, 200),
)
def test_any_pairs_and_limits(sizes, max_batch_size, max_elements):
    queries = matrices([q for q, _ in sizes], width=3)
    documents = matrices([d for _, d in sizes], width=3, seed=1)
    close(
        compute_maxsim_score_batched(queries, documents, max_batch_size, max_elements),
        [maxsim(q, d) for q, d in zip(queries, documents, strict=True)],
    )
    close(
        compute_maxsim_one_to_many(queries[0], documents, max_elements),
        [maxsim(queries[0], d) for d in documents],
    )


class Shapes(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the shapes of all matrix products, batched or not."""

    def __init__(self):
        super().__init__()
        self.products = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten.bmm.default, torch.ops.aten.mm.default):
            self.products.append(tuple(out.shape))
        return out


def test_a_batch_has_at_most_64_pairs_and_64_million_products():
    assert (MAX_BATCH_SIZE, MAX_SCORE_MATRIX_ELEMENTS) == (64, 64_000_000)
    queries, documents = matrices([1] * 130, width=2), matrices([2] * 130, width=2)
    with Shapes() as seen:
        compute_maxsim_score_batched(queries, documents)
    assert seen.products == [(64, 1, 2), (64, 1, 2), (2, 1, 2)]


def test_limits_hold_with_padding():
    queries, documents = matrices([2, 1, 3, 1], width=2), matrices([5, 5, 1, 9], width=2)
    with Shapes() as seen:
        compute_maxsim_score_batched(queries, documents, max_score_matrix_elements=20)
    # 2 x 2 x 5 fits exactly; with the third pair it would be 3 x 3 x 5; the last two would take 2 x 3 x 9.
    assert seen.products == [(2, 2, 5), (1, 3), (9, 1)]
    with Shapes() as seen:
        compute_maxsim_score_batched(queries, documents, max_score_matrix_elements=19)
    assert seen.products == [(5, 2), (5, 1), (1, 3), (9, 1)]


def test_a_pair_beyond_the_limit_is_cut_in_pieces():
    (query,), (document,) = matrices([4]), matrices([50], seed=1)
    with Shapes() as seen:
        scores = compute_maxsim_one_to_many(query, [document], max_matrix_elements=80)
    assert [rows for rows, _ in seen.products] == [10] * 5
    close(scores, [maxsim(query, document)])


@pytest.mark.parametrize(
    ("max_elements", "pieces"),
    [(8 * 9, [9, 1, 9, 3]), (8 * 22, [22]), (8 * 10, [10, 9, 3]), (8 * 12, [10, 12]), (1, [1] * 22)],
)
def test_documents_are_packed_up_to_the_limit(max_elements, pieces):
    with Shapes() as seen:
        compute_maxsim_one_to_many(QUERIES[0], DOCUMENTS, max_elements)
    assert [rows for rows, _ in seen.products] == pieces


def test_the_narrowest_query_takes_as_many_tokens_as_the_limit():
    with Shapes() as seen:
        compute_maxsim_one_to_many(torch.ones(1, 1), [torch.ones(12, 1)], 5)
    assert [rows for rows, _ in seen.products] == [5, 5, 2]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_batches_run_in_float32(dtype):
    queries = [query.to(dtype) for query in QUERIES]
    documents = [document.to(dtype) for document in DOCUMENTS]
    expected = [maxsim(q, d) for q, d in zip(queries, documents, strict=True)]
    close(compute_maxsim_score_batched(queries, documents), expected)
    # Each side may have its own dtype, and so may each pair.
    close(compute_maxsim_score_batched(queries, [d.float() for d in documents]), expected)
    close(compute_maxsim_score_batched([q.float() for q in queries], documents), expected)


def test_padding_does_not_turn_infinite_values_into_none():
    document = torch.tensor([[torch.inf, 1.0]])
    scores = compute_maxsim_score_batched([torch.ones(1, 2), torch.ones(3, 2)], [document, torch.ones(2, 2)])
    assert [score.item() for score in scores] == [torch.inf, 6.0]


@pytest.mark.parametrize(("num_query", "dim", "rows"), [(32, 128, 32_768), (4096, 128, 1024)])
def test_a_matrix_in_between_takes_16_megabytes_unless_told_otherwise(num_query, dim, rows):
    query = torch.zeros(num_query, dim, device="meta")
    with Shapes() as seen:
        compute_maxsim_one_to_many(query, [torch.zeros(100_000, dim, device="meta")])
    assert max(product[0] for product in seen.products) == rows


def test_no_pairs_have_no_scores():
    assert compute_maxsim_score_batched([], []) == []
    assert compute_maxsim_one_to_many(QUERIES[0], []).shape == (0,)


def test_a_query_without_tokens_scores_nothing():
    empty = torch.zeros(0, 8)
    assert compute_maxsim_score(empty, DOCUMENTS[0]).item() == 0.0
    scores = compute_maxsim_score_batched([empty, QUERIES[0]], DOCUMENTS[:2])
    close(scores, [0.0, maxsim(QUERIES[0], DOCUMENTS[1])])


@pytest.mark.parametrize(
    ("query", "document", "message"),
    [
        (torch.zeros(8), torch.zeros(2, 8), "are not two matrices of one width"),
        (torch.zeros(2, 8), torch.zeros(1, 2, 8), "are not two matrices of one width"),
        (torch.zeros(2, 8), torch.zeros(2, 7), r"query \(2, 8\), document \(2, 7\) are not two matrices"),
        (torch.zeros(2, 8), torch.zeros(0, 8), "a document without tokens has no score"),
        (torch.zeros(2, 8), torch.zeros(2, 8, device="meta"), "live on cpu and meta"),
    ],
)
def test_pairs_that_do_not_fit_are_refused_by_number(query, document, message):
    for call in (
        lambda: compute_maxsim_score_batched([QUERIES[0], query], [DOCUMENTS[0], document]),
        lambda: compute_maxsim_score(query, document),
        lambda: compute_maxsim_one_to_many(query, [document]),
    ):
        with pytest.raises(ValueError, match=f"pair [01]: .*{message}"):
            call()


def test_lists_must_be_of_one_length():
    with pytest.raises(PoolingError, match="2 queries for 1 documents"):
        compute_maxsim_score_batched(QUERIES[:2], DOCUMENTS[:1])


@pytest.mark.parametrize("limit", [0, -1])
def test_limits_must_be_positive(limit):
    with pytest.raises(ValueError, match=f"^max_batch_size must be at least 1, got {limit}"):
        compute_maxsim_score_batched([], [], max_batch_size=limit)
    with pytest.raises(ValueError, match=f"^max_score_matrix_elements must be at least 1, got {limit}"):
        compute_maxsim_score_batched([], [], max_score_matrix_elements=limit)
    with pytest.raises(ValueError, match=f"^max_matrix_elements must be at least 1, got {limit}"):
        compute_maxsim_one_to_many(QUERIES[0], [], limit)


def test_values_that_are_none_are_not_hidden():
    document = DOCUMENTS[0].clone()
    document[0, 0] = torch.nan
    scores = compute_maxsim_score_batched(QUERIES[:2], [document, DOCUMENTS[1]])
    assert scores[0].isnan()
    assert not scores[1].isnan()
