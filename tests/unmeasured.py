"""Processes whose coverage is not measured, as that takes longer than what they do."""

import os


def unmeasured() -> dict[str, str]:
    """This process's environment, without what makes a process that inherits it measure its coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
