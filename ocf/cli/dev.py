"""`ocf dev`: run the operators of a module on an embedded API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
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
    from ocf.cli.dev_page import DevEditor
    from ocf.runtime.operator import Operator
    from ocf.runtime.operator.manager import Manager
    from ocf.runtime.page.process import Page
    from ocf_server import ControllerSettings, EmbeddedCluster
    from ocf_server.http.server import HttpServer

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
@click.option("--reload", is_flag=True, help="Load the code again whenever a file of it is saved.")
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
    reload: bool,
    verbose: bool,
    output: ServeOutput,
) -> None:
    """Run operators on an embedded Kubernetes API server, to try them out.

    Their CustomResourceDefinitions are applied and their webhooks are registered; kubectl and other clients can use the
    API. Without --controllers there are no other controllers, so no pod ever runs. With --reload, what is in the API
    server survives each change of the code. Ctrl-C stops it; the state is in memory and not kept.

    Example:
        ocf dev shop.operator --reload --controllers all --apply shop.yaml
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
    asyncio.run(_dev_reloading(target, options) if reload else _dev(target, options))


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

    operators = load_operators(target)
    async with _serving(operators, options) as (process, stop), process.running(operators) as started:
        await started()
        await stop.wait()


async def _dev_reloading(target: str, options: _DevOptions) -> None:
    from ocf.cli.reload import Reloading
    from ocf.cli.source_code import SourceCode

    source = SourceCode(target)
    first = source.load()
    async with _serving(first.operators, options) as (process, stop):
        await Reloading(source, process.running, process.reloaded, process.failed).run(first, stop)


@asynccontextmanager
async def _serving(
    operators: Sequence[Operator[Any]], options: _DevOptions
) -> AsyncIterator[tuple[_Process, asyncio.Event]]:
    """Serve the API and the page; yield what runs operators, and the event that a signal sets."""
    from ocf.cli.dev_page import DevEditor
    from ocf.cli.owner_check import check_objects
    from ocf.cluster.client import ApiServerCluster
    from ocf.concepts import SystemClock
    from ocf.runtime.page import PageOptions
    from ocf.runtime.page.process import Page
    from ocf_server import EmbeddedCluster
    from ocf_server.http import serving

    embedded = EmbeddedCluster()
    await _define(embedded, operators, options)
    await check_objects(read_documents(map(str, options.apply)), embedded)
    stop = stopped_by_signals()
    async with (
        serving(embedded, port=options.port) as server,
        kubeconfig_of(server, options.kubeconfig) as path,
        running_controllers(embedded, options.controllers),
        await ApiServerCluster.connect(path) as cluster,
    ):
        editor = DevEditor(operators, cluster)
        page = Page(PageOptions(port=0, host=_HOST, editor=editor), SystemClock())
        async with page.serving(cluster):
            process = _Process(
                embedded=embedded,
                options=options,
                server=server,
                kubeconfig=path,
                page=page,
                editor=editor,
                defined=operators,
            )
            yield process, stop


async def _define(embedded: EmbeddedCluster, operators: Sequence[Operator[Any]], options: _DevOptions) -> None:
    """Apply the definitions of operators and of files."""
    from ocf.cli.owner_check import apply_definitions

    defined = [definition for operator in operators for definition in operator.all_definitions]
    known = {one["metadata"]["name"]: one for one in (*defined, *read_manifests(options.crd))}
    await apply_definitions(embedded, known.values())


@dataclass(slots=True, kw_only=True)
class _Process:
    """Runs operators as clients of the API, with their webhooks."""

    embedded: EmbeddedCluster
    options: _DevOptions
    server: HttpServer
    kubeconfig: Path
    page: Page
    editor: DevEditor
    defined: Sequence[Operator[Any]]
    """The operators whose definitions were applied last; none if they were not applied as a whole."""
    metrics_port: int = 0
    has_started: bool = False

    @asynccontextmanager
    async def running(self, operators: Sequence[Operator[Any]]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Run operators for as long as the block runs; yield a function that returns once they have started."""
        from ocf.cluster.client import ApiServerCluster
        from ocf.runtime.admission import Url
        from ocf.runtime.operator import Listen, ManagerOptions, WebhookOptions
        from ocf.runtime.operator.manager import Manager
        from ocf.runtime.operator.run import running_manager

        if self.defined is not operators:
            self.defined = ()
            await _define(self.embedded, operators, self.options)
        self.defined = operators
        self.editor.operators = tuple(operators)
        address = Url(f"https://{_HOST}")
        admission = WebhookOptions(address=address, namespace=_WEBHOOK_NAMESPACE, host=_HOST, port=0, register=True)
        options = ManagerOptions(listen=Listen(port=self.metrics_port, host=_HOST), admission=admission)
        async with AsyncExitStack() as stack:
            # What a version remembers of its requests is not that of the next one.
            cluster = await stack.enter_async_context(await ApiServerCluster.connect(self.kubeconfig))
            manager = Manager(cluster, operators, options, page=self.page)
            await stack.enter_async_context(running_manager(manager))
            yield partial(self._started, manager)

    async def _started(self, manager: Manager) -> None:
        """Wait until operators have started; the first ones get the objects of `--apply`."""
        await manager.started()
        if manager.endpoints is not None:
            self.metrics_port = manager.endpoints.port
        if not self.has_started:
            await load_files(self.embedded, self.options.apply, field_manager=_MANAGER)
            self._print(manager)
            self.has_started = True

    def _print(self, manager: Manager) -> None:
        print_server(self.server, self.kubeconfig, self.options.output)
        if self.options.output is ServeOutput.TEXT:
            for operator in self.editor.operators:
                api_version, kind = operator.owner_kind
                echo(f"operator {operator.name} reconciles {kind} of {api_version}")
            if manager.endpoints is not None:
                click.echo(f"metrics on {manager.endpoints.url}/metrics")
            if self.page.address is not None:
                click.echo(f"page on {self.page.address.url}/")

    def reloaded(self, files: str) -> None:
        """Print that the code was loaded again."""
        echo(f"reloaded: {files}", err=True)
        self.page.view.notice = ""

    def failed(self, problem: str) -> None:
        """Print why the code was not loaded again; the page shows it until it is."""
        echo(f"error: {problem}", color="red", err=True)
        self.page.view.notice = problem
