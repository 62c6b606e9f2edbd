"""The command `ocf nodegroups`."""

from ocf.cli.nodegroups.command import nodegroups

__all__ = ["nodegroups"]
