"""`ocf dev`: run the operators of a module on an embedded API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ocf.cli.command import Command
from ocf.cli.controllers import stopped_by_signals
from ocf.cli.manifest_files import read_documents, read_manifests
from ocf.cli.options import target_argument, traceback_option
from ocf.cli.output import echo, log_text
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
    from ocf.runtime.operator import Operator
    from ocf.runtime.operator.manager import Manager
    from ocf_server import ControllerSettings

__all__ = ["dev"]

_MANAGER: Final = "ocf-dev"
_HOST: Final = "127.0.0.1"
_WEBHOOK_NAMESPACE: Final = "kube-system"
"""Namespace of the Secret with the webhooks' certificate."""


@click.command(cls=Command)
@target_argument
@click.option("--apply", type=Path, multiple=True, metavar="FILE", help="Manifests to apply at start; repeatable.")
@click.option(
    "--crd", type=Path, multiple=True, metavar="FILE", help="Additional CustomResourceDefinitions; repeatable."
)
@controllers_option
@nodes_option
@ready_after_option
@port_option
@kubeconfig_option
@click.option("--verbose", "-v", is_flag=True, help="Log the actions of the operators.")
@output_option
@traceback_option
def dev(  # noqa: PLR0913 (each is an option of the command line)
    target: str,
    *,
    apply: tuple[Path, ...],
    crd: tuple[Path, ...],
    controllers: tuple[str, ...],
    nodes: int | None,
    ready_after: str | None,
    port: int,
    kubeconfig: Path | None,
    verbose: bool,
    output: ServeOutput,
) -> None:
    """Run operators on an embedded Kubernetes API server, to try them out.

    Their CustomResourceDefinitions are applied and their webhooks are registered; kubectl and other clients can use the
    API. Without --controllers there are no other controllers, so no pod ever runs. Ctrl-C stops it; the state is in
    memory and not kept.

    Example:
        ocf dev shop.operator --controllers all --apply shop.yaml
    """
    log_text(logging.INFO if verbose else logging.WARNING)
    options = _DevOptions(
        apply=apply,
        crd=crd,
        controllers=controller_settings(controllers, nodes=nodes, ready_after=ready_after),
        port=port,
        kubeconfig=kubeconfig,
        output=output,
    )
    from ocf.concepts.open_files import raise_open_files

    raise_open_files()
    asyncio.run(_dev(target, options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _DevOptions:
    """Options besides the operator."""

    apply: Sequence[Path]
    crd: Sequence[Path]
    controllers: ControllerSettings | None
    port: int
    kubeconfig: Path | None
    output: ServeOutput


async def _dev(target: str, options: _DevOptions) -> None:
    from ocf.cli.operator_loader import load_operators
    from ocf.cli.owner_check import apply_definitions, check_objects
    from ocf_server import EmbeddedCluster
    from ocf_server.http import serving

    operators = load_operators(target)
    embedded = EmbeddedCluster()
    defined = [definition for operator in operators for definition in operator.all_definitions]
    known = {one["metadata"]["name"]: one for one in (*defined, *read_manifests(options.crd))}
    await apply_definitions(embedded, known.values())
    await check_objects(read_documents(map(str, options.apply)), embedded)
    stop = stopped_by_signals()
    async with (
        serving(embedded, port=options.port) as server,
        kubeconfig_of(server, options.kubeconfig) as path,
        running_controllers(embedded, options.controllers),
        _run_operators(operators, path) as manager,
    ):
        await load_files(embedded, options.apply, field_manager=_MANAGER)
        print_server(server, path, options.output)
        if options.output is ServeOutput.TEXT:
            _print_operators(operators, manager)
        await stop.wait()


@asynccontextmanager
async def _run_operators(operators: Sequence[Operator[Any]], kubeconfig: Path) -> AsyncIterator[Manager]:
    """Run the operators as clients of the API, with their webhooks."""
    from ocf.cli.dev_page import DevEditor
    from ocf.cluster.client import ApiServerCluster
    from ocf.runtime.admission import Url
    from ocf.runtime.operator import Listen, ManagerOptions, WebhookOptions, running
    from ocf.runtime.page import PageOptions

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(await ApiServerCluster.connect(kubeconfig))
        address = Url(f"https://{_HOST}")
        admission = WebhookOptions(address=address, namespace=_WEBHOOK_NAMESPACE, host=_HOST, port=0, register=True)
        page = PageOptions(port=0, host=_HOST, editor=DevEditor(operators, cluster))
        manager_options = ManagerOptions(listen=Listen(port=0, host=_HOST), admission=admission, page=page)
        manager = await stack.enter_async_context(running(cluster, *operators, options=manager_options))
        await manager.started()
        yield manager


def _print_operators(operators: Sequence[Operator[Any]], manager: Manager) -> None:
    for operator in operators:
        api_version, kind = operator.owner_kind
        echo(f"operator {operator.name} reconciles {kind} of {api_version}")
    if manager.endpoints is not None:
        click.echo(f"metrics on {manager.endpoints.url}/metrics")
    if manager.page is not None and manager.page.address is not None:
        click.echo(f"page on {manager.page.address.url}/")
