"""Pieces of the commands that run controllers: stop signals, and manifests as output."""

from __future__ import annotations

import asyncio
import json as json_format
import signal
from collections.abc import Sequence
from typing import Final

import click

from ocf.cli.output import echo
from ocf.objects import Manifest, dump_document

__all__ = ["NAMESPACE", "print_manifests", "stopped_by_signals"]

NAMESPACE: Final = "ocf-system"
"""The namespace of installed controllers, by default."""

# Each cluster has them.
_ALWAYS: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


def stopped_by_signals() -> asyncio.Event:
    """Return an event of the running loop that SIGINT and SIGTERM set."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def print_manifests(manifests: Sequence[Manifest], namespace: str, *, json: bool) -> None:
    """Print manifests for `kubectl apply`, into a cluster that has nothing of them.

    Args:
        namespace: The namespace of the controller. The default one is ours and is part of them; any other one may have
            objects of others, which `kubectl delete` with these manifests must not delete.
    """
    if namespace == NAMESPACE:
        manifests = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, *manifests]
    elif namespace not in _ALWAYS:
        note = f"note: the namespace {namespace} must exist: kubectl create namespace {namespace}"
        echo(note, color="yellow", err=True)
    if json:
        click.echo(json_format.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2))
        return
    click.echo("---\n".join(dump_document(each) for each in manifests), nl=False)
