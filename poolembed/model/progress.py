"""Progress in rows where what is computed is no rows: distinct texts, pairs, windows."""

from poolembed.model.operation import OnBatch


def in_rows(on_batch: OnBatch | None, num_parts: int, num_rows: int) -> OnBatch | None:
    """Return a function that takes parts and passes them on as rows.

    Args:
        on_batch: is told of rows, `num_rows` in all once every part was taken; None returns None.
        num_parts: parts that will be taken, in batches of any size.
        num_rows: rows that they stand for.
    """
    if on_batch is None:
        return None
    parts_done = rows_told = 0

    def take(num_new: int, num_tokens: int) -> None:
        nonlocal parts_done, rows_told
        parts_done += num_new
        rows_done = parts_done * num_rows // max(1, num_parts)
        on_batch(rows_done - rows_told, num_tokens)
        rows_told = rows_done

    return take
