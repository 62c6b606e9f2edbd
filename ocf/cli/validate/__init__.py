"""The command `ocf validate`."""

from ocf.cli.validate.command import validate

__all__ = ["validate"]
