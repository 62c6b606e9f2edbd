"""The command `ocf`, which is also a plugin of kubectl: `kubectl ocf`.

Each command has a module, which imports its dependencies when it runs, so that other commands start without them.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, and exit with one of the statuses of `ocf.cli.exit_status`."""
    import gc
    import sys

    from ocf.cli.exit_status import BROKEN_PIPE, INTERRUPTED

    # Objects allocated at start are permanent; collecting them repeatedly takes a fifth of the time of a command.
    gc.set_threshold(100_000)
    status: object
    try:
        status = _run(sys.argv)
    except SystemExit as end:
        # The library of the command line catches the error of a closed pipe, and exits with status 1.
        status = BROKEN_PIPE if isinstance(end.__context__, BrokenPipeError) else end.code
    except BrokenPipeError:
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        if "--traceback" in sys.argv:
            raise
        status = _failed(error)
    try:
        _flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    except OSError as error:
        status = _failed(error)
    sys.exit(status)


def _run(words: list[str]) -> int | None:
    """Run a command; return its exit status, if it does not raise SystemExit."""
    import os

    if words[1:2] == ["validate"]:
        from ocf.cli.validation_run import main as validate

        status = validate(words[2:])
        if status is not None:
            return status
    from ocf.cli.app import app

    if any(name.endswith("OCF_COMPLETE") for name in os.environ):
        from ocf.cli.completion import enable_completion

        enable_completion()
    is_plugin = os.path.basename(words[0]).startswith("kubectl-")  # noqa: PTH119 (pathlib is imported on demand)
    app(prog_name="kubectl ocf" if is_plugin else "ocf")
    return None


def _failed(error: OSError) -> int:
    from ocf.cli.exit_status import FAILED
    from ocf.cli.output import print_error

    print_error(error)
    return FAILED


def _flush() -> None:
    """Write what is buffered; a stream that cannot be written is closed, or Python would report it at exit."""
    import os
    import sys

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise
