"""The command `ocf serve`."""

from ocf.cli.serve.command import serve

__all__ = ["serve"]
