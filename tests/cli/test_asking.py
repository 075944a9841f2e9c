"""The first signal asks the run to end, and ends it at once where the run does not listen."""

import signal

import pytest

from poolembed.cli.failures import Terminated
from poolembed.cli.signals import asking


class Run:
    """Writes down what it is asked, and says whether it will end by itself."""

    def __init__(self, *answers):
        self.asked = []
        self._answers = iter(answers)

    def ask(self, exit_code):
        self.asked.append(exit_code)
        return next(self._answers)


SIGNALS = [(signal.SIGINT, 130, KeyboardInterrupt), (signal.SIGTERM, 143, Terminated)]


@pytest.mark.parametrize(("number", "code", "error"), SIGNALS)
def test_the_second_signal_ends_the_run_at_once(number, code, error):
    run = Run(True, False)
    with asking(run):
        signal.raise_signal(number)
        assert run.asked == [code]
        with pytest.raises(error):
            signal.raise_signal(number)
    assert run.asked == [code, code]


@pytest.mark.parametrize(("number", "code", "error"), SIGNALS)
def test_what_signals_did_before_comes_back(number, code, error):
    before = signal.getsignal(number)
    with asking(Run()):
        during = signal.getsignal(number)
    assert during is not before
    assert signal.getsignal(number) is before
    with pytest.raises(error), asking(Run(False)):
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_ctrl_c_stays_ignored_where_it_was():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = Run()
        with asking(run):
            signal.raise_signal(signal.SIGINT)
        assert run.asked == []
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
