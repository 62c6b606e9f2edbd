"""`ocf serve`: an embedded API server on loopback, until it is stopped."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.options import Traceback
from ocf.cli.showing import failing

if TYPE_CHECKING:
    from ocf.cli.control import ServerControl
    from ocf.cluster.embedded.http import Server
    from ocf.objects import Manifest

__all__ = ["serve"]


class ServeOutput(StrEnum):
    """How the start is told."""

    TEXT = "text"
    JSON = "json"


def serve(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 takes a free one.")] = 0,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the kubeconfig is written; a temporary file by default.")
    ] = None,
    crd: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="CustomResourceDefinitions to begin with; repeatable.")
    ] = None,
    load: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Manifests to begin with; repeatable.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="FAULT", help="What goes wrong, such as conflict,kind=Shop,times=3; repeatable."),
    ] = None,
    output: Annotated[ServeOutput, typer.Option(help="For people, or one line for programs.")] = ServeOutput.TEXT,
    traceback: Traceback = False,
) -> None:
    """Serve an embedded Kubernetes API on this machine.

    kubectl, kopf and any other client can use it; nobody logs in, so it is on loopback only. It has no controllers:
    what is written is kept, and nothing runs. It ends with Ctrl-C, and everything in it is gone.
    """
    with failing(traceback=traceback):
        asyncio.run(_serve(port, kubeconfig, [*(crd or ()), *(load or ())], fault or (), output))


async def _serve(
    port: int, kubeconfig: Path | None, files: Sequence[Path], faults: Sequence[str], output: ServeOutput
) -> None:
    from ocf.cluster.embedded import EmbeddedCluster
    from ocf.cluster.embedded.http import load_manifests, serving

    cluster = EmbeddedCluster()
    await load_manifests(cluster, _read(files), field_manager="ocf-serve")
    control = _LazyControl()
    stopped = _stopped()
    async with serving(cluster, port=port, control=control) as server, _written(server, kubeconfig) as path:
        control.server = server
        if faults:
            control.begin(faults)
        _tell(server, path, output)
        await stopped.wait()


class _LazyControl:
    """A control that loads what it needs when it is needed: a server that nobody disturbs starts without it."""

    server: Server
    _control: ServerControl | None = None

    def begin(self, faults: Sequence[str] = ()) -> ServerControl:
        """Begin with some faults."""
        from ocf.cli.control import ServerControl

        self._control = ServerControl(self.server, faults)
        return self._control

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Do what a request asks for."""
        return await (self._control or self.begin())(method, path, body)


def _read(files: Iterable[Path]) -> Iterator[Manifest]:
    from ocf.errors import ConfigError, ManifestError
    from ocf.objects import load_documents

    for file in files:
        try:
            yield from load_documents(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        except ManifestError as error:
            raise ConfigError(f"{file}: {error}") from error


def _stopped() -> asyncio.Event:
    """Return what is set when somebody asks the process to end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped


@asynccontextmanager
async def _written(server: Server, path: Path | None) -> AsyncIterator[Path]:
    """Write the kubeconfig while the block runs; what nobody named is removed afterwards."""
    from ocf.cluster.embedded.http import write_kubeconfig

    if path is not None:
        write_kubeconfig(server.kubeconfig(), path)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="ocf-serve-") as folder:
        temporary = Path(folder) / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), temporary)
        yield temporary


def _tell(server: Server, kubeconfig: Path, output: ServeOutput) -> None:
    if output is ServeOutput.JSON:
        found = {"url": server.url, "kubeconfig": str(kubeconfig.absolute()), "pid": os.getpid()}
        typer.echo(json.dumps(found))
        return
    typer.echo(f"serving on {server.url}; Ctrl-C ends it")
    typer.echo(f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}")
