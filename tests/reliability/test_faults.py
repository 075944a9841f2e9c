"""Every fault is brought about, and docs/reliability.md says what was seen."""

import signal

import pytest

from tests.reliability.fault import Desk
from tests.reliability.faults import SECTIONS, written_rows

CASES = [
    pytest.param(
        fault,
        section,
        index,
        id=f"{section[:5]}-{fault.name}".replace(" ", "_"),
        marks=[pytest.mark.slow] if fault.slow else [],
    )
    for section, faults in SECTIONS.items()
    for index, fault in enumerate(faults)
]


@pytest.fixture(autouse=True)
def _interruptible():
    """Let Ctrl-C interrupt: what a shell runs in the background ignores it, and its children with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("fault", "section", "index"), CASES)
def test_the_page_says_what_becomes_of_a_fault(fault, section, index, tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    seen = fault.run(Desk(tmp_path, models))
    assert written_rows(section)[index] == fault.row(seen)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_no_other_rows(section):
    assert len(written_rows(section)) == len(SECTIONS[section])


def test_the_page_knows_many_faults():
    assert sum(map(len, SECTIONS.values())) >= 40
