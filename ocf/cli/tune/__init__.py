"""The command `ocf tune`."""

from ocf.cli.tune.command import tune

__all__ = ["tune"]
