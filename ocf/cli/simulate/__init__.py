"""The command `ocf simulate`."""

from ocf.cli.simulate.command import simulate

__all__ = ["simulate"]
