"""The command `ocf`, which is also a plugin of kubectl: `kubectl ocf`.

Each command has a module, which imports its dependencies when it runs, so that other commands start without them.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    import gc
    import os
    import sys

    # Objects allocated at start are permanent; collecting them repeatedly takes a fifth of the time of a command.
    gc.set_threshold(100_000)
    if sys.argv[1:2] == ["validate"]:
        from ocf.cli.validation_run import main as validate

        status = validate(sys.argv[2:])
        if status is not None:
            sys.exit(status)
    from ocf.cli.app import app

    if any(name.endswith("OCF_COMPLETE") for name in os.environ):
        from ocf.cli.completion import enable_completion

        enable_completion()
    is_plugin = os.path.basename(sys.argv[0]).startswith("kubectl-")  # noqa: PTH119 (pathlib is imported on demand)
    app(prog_name="kubectl ocf" if is_plugin else "ocf")
