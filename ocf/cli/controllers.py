"""Pieces of the commands that run controllers: stop signals, and manifests as output."""

from __future__ import annotations

import asyncio
import json as json_format
import signal
from collections.abc import Sequence

import click

from ocf.objects import Manifest, dump_document

__all__ = ["print_manifests", "stopped_by_signals"]


def stopped_by_signals() -> asyncio.Event:
    """Return an event of the running loop that SIGINT and SIGTERM set."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def print_manifests(manifests: Sequence[Manifest], *, json: bool) -> None:
    """Print manifests for `kubectl apply`."""
    if json:
        click.echo(json_format.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2))
        return
    click.echo("---\n".join(dump_document(each) for each in manifests), nl=False)
