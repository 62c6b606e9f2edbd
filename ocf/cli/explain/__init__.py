"""The command `ocf explain`."""

from ocf.cli.explain.command import explain

__all__ = ["explain"]
