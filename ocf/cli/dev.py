"""`ocf dev`: an operator at work on an embedded API server, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

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
    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf.runtime.operator import Manager, Operator

__all__ = ["dev"]

_MANAGER: Final = "ocf-dev"
_HOST: Final = "127.0.0.1"
_WEBHOOK_NAMESPACE: Final = "kube-system"
"""Where the certificate of the webhooks is kept."""
_RULES: Final = "x-kubernetes-validations"


def dev(  # noqa: PLR0913 (each is an option of the command line)
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE[:NAME]", help="Where the operator is: shop.operator, shop/operator.py or shop."),
    ],
    *,
    apply: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Manifests to begin with, as kubectl applies; repeatable.")
    ] = None,
    crd: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Further CustomResourceDefinitions; repeatable.")
    ] = None,
    rollouts: Annotated[
        bool, typer.Option("--rollouts", help="Report every workload as rolled out, as if its pods ran.")
    ] = False,
    port: Port = 0,
    kubeconfig: Kubeconfig = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the operator does.")] = False,
    output: OutputOption = ServeOutput.TEXT,
    traceback: Traceback = False,
) -> None:
    """Run an operator against an embedded Kubernetes API on this machine, to be played with.

    Its definitions are applied and its webhooks are registered; kubectl and any other client can use the API. There are
    no other controllers, so no pod ever runs. It ends with Ctrl-C, and everything in it is gone.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    with exit_on_error(traceback=traceback):
        wishes = _DevOptions(
            apply=apply or (), crd=crd or (), rollouts=rollouts, port=port, kubeconfig=kubeconfig, output=output
        )
        asyncio.run(_dev(target, wishes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _DevOptions:
    """What was asked for besides the operator."""

    apply: Sequence[Path]
    crd: Sequence[Path]
    rollouts: bool
    port: int
    kubeconfig: Path | None
    output: ServeOutput


async def _dev(target: str, wishes: _DevOptions) -> None:
    from ocf.cli.operator_loader import load_operator
    from ocf.embedded import EmbeddedCluster
    from ocf.embedded.http import load_manifests, serving

    operator = load_operator(target)
    manifests = list(read_manifests(wishes.apply))
    embedded = EmbeddedCluster()
    given = (*_definitions(operator), *read_manifests(wishes.crd))
    definitions = [await _without_unsupported_rules(embedded, definition) for definition in given]
    await load_manifests(embedded, definitions, field_manager=_MANAGER)
    stopped = stop_event()
    async with (
        serving(embedded, port=wishes.port) as server,
        kubeconfig_of(server, wishes.kubeconfig) as path,
        _run_operator(operator, path, rollouts=wishes.rollouts) as process,
    ):
        await load_manifests(embedded, manifests, field_manager=_MANAGER)
        print_server(server, path, wishes.output)
        if wishes.output is ServeOutput.TEXT:
            _print_operator(operator, process)
        await stopped.wait()


def _definitions(operator: Operator[Any]) -> list[Manifest]:
    own = [operator.owner.definition] if operator.owner.definition is not None else []
    return [*own, *operator.definitions]


async def _without_unsupported_rules(embedded: Cluster, definition: Manifest) -> Manifest:
    """Leave out the rules in CEL if the embedded cluster refuses to guess at one of them, and say so."""
    from ocf.errors import ApiError, BadRequestError

    left = cast("Manifest", _without_rules(definition))
    if left == definition:
        return definition
    try:
        await embedded.create(definition, field_manager=_MANAGER, dry_run=True)
    except BadRequestError as error:
        if _RULES in error.message:
            name = definition.get("metadata", {}).get("name")
            note = f"note: the rules in CEL ({_RULES}) of {name} are not checked here: {error.message}"
            typer.secho(note, fg=typer.colors.YELLOW, err=True)
            return left
    except ApiError:
        # Whoever creates it in earnest is told.
        pass
    return definition


def _without_rules(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_rules(below) for name, below in value.items() if name != _RULES}
    return [_without_rules(below) for below in value] if isinstance(value, list) else value


@asynccontextmanager
async def _run_operator(operator: Operator[Any], kubeconfig: Path, *, rollouts: bool) -> AsyncIterator[Manager]:
    """Have the operator work through the API as any client, with all that it needs."""
    from ocf.cluster.client import ApiServerCluster
    from ocf.runtime.admission import Url
    from ocf.runtime.operator import Listen, ManagerOptions, WebhookOptions, running
    from ocf.testing import fake_workload_controllers

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(await ApiServerCluster.connect(kubeconfig))
        if rollouts:
            await stack.enter_async_context(fake_workload_controllers(cluster))
        address = Url(f"https://{_HOST}")
        admission = WebhookOptions(address=address, namespace=_WEBHOOK_NAMESPACE, host=_HOST, port=0, register=True)
        options = ManagerOptions(listen=Listen(port=0, host=_HOST), admission=admission)
        process = await stack.enter_async_context(running(cluster, operator, options=options))
        await process.started()
        yield process


def _print_operator(operator: Operator[Any], process: Manager) -> None:
    api_version, kind = operator.owner_kind
    typer.echo(f"operator {operator.name} works on {kind} of {api_version}")
    if process.endpoints is not None:
        typer.echo(f"its metrics: {process.endpoints.url}/metrics")
