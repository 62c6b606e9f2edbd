"""`ocf serve`: serve an embedded API server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocf.cli.command import Command, OneOf
from ocf.cli.controllers import stopped_by_signals
from ocf.cli.options import traceback_option
from ocf.cli.serve.controller_options import (
    controller_settings,
    controllers_option,
    nodes_option,
    ready_after_option,
    running_controllers,
)
from ocf.cli.serve.setup import (
    ServeOutput,
    kubeconfig_of,
    kubeconfig_option,
    load_files,
    output_option,
    port_option,
    print_server,
)

if TYPE_CHECKING:
    from ocf.cli.serve.control import ServerControl
    from ocf_server import ControllerSettings
    from ocf_server.http.server import HttpServer

__all__ = ["serve"]


class AuthorizationMode(StrEnum):
    """Values of the option that says how requests are authorized, as kube-apiserver names them."""

    ALWAYS_ALLOW = "AlwaysAllow"
    RBAC = "RBAC"


@click.command(cls=Command)
@port_option
@kubeconfig_option
@click.option(
    "--crd", type=Path, multiple=True, metavar="FILE", help="CustomResourceDefinitions to create at start; repeatable."
)
@click.option("--load", type=Path, multiple=True, metavar="FILE", help="Manifests to create at start; repeatable.")
@click.option(
    "--fault", multiple=True, metavar="FAULT", help="Fault to inject, such as conflict,kind=Shop,times=3; repeatable."
)
@click.option(
    "--authorization-mode",
    type=OneOf(AuthorizationMode),
    default=AuthorizationMode.ALWAYS_ALLOW,
    help="RBAC refuses what the roles in the cluster do not allow.",
)
@click.option("--tls", is_flag=True, help="Serve HTTPS, with a certificate authority made for this server.")
@click.option(
    "--no-system-objects",
    is_flag=True,
    help="Leave out what an API server makes in a new cluster: the Service default/kubernetes, roles and more.",
)
@click.option(
    "--no-garbage-collector",
    is_flag=True,
    help="Leave garbage, and the content of deleted namespaces, as an API server without any controller does.",
)
@click.option(
    "--kubernetes-version", metavar="VERSION", default="", help="Release to behave as, such as 1.33; default: 1.36."
)
@click.option(
    "--feature-gates",
    multiple=True,
    metavar="NAME=BOOL,...",
    help="Feature gates with other values than the release gives them; repeatable.",
)
@controllers_option
@nodes_option
@ready_after_option
@output_option
@traceback_option
def serve(  # noqa: PLR0913 (each is an option of the command line)
    *,
    port: int,
    kubeconfig: Path | None,
    crd: tuple[Path, ...],
    load: tuple[Path, ...],
    fault: tuple[str, ...],
    authorization_mode: AuthorizationMode,
    tls: bool,
    no_system_objects: bool,
    no_garbage_collector: bool,
    kubernetes_version: str,
    feature_gates: tuple[str, ...],
    controllers: tuple[str, ...],
    nodes: int | None,
    ready_after: str | None,
    output: ServeOutput,
) -> None:
    """Serve an embedded Kubernetes API on this machine.

    kubectl, kopf and other clients can use it, as an administrator unless they act as another user (kubectl --as), so
    it listens on loopback only. Objects are stored, and nothing acts on them, unless built-in controllers are chosen
    with --controllers. Ctrl-C stops it; the state is in memory and not kept.

    Example:
        ocf serve --controllers all --load manifests.yaml
    """
    settings = controller_settings(controllers, nodes=nodes, ready_after=ready_after)
    authorization = authorization_mode is AuthorizationMode.RBAC
    from ocf.schema.releases import read_gates

    cluster = _ClusterOptions(
        authorization=authorization,
        system_objects=not no_system_objects,
        collect=not no_garbage_collector,
        kubernetes_version=kubernetes_version,
        feature_gates=read_gates(feature_gates),
    )
    options = _ServeOptions(port, kubeconfig, [*crd, *load], fault, output, tls, cluster, settings)
    from ocf.concepts.open_files import raise_open_files

    raise_open_files()
    asyncio.run(_serve(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClusterOptions:
    """Options of the command that are settings of `EmbeddedCluster`."""

    authorization: bool
    system_objects: bool
    collect: bool
    kubernetes_version: str
    feature_gates: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class _ServeOptions:
    """Options of the command."""

    port: int
    kubeconfig: Path | None
    files: Sequence[Path]
    faults: Sequence[str]
    output: ServeOutput
    tls: bool
    cluster: _ClusterOptions
    controllers: ControllerSettings | None


async def _serve(options: _ServeOptions) -> None:
    from ocf_server import EmbeddedCluster
    from ocf_server.http import serving

    cluster = EmbeddedCluster(**asdict(options.cluster))
    await load_files(cluster, options.files, field_manager="ocf-serve")
    control = _LazyControl()
    stop = stopped_by_signals()
    async with (
        serving(cluster, port=options.port, control=control, tls=options.tls) as server,
        kubeconfig_of(server, options.kubeconfig) as path,
        running_controllers(cluster, options.controllers),
    ):
        control.server = server
        if options.faults:
            control.load(options.faults)
        print_server(server, path, options.output)
        await stop.wait()


class _LazyControl:
    """A control that is loaded on the first use, so that a server without faults starts faster."""

    server: HttpServer
    _control: ServerControl | None = None

    def load(self, faults: Sequence[str] = ()) -> ServerControl:
        """Load the control, with some faults."""
        from ocf.cli.serve.control import ServerControl

        self._control = ServerControl(self.server, faults)
        return self._control

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Handle a request."""
        return await (self._control or self.load())(method, path, body)
