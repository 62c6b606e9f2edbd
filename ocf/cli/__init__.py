"""The command `ocf`.

Each command has a module, which imports its dependencies when it runs, so that other commands start without them.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    import gc
    import sys

    # Objects allocated at start are permanent; collecting them repeatedly takes a fifth of the time of a command.
    gc.set_threshold(100_000)
    if sys.argv[1:2] == ["validate"]:
        from ocf.cli.validation_run import main as validate

        status = validate(sys.argv[2:])
        if status is not None:
            sys.exit(status)
    from ocf.cli.app import app

    app()
