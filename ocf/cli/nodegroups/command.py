"""`ocf nodegroups`: what the node-group controller would do now, why, and the controller itself."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.exit_status import FOUND
from ocf.cli.nodegroups.providers import (
    MOUNTED_CREDENTIALS,
    MOUNTED_TYPES,
    ProviderChoice,
    ProviderName,
    read_types_of,
)
from ocf.cli.options import (
    context_option,
    host_option,
    image_option,
    kubeconfig_option,
    leader_elect_option,
    port_option,
    traceback_option,
)
from ocf.cli.output import echo, log_text
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.controllers.nodegroup.observation import ClusterView
    from ocf.nodegroups import InstanceType

__all__ = ["nodegroups"]

# That of `ocf.nodegroups`, which is imported when it is needed.
_CUTOFF: Final = -10


class NodeGroupAction(StrEnum):
    """Actions of the command."""

    PLAN = "plan"
    EXPLAIN = "explain"
    TRY = "try"
    RUN = "run"
    MANIFESTS = "manifests"


class PlanOutput(StrEnum):
    """Output formats."""

    TEXT = "text"
    JSON = "json"


@click.command(cls=Command)
@click.argument(
    "action",
    type=OneOf(NodeGroupAction),
    metavar="ACTION",
    help="Print the plan, with reasons, try it without a cluster, run it, or install it.",
)
@click.argument(
    "files",
    nargs=-1,
    metavar="FILE...",
    help="For plan and explain: files with all objects; default: the cluster. For try: files with groups and"
    " workloads.",
)
@click.option("--provider", type=OneOf(ProviderName), default=ProviderName.KWOK, help="The provider of the machines.")
@click.option("--types", default="", metavar="FILE", help="For kwok, plans and try: file with the instance types.")
@click.option(
    "--machine-namespace",
    default="default",
    metavar="NAME",
    help="For cluster-api: namespace of the MachineDeployments.",
)
@click.option(
    "--machine-selector",
    default="",
    metavar="SELECTOR",
    help="For cluster-api: label selector of the MachineDeployments.",
)
@click.option(
    "--management-kubeconfig",
    default="",
    metavar="FILE",
    help="For cluster-api: the management cluster; default: the cluster itself.",
)
@click.option("--vpsie-cluster", default="", metavar="UUID", help="For vpsie: the cluster at VPSie.")
@click.option(
    "--datacenter", multiple=True, metavar="NAME", help="For vpsie: a datacenter whose sizes are offered; repeatable."
)
@click.option("--vpsie-url", default="", metavar="URL", help="For vpsie: base URL of the API.")
@click.option(
    "--credentials",
    default="",
    metavar="DIR",
    help="For vpsie: folder with the file token, or client-id and client-secret; default: VPSIE_TOKEN, or"
    " VPSIE_CLIENT_ID and VPSIE_CLIENT_SECRET.",
)
@click.option(
    "--priority-cutoff",
    type=int,
    default=_CUTOFF,
    metavar="N",
    help="No node is added or kept for pods with a lower priority.",
)
@click.option("--dry-run", is_flag=True, help="For run: decide, and write nothing.")
@click.option("length", "--for", default="1h", metavar="DURATION", help="For try: how much virtual time passes.")
@click.option(
    "--boot-time", default="45s", metavar="DURATION", help="For try: time until a machine that was ordered is a node."
)
@leader_elect_option
@host_option
@port_option
@click.option("--namespace", default="ocf-system", metavar="NAME", help="Namespace of the controller and of its lease.")
@image_option
@kubeconfig_option
@context_option
@click.option("--output", type=OneOf(PlanOutput), default=PlanOutput.TEXT, help="text for people, or json.")
@click.option("--picture", type=Path, metavar="FILE", help="For explain: also write a page, FILE.html.")
@traceback_option
def nodegroups(  # noqa: PLR0913 (each is an option of the command line)
    action: NodeGroupAction,
    files: tuple[str, ...],
    *,
    provider: ProviderName,
    types: str,
    machine_namespace: str,
    machine_selector: str,
    management_kubeconfig: str,
    vpsie_cluster: str,
    datacenter: tuple[str, ...],
    vpsie_url: str,
    credentials: str,
    priority_cutoff: int,
    dry_run: bool,
    length: str,
    boot_time: str,
    leader_elect: bool,
    host: str,
    port: int,
    namespace: str,
    image: str,
    kubeconfig: str | None,
    context: str | None,
    output: PlanOutput,
    picture: Path | None,
) -> None:
    """Show what node groups would do now and why, or run their controller.

    The plan is computed from a cluster, or from files with its objects, and changes nothing. Instance types are those
    of the provider, or of --types. Credentials of a provider are read from files or from the environment. To try groups
    needs no cluster and no provider: the controller runs in virtual time, in a simulated cloud.

    Example:
        ocf nodegroups explain cluster.yaml --types types.yaml
    """
    if action is NodeGroupAction.TRY:
        from ocf.cli.nodegroups.trial_report import print_trial

        if not print_trial(files, types, length, boot_time, as_json=output is PlanOutput.JSON):
            raise Exit(FOUND)
        return
    plans = action in (NodeGroupAction.PLAN, NodeGroupAction.EXPLAIN)
    if files and not plans:
        raise ConfigError(f"{action} takes no files, got {' '.join(files)}; plan, explain and try do")
    if picture is not None:
        _check_picture(picture, action)
    if plans and types:
        # A plan needs nothing of a provider but its types.
        provider = ProviderName.KWOK
    if action is NodeGroupAction.MANIFESTS and not types:
        types = MOUNTED_TYPES
    choice = ProviderChoice(
        name=provider,
        types=types,
        namespace=machine_namespace,
        selector=machine_selector,
        management_kubeconfig=management_kubeconfig,
        cluster_id=vpsie_cluster,
        datacenters=datacenter,
        url=vpsie_url,
        credentials=credentials,
    )
    if action is NodeGroupAction.MANIFESTS:
        extra = [f"--priority-cutoff={priority_cutoff}"] if priority_cutoff != _CUTOFF else []
        _print_manifests(choice, namespace, image, output, extra=extra, dry_run=dry_run, elected=leader_elect)
        return
    if action is NodeGroupAction.RUN:
        from ocf.concepts.open_files import raise_open_files

        log_text(logging.INFO)
        raise_open_files()
        asyncio.run(
            _run(
                choice,
                kubeconfig,
                context,
                host,
                port,
                lease=namespace if leader_elect else "",
                cutoff=priority_cutoff,
                dry_run=dry_run,
            )
        )
        return
    view, known = asyncio.run(_observe(choice, files, kubeconfig, context))
    explains = action is NodeGroupAction.EXPLAIN
    _print_plan(view, known, output, cutoff=priority_cutoff, explain=explains, picture=picture)


async def _observe(
    choice: ProviderChoice, files: Sequence[str], kubeconfig: str | None, context: str | None
) -> tuple[ClusterView, Sequence[InstanceType]]:
    """Read the cluster, or files, and the instance types of the provider."""
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.metrics_client import RESTMetricsClient
    from ocf.controllers.nodegroup.observation import read_cluster

    if choice.name is ProviderName.KWOK:
        types = read_types_of(choice.types)
        if files:
            return _from_files(files), types
        async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
            return await read_cluster(cluster, RESTMetricsClient(cluster)), types
    async with AsyncExitStack() as stack:
        make = await stack.enter_async_context(choice.opened())
        cluster = await stack.enter_async_context(await ApiServerCluster.connect(kubeconfig, context=context))
        view = _from_files(files) if files else await read_cluster(cluster, RESTMetricsClient(cluster))
        return view, await make(cluster).instance_types()


def _from_files(files: Sequence[str]) -> ClusterView:
    from ocf.cli.manifest_files import read_documents
    from ocf.controllers.nodegroup.cluster_reader import KINDS
    from ocf.controllers.nodegroup.observation import view_of

    manifests = []
    for each in read_documents(files):
        if each.manifest is None:
            raise ConfigError(f"{each.file}:{each.line}: {each.problem}")
        kind, metadata = each.manifest.get("kind"), each.manifest.get("metadata")
        read = (str(each.manifest.get("apiVersion")), str(kind)) in KINDS
        if read and not (isinstance(metadata, dict) and isinstance(metadata.get("name"), str)):
            raise ConfigError(f"{each.file}:{each.line}: {kind}: metadata.name: must be a string, got {metadata!r}")
        manifests.append(each.manifest)
    return view_of(manifests)


def _check_picture(picture: Path, action: NodeGroupAction) -> None:
    from ocf.cli.explain.picture import check

    if action is not NodeGroupAction.EXPLAIN:
        raise ConfigError(f"--picture is for explain, not for {action}")
    check(picture, (".html",))


def _print_plan(
    view: ClusterView,
    types: Sequence[InstanceType],
    output: PlanOutput,
    *,
    cutoff: int,
    explain: bool,
    picture: Path | None,
) -> None:
    from datetime import UTC, datetime

    from ocf.controllers.nodegroup.plan import make_plan
    from ocf.controllers.nodegroup.plan_report import plan_json, plan_lines
    from ocf.nodegroups import Catalog

    plan = make_plan(view, Catalog.of(types), datetime.now(UTC).replace(microsecond=0), priority_cutoff=cutoff)
    if picture is not None:
        from ocf.cli.explain.picture import write
        from ocf.controllers.nodegroup.plan_page import plan_html

        write(plan_html(view, plan), picture)
    if output is PlanOutput.JSON:
        click.echo(json.dumps(plan_json(view, plan), indent=2))
        return
    for line in plan_lines(view, plan, explain=explain):
        echo(line)


async def _run(  # noqa: PLR0913 (most are options of the command line)
    choice: ProviderChoice,
    kubeconfig: str | None,
    context: str | None,
    host: str,
    port: int,
    *,
    lease: str,
    cutoff: int,
    dry_run: bool,
) -> None:
    from ocf.cli.controllers import stopped_by_signals
    from ocf.cluster.client import ApiServerCluster
    from ocf.controllers.metrics_client import RESTMetricsClient
    from ocf.controllers.nodegroup.manifests import NAME
    from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
    from ocf.controllers.nodegroup.process import ProcessOptions, run_process
    from ocf.runtime.operator import Lease, Listen
    from ocf.runtime.operator.environment import environment_tracer

    stop = stopped_by_signals()
    async with (
        choice.opened() as make_provider,
        await ApiServerCluster.connect(kubeconfig, context=context) as cluster,
    ):
        options = ProcessOptions(
            controller=NodeGroupControllerOptions(
                dry_run=dry_run, priority_cutoff=cutoff, metrics=RESTMetricsClient(cluster)
            ),
            lease=Lease(NAME, lease) if lease else None,
            listen=Listen(port, host),
            tracer=environment_tracer(os.environ),
        )
        await run_process(
            cluster,
            make_provider,
            options,
            stop,
            on_serving=lambda endpoints: click.echo(f"metrics on {endpoints.url}/metrics; Ctrl-C stops it", err=True),
        )


def _print_manifests(
    choice: ProviderChoice,
    namespace: str,
    image: str,
    output: PlanOutput,
    *,
    extra: Sequence[str],
    dry_run: bool,
    elected: bool,
) -> None:
    from ocf.cli.controllers import print_manifests
    from ocf.controllers.nodegroup.manifests import NAME, NodeGroupInstallation, installation_manifests

    if choice.management_kubeconfig:
        raise ConfigError(
            "--management-kubeconfig cannot be installed: mount the file into the Deployment, and add the option to its"
            " command"
        )
    kwok, vpsie = choice.name is ProviderName.KWOK, choice.name is ProviderName.VPSIE
    command = ["ocf", "nodegroups", "run", *choice.arguments, f"--namespace={namespace}", *extra]
    wanted = NodeGroupInstallation(
        namespace=namespace,
        image=image,
        command=[*command, *(["--dry-run"] if dry_run else []), *([] if elected else ["--no-leader-elect"])],
        leader_election=elected,
        dry_run=dry_run,
        config_maps={str(PurePosixPath(MOUNTED_TYPES).parent): f"{NAME}-types"} if kwok else {},
        secrets={MOUNTED_CREDENTIALS: f"{NAME}-credentials"} if vpsie else {},
        provider_rules=choice.rules(dry_run=dry_run),
    )
    print_manifests(installation_manifests(wanted), namespace, json=output is PlanOutput.JSON)
