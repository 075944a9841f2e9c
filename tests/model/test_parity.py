"""Every task against the stored outputs of the reference libraries."""

import numpy as np
import pytest

from tests.model.parity import (
    CASES,
    GROUND_TRUTH,
    TOLERANCE,
    agreeing,
    inputs_of,
    stored,
    table,
    written_table,
)


@pytest.mark.no_cover  # half of the time, and tests of each operation go through the same lines
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.command}-{case.family}".replace(" ", ""))
def test_a_task_gives_what_the_references_give(case, shared, model_of):
    zoo = shared / "zoo"
    texts, outputs = inputs_of(zoo, case), stored(zoo, case)
    names = list(outputs[GROUND_TRUTH])
    assert len(names) > 5
    found = dict(zip(names, case.call(model_of(case.family), [texts[name] for name in names]), strict=True))
    for reference, expected in outputs.items():
        for name in agreeing(expected, outputs[GROUND_TRUTH]):
            np.testing.assert_allclose(
                np.asarray(found[name]).reshape(expected[name].shape),
                expected[name],
                rtol=0,
                atol=TOLERANCE,
                err_msg=f"{reference} {name}",
            )


def test_the_page_of_tasks_has_the_table_of_these_cases(shared):
    assert written_table() == table(shared / "zoo")
