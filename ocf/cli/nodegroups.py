"""`ocf nodegroups`: what the node-group controller would do now, why, and the controller itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ocf.cli.options import Context, Host, Image, Kubeconfig, LeaderElect, Port, Traceback
from ocf.cli.output import exit_on_error

if TYPE_CHECKING:
    from ocf.controllers.nodegroup.observation import ClusterView
    from ocf.nodegroups import InstanceType

__all__ = ["nodegroups"]


class NodeGroupAction(StrEnum):
    """Actions of the command."""

    PLAN = "plan"
    EXPLAIN = "explain"
    RUN = "run"
    MANIFESTS = "manifests"


class PlanOutput(StrEnum):
    """Output formats."""

    TEXT = "text"
    JSON = "json"


def nodegroups(  # noqa: PLR0913 (each is an option)
    action: Annotated[NodeGroupAction, typer.Argument(help="Print the plan, with reasons, run it, or install it.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="For plan and explain: files with all objects; default: the cluster."),
    ] = None,
    *,
    types: Annotated[
        str, typer.Option("--types", metavar="FILE", help="YAML or JSON file with the instance types.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="For run: decide, and write nothing.")] = False,
    leader_elect: LeaderElect = True,
    host: Host = "0.0.0.0",  # noqa: S104 (the kubelet and Prometheus connect from outside the pod)
    port: Port = 8080,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the controller and of its lease.")
    ] = "ocf-system",
    image: Image = "ocf:latest",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[PlanOutput, typer.Option(help="text for people, or json.")] = PlanOutput.TEXT,
    traceback: Traceback = False,
) -> None:
    """Show what node groups would do now and why, or run their controller on the nodes of kwok.

    The plan is computed from a cluster, or from files with its objects, and changes nothing. With run, the controller
    runs with kwok as its provider; other providers are chosen in Python, see ocf.controllers.nodegroup.process.
    """
    with exit_on_error(traceback=traceback):
        if action is NodeGroupAction.MANIFESTS:
            _print_manifests(namespace, image, output, dry_run=dry_run)
            return
        known = _types(types)
        if action is NodeGroupAction.RUN:
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
            asyncio.run(
                _run(known, kubeconfig, context, host, port, lease=namespace if leader_elect else "", dry_run=dry_run)
            )
            return
        view = _from_files(files) if files else asyncio.run(_from_cluster(kubeconfig, context))
        _print_plan(view, known, output, explain=action is NodeGroupAction.EXPLAIN)


def _types(path: str) -> Sequence[InstanceType]:
    from pathlib import Path

    from ocf.controllers.nodegroup.type_file import read_types
    from ocf.errors import ConfigError
    from ocf.objects.yaml_reader import read_yaml

    if not path:
        raise ConfigError("--types must name a file with the instance types")
    documents = list(read_yaml(Path(path).read_text(encoding="utf-8"), path))
    return read_types(documents[0] if documents else None)


def _from_files(files: Sequence[str]) -> ClusterView:
    from ocf.cli.manifest_files import read_documents
    from ocf.controllers.nodegroup.observation import view_of
    from ocf.errors import ConfigError

    manifests = []
    for each in read_documents(files):
        if each.manifest is None:
            raise ConfigError(f"{each.file}:{each.line}: {each.problem}")
        manifests.append(each.manifest)
    return view_of(manifests)


async def _from_cluster(kubeconfig: str | None, context: str | None) -> ClusterView:
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.metrics_client import RESTMetricsClient
    from ocf.controllers.nodegroup.observation import read_cluster

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        return await read_cluster(cluster, RESTMetricsClient(cluster))


def _print_plan(view: ClusterView, types: Sequence[InstanceType], output: PlanOutput, *, explain: bool) -> None:
    from datetime import UTC, datetime

    from ocf.controllers.nodegroup.plan import make_plan
    from ocf.controllers.nodegroup.plan_report import plan_json, plan_lines
    from ocf.nodegroups import Catalog

    plan = make_plan(view, Catalog.of(types), datetime.now(UTC).replace(microsecond=0))
    if output is PlanOutput.JSON:
        typer.echo(json.dumps(plan_json(view, plan), indent=2))
        return
    for line in plan_lines(view, plan, explain=explain):
        typer.echo(line)


async def _run(
    types: Sequence[InstanceType],
    kubeconfig: str | None,
    context: str | None,
    host: str,
    port: int,
    *,
    lease: str,
    dry_run: bool,
) -> None:
    from ocf.cli.controllers import stopped_by_signals
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.metrics_client import RESTMetricsClient
    from ocf.controllers.nodegroup.controller import ControllerOptions
    from ocf.controllers.nodegroup.manifests import NAME
    from ocf.controllers.nodegroup.process import ProcessOptions, run_process
    from ocf.controllers.nodegroup.providers.kwok import KwokProvider
    from ocf.runtime.operator import Lease, Listen

    stop = stopped_by_signals()
    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        options = ProcessOptions(
            controller=ControllerOptions(dry_run=dry_run, metrics=RESTMetricsClient(cluster)),
            lease=Lease(NAME, lease) if lease else None,
            listen=Listen(port, host),
        )
        await run_process(
            cluster,
            lambda where: KwokProvider(where, types),
            options,
            stop,
            on_serving=lambda endpoints: typer.echo(f"metrics on {endpoints.url}/metrics; Ctrl-C stops it", err=True),
        )


def _print_manifests(namespace: str, image: str, output: PlanOutput, *, dry_run: bool) -> None:
    from ocf.cli.controllers import print_manifests
    from ocf.controllers.nodegroup.manifests import NAME, Installation, installation_manifests
    from ocf.runtime.rbac import PolicyRule

    command = ["ocf", "nodegroups", "run", "--types=/etc/ocf/types.yaml", f"--namespace={namespace}"]
    wanted = Installation(
        namespace=namespace,
        image=image,
        command=[*command, *(["--dry-run"] if dry_run else [])],
        dry_run=dry_run,
        config_map=f"{NAME}-types",
        # kwok's machines are Nodes.
        provider_rules=frozenset() if dry_run else frozenset({PolicyRule("", "nodes", "create")}),
    )
    print_manifests(installation_manifests(wanted), json=output is PlanOutput.JSON)
