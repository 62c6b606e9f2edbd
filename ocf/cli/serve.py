"""`ocf serve`: an embedded API server on loopback, until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.options import Traceback
from ocf.cli.output import exit_on_error
from ocf.cli.server_setup import (
    Kubeconfig,
    OutputOption,
    Port,
    ServeOutput,
    kubeconfig_of,
    print_server,
    read_manifests,
    stop_event,
)

if TYPE_CHECKING:
    from ocf.cli.server_control import ServerControl
    from ocf.embedded.http import HttpServer

__all__ = ["serve"]


def serve(
    *,
    port: Port = 0,
    kubeconfig: Kubeconfig = None,
    crd: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="CustomResourceDefinitions to begin with; repeatable.")
    ] = None,
    load: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Manifests to begin with; repeatable.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault", metavar="FAULT", help="What goes wrong, such as conflict,kind=Shop,times=3; repeatable."
        ),
    ] = None,
    output: OutputOption = ServeOutput.TEXT,
    traceback: Traceback = False,
) -> None:
    """Serve an embedded Kubernetes API on this machine.

    kubectl, kopf and any other client can use it; nobody logs in, so it is on loopback only. It has no controllers:
    what is written is kept, and nothing runs. It ends with Ctrl-C, and everything in it is gone.
    """
    with exit_on_error(traceback=traceback):
        asyncio.run(_serve(port, kubeconfig, [*(crd or ()), *(load or ())], fault or (), output))


async def _serve(
    port: int, kubeconfig: Path | None, files: Sequence[Path], faults: Sequence[str], output: ServeOutput
) -> None:
    from ocf.embedded import EmbeddedCluster
    from ocf.embedded.http import load_manifests, serving

    cluster = EmbeddedCluster()
    await load_manifests(cluster, read_manifests(files), field_manager="ocf-serve")
    control = _LazyControl()
    stopped = stop_event()
    async with serving(cluster, port=port, control=control) as server, kubeconfig_of(server, kubeconfig) as path:
        control.server = server
        if faults:
            control.begin(faults)
        print_server(server, path, output)
        await stopped.wait()


class _LazyControl:
    """A control that loads what it needs when it is needed: a server that nobody disturbs starts without it."""

    server: HttpServer
    _control: ServerControl | None = None

    def begin(self, faults: Sequence[str] = ()) -> ServerControl:
        """Begin with some faults."""
        from ocf.cli.server_control import ServerControl

        self._control = ServerControl(self.server, faults)
        return self._control

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Do what a request asks for."""
        return await (self._control or self.begin())(method, path, body)
