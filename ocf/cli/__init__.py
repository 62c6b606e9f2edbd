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
    threshold = gc.get_threshold()
    gc.set_threshold(100_000)
    try:
        status = _run(sys.argv)
    except BrokenPipeError:
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:  # noqa: BLE001 (any error has the status of an error)
        # Python would exit with 1, the status of a command that has found what it looks for.
        status = _failed(error, traceback="--traceback" in sys.argv or not isinstance(error, OSError))
    try:
        _flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    except OSError as error:
        status = _failed(error)
    # At exit Python would search all objects for cycles, which takes 7 % of `ocf validate`.
    gc.freeze()
    # A test that catches the exit goes on in this process.
    gc.set_threshold(*threshold)
    sys.exit(status)


def _run(words: list[str]) -> int:
    """Run a command; return its exit status.

    `Command.main` of click is not used, since it turns a closed pipe and an interrupt into the status of an error.
    """
    import os

    from click import ClickException
    from click.exceptions import Exit

    from ocf.cli.app import COMPLETION_VARIABLE, app
    from ocf.cli.exit_status import SUCCESS

    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from ocf.cli.completion import complete

        return complete(instruction)
    is_plugin = os.path.basename(words[0]).startswith("kubectl-")  # noqa: PTH119 (pathlib is imported on demand)
    try:
        with app.make_context("kubectl ocf" if is_plugin else "ocf", words[1:]) as ctx:
            app.invoke(ctx)
    except Exit as end:
        return end.exit_code
    except ClickException as error:
        error.show()
        return error.exit_code
    return SUCCESS


def _failed(error: Exception, *, traceback: bool = False) -> int:
    from ocf.cli.exit_status import FAILED

    if traceback:
        import sys

        sys.excepthook(type(error), error, error.__traceback__)
    else:
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
