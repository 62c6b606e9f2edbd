"""The command `ocf record`."""

from ocf.cli.record.command import record

__all__ = ["record"]
