"""`ocf version`."""

from __future__ import annotations

import typer

import ocf

__all__ = ["version"]


def version() -> None:
    """Print the version of ocf."""
    typer.echo(ocf.__version__)
