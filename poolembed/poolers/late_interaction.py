"""MaxSim, the score of late interaction: every query token finds its best document token.

    score(Q, D) = sum over rows q of Q of the largest dot product of q with a row of D

Products and sums run in float32; matrices of dot products are bounded in size.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from poolembed.errors import PoolingError
from poolembed.poolers.segments import MAX_CHUNK_BYTES, segment_maxima

MAX_BATCH_SIZE = 64
"""Most pairs that are scored at once."""

MAX_SCORE_MATRIX_ELEMENTS = 64_000_000
"""Most dot products of a batch of pairs."""


def compute_maxsim_score(query: Tensor, document: Tensor) -> Tensor:
    """Return the MaxSim score of one pair.

    Args:
        query: token vectors, shape (num_query_tokens, dim); all of them count.
        document: token vectors, shape (num_document_tokens, dim), at least one.

    Returns:
        The score, shape (), float32, on the device of `query`.

    Raises:
        PoolingError: shapes, widths or devices do not fit.

    Source:
        Khattab and Zaharia 2020, "ColBERT", arXiv 2004.12832, equation 3.
    """
    return compute_maxsim_one_to_many(query, [document])[0]


def compute_maxsim_one_to_many(
    query: Tensor, documents: Sequence[Tensor], max_matrix_elements: int = MAX_CHUNK_BYTES // 4
) -> Tensor:
    """Return the MaxSim scores of one query with many documents.

    Args:
        query: token vectors, shape (num_query_tokens, dim); all of them count.
        documents: token vectors, each (num_document_tokens, dim), at least one token each.
        max_matrix_elements: most elements of any matrix in between (but one token's at least).

    Returns:
        Scores, shape (num_documents,), float32, on the device of `query`, in order.

    Raises:
        PoolingError: shapes, widths or devices do not fit, or the limit is below 1.
    """
    _check_limit("max_matrix_elements", max_matrix_elements)
    _check_pairs([query] * len(documents), documents)
    best = torch.full((len(documents), len(query)), -torch.inf, dtype=torch.float32, device=query.device)
    transposed = query.float().T
    for first, pieces in _packed_pieces(documents, max(1, max_matrix_elements // max(1, *query.shape))):
        ids = torch.repeat_interleave(torch.tensor([len(piece) for piece in pieces]))
        products = torch.cat(pieces).float() @ transposed
        found = segment_maxima(products, ids.to(query.device), len(pieces))
        seen = best[first : first + len(pieces)]
        torch.maximum(seen, found, out=seen)
    return best.sum(dim=1)


def compute_maxsim_score_batched(
    queries: Sequence[Tensor],
    documents: Sequence[Tensor],
    max_batch_size: int = MAX_BATCH_SIZE,
    max_score_matrix_elements: int = MAX_SCORE_MATRIX_ELEMENTS,
) -> list[Tensor]:
    """Return the MaxSim score of each pair (queries[i], documents[i]).

    Consecutive pairs are padded to a common size and scored at once; padding never counts.

    Args:
        queries: token vectors, each (num_query_tokens, dim); all of them count.
        documents: token vectors, each (num_document_tokens, dim), at least one token each.
        max_batch_size: most pairs that are scored at once.
        max_score_matrix_elements: most dot products of such a batch, padding included.

    Returns:
        Scores, each of shape (), float32, in order; empty for no pairs.

    Raises:
        PoolingError: lists of different length, shapes, widths or devices that do not fit, or a limit
            below 1.

    Source:
        vLLM 0.33.0 `compute_maxsim_score_batched`.
    """
    _check_limit("max_batch_size", max_batch_size)
    _check_limit("max_score_matrix_elements", max_score_matrix_elements)
    _check_pairs(queries, documents)
    scores: list[Tensor] = []
    sizes = [(len(query), len(document)) for query, document in zip(queries, documents, strict=True)]
    for start, stop in _batches(sizes, max_batch_size, max_score_matrix_elements):
        if stop - start == 1:  # which may exceed the limit, and is then cut in pieces
            scores.append(compute_maxsim_score(queries[start], documents[start]))
        else:
            scores.extend(_padded_scores(queries[start:stop], documents[start:stop]).unbind())
    return scores


def _padded_scores(queries: Sequence[Tensor], documents: Sequence[Tensor]) -> Tensor:
    query = pad_sequence([q.float() for q in queries], batch_first=True)
    document = pad_sequence([d.float() for d in documents], batch_first=True)
    products = torch.bmm(query, document.transpose(1, 2))
    products.masked_fill_(_padding(documents)[:, None, :], -torch.inf)
    return products.amax(dim=2).masked_fill_(_padding(queries), 0.0).sum(dim=1)


def _padding(rows: Sequence[Tensor]) -> Tensor:
    """Return which places are padding once `rows` are padded, shape (num_rows, longest)."""
    lens = torch.tensor([len(row) for row in rows])
    return (torch.arange(int(lens.max())) >= lens[:, None]).to(rows[0].device, non_blocking=True)


def _batches(
    sizes: Sequence[tuple[int, int]], max_pairs: int, max_elements: int
) -> Iterator[tuple[int, int]]:
    """Cut pairs in consecutive ranges that keep both limits once padded; one pair always fits."""
    start, longest_query, longest_document = 0, 0, 0
    for index, (num_query, num_document) in enumerate(sizes):
        longest_query = max(longest_query, num_query)
        longest_document = max(longest_document, num_document)
        num_pairs = index + 1 - start
        if index > start and (
            num_pairs > max_pairs or num_pairs * longest_query * longest_document > max_elements
        ):
            yield start, index
            start, longest_query, longest_document = index, num_query, num_document
    if start < len(sizes):
        yield start, len(sizes)


def _packed_pieces(documents: Sequence[Tensor], max_tokens: int) -> Iterator[tuple[int, list[Tensor]]]:
    """Gather consecutive documents up to `max_tokens`; a longer one comes in pieces, one a time.

    Yields the index of the first document with a piece of each of the following documents.
    """
    first, pieces, size = 0, list[Tensor](), 0
    for index, document in enumerate(documents):
        for piece in torch.split(document, max_tokens):
            if size + len(piece) > max_tokens:
                yield first, pieces
                first, pieces, size = index, [], 0
            pieces.append(piece)
            size += len(piece)
    if pieces:
        yield first, pieces


def _check_limit(name: str, value: int) -> None:
    if value < 1:
        raise PoolingError(f"{name} must be at least 1, got {value}")


def _check_pairs(queries: Sequence[Tensor], documents: Sequence[Tensor]) -> None:
    if len(queries) != len(documents):
        raise PoolingError(f"{len(queries)} queries for {len(documents)} documents")
    for index, (query, document) in enumerate(zip(queries, documents, strict=True)):
        shapes = f"pair {index}: query {tuple(query.shape)}, document {tuple(document.shape)}"
        if query.dim() != 2 or document.dim() != 2 or query.shape[1] != document.shape[1]:
            raise PoolingError(f"{shapes} are not two matrices of one width")
        if len(document) == 0:
            raise PoolingError(f"{shapes}: a document without tokens has no score")
        if query.device != document.device:
            raise PoolingError(f"{shapes} live on {query.device} and {document.device}")
