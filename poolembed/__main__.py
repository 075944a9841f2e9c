"""`python -m poolembed` and the `poolembed` command."""

from poolembed.cli import cli


def main() -> None:
    """Run the command line; leaves through `SystemExit` with the documented exit codes."""
    cli(prog_name="poolembed")


if __name__ == "__main__":
    main()
