"""The command `ocf`.

One module per command; what a command needs beyond the command line itself is imported when it runs, so that every
other command starts without it.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    import gc

    # What a start allocates stays; walking it again and again would be a fifth of the time that a command takes.
    gc.set_threshold(100_000)
    from ocf.cli.app import app

    app()
