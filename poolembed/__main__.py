"""`python -m poolembed` and the `poolembed` command."""

import gc

from poolembed.cli import cli


def main() -> None:
    """Run the command line; leaves through `SystemExit` with the documented exit codes."""
    try:
        cli(prog_name="poolembed")
    finally:
        # All files are closed and the process ends: there is no need to search the million objects of torch
        # and transformers for garbage, several times, on the way out.
        gc.freeze()


if __name__ == "__main__":
    main()
