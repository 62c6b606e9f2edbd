"""The scenario that `ocf simulate --init` prints for an HPA of manifests or of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ocf.autoscaling.api.kinds import kind_problem
from ocf.cli.output import echo
from ocf.errors import ConfigError, FieldProblem, ForbiddenError, ManifestError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.paths import get_field
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation import InputError, initial_scenario
from ocf.simulation.input_errors import InputProblem
from ocf.simulation.scenario.autoscaler_file import checked_hpa
from ocf.simulation.scenario.scaled_objects import SCALED_OBJECT_KIND, parts_of_scaled_object

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.cluster import Cluster
    from ocf.objects import Manifest

__all__ = ["print_scenario"]

_KIND = "HorizontalPodAutoscaler"
_KINDS = (_KIND, SCALED_OBJECT_KIND)
_API_VERSION = "autoscaling/v2"


def print_scenario(
    files: Sequence[str], *, name: str | None, namespace: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """Print a scenario for an HPA or a ScaledObject, with the requests of its target if that is known.

    Args:
        files: Manifests; none for the cluster.
        name: Name of the HPA; None if the manifests have only one.
        namespace: Its namespace; None for any in manifests, and for that of the context in a cluster.
        kubeconfig: Kubeconfig file; None for the default of kubectl.
        context: Context of the kubeconfig; None for the current one.
    """
    if files:
        hpa, target = _of_files(files, name, namespace)
    elif name is not None:
        hpa, target = asyncio.run(_of_cluster(name, namespace, kubeconfig, context))
    else:
        raise ConfigError("--init needs the manifest of an HPA, or --name of one in a cluster")
    if hpa.get("kind") == SCALED_OBJECT_KIND:
        for note in parts_of_scaled_object(hpa).notes:
            echo(f"note: {note}", err=True)
    click.echo(initial_scenario(hpa, target), nl=False)


def _of_files(files: Sequence[str], name: str | None, namespace: str | None) -> tuple[Manifest, Manifest | None]:
    from ocf.cli.manifest_files import read_documents

    objects: list[tuple[Document, Manifest]] = []
    for document in read_documents(files):
        if document.manifest is None:
            raise ConfigError(f"{document.file}: {document.problem}")
        meant = kind_problem(document.manifest)
        if meant is not None:
            raise ConfigError(f"{document.place}: {meant.path}: {meant.detail}")
        objects.append((document, document.manifest))
    autoscalers = [(document, each) for document, each in objects if each.get("kind") in _KINDS]
    if not autoscalers:
        raise ConfigError(f"{', '.join(files)}: expected a {' or a '.join(_KINDS)}, found none")
    found = [
        (document, each)
        for document, each in autoscalers
        if name in (None, get_field(each, ("metadata", "name")))
        and namespace in (None, get_field(each, ("metadata", "namespace")))
    ]
    if len(found) != 1:
        names = ", ".join(sorted(str(get_field(each, ("metadata", "name"))) for _, each in autoscalers))
        raise ConfigError(
            f"expected one {' or '.join(_KINDS)}, found {len(found)}; select one of these with --name: {names}"
        )
    document, hpa = found[0]
    _check(document, hpa)
    return hpa, next((each for _, each in objects if _is_target(each, hpa)), None)


def _check(document: Document, hpa: Manifest) -> None:
    if hpa.get("kind") == SCALED_OBJECT_KIND:
        try:
            parts = parts_of_scaled_object(hpa)
        except ManifestError as error:
            raise InputError(_problem(document, each.path, each.detail) for each in error.problems) from None
        _, problems = checked_hpa(parts.hpa, FeatureGates())
        problems = [
            FieldProblem(parts.written_path(each.path), f"of the HPA that KEDA makes of it: {each.detail}")
            for each in problems
        ]
    else:
        _, problems = checked_hpa(hpa, FeatureGates())
    if problems:
        raise InputError(_problem(document, each.path, each.detail) for each in problems)


def _problem(document: Document, path: str, detail: str) -> InputProblem:
    from ocf.cli.validate.places import find_place

    return InputProblem(document.file, detail, find_place(document, path).line, path)


def _is_target(manifest: Manifest, hpa: Manifest) -> bool:
    wanted = get_field(hpa, ("spec", "scaleTargetRef")) or {}
    # Only a ScaledObject may leave out the kind.
    wanted = {"kind": "Deployment", **wanted}
    return (manifest.get("kind"), get_field(manifest, ("metadata", "name"))) == (
        wanted.get("kind"),
        wanted.get("name"),
    ) and get_field(manifest, ("metadata", "namespace")) == get_field(hpa, ("metadata", "namespace"))


async def _of_cluster(
    name: str, namespace: str | None, kubeconfig: str | None, context: str | None
) -> tuple[Manifest, Manifest | None]:
    """Read an HPA and its target; a function of its own so that tests can replace it."""
    from ocf.cli.autoscaler_clients import context_namespace, missing_autoscaler
    from ocf.cluster.client import ApiServerCluster

    where = namespace or context_namespace(kubeconfig, context)
    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        key = ObjectKey(_API_VERSION, _KIND, name, where)
        try:
            hpa = await cluster.get(key)
        except NotFoundError as error:
            raise await missing_autoscaler(cluster, key, error) from error
        wanted = hpa["spec"]["scaleTargetRef"]
        target_key = ObjectKey(wanted.get("apiVersion", "v1"), wanted["kind"], wanted["name"], where)
        target = await _found(cluster, target_key, "its replicas and requests are assumptions")
        for owner in get_field(hpa, ("metadata", "ownerReferences")) or ():
            if owner["kind"] == SCALED_OBJECT_KIND:
                owner_key = ObjectKey(owner["apiVersion"], owner["kind"], owner["name"], where)
                made_of = await _found(cluster, owner_key, "scaling from and to zero is missing in the scenario")
                if made_of is not None:
                    return made_of, target
        return hpa, target


async def _found(cluster: Cluster, key: ObjectKey, without: str) -> Manifest | None:
    """Read an object; None with a note if there is none, or reading it is not allowed.

    Args:
        without: What the scenario lacks then.
    """
    try:
        return await cluster.get(key)
    except NotFoundError:
        problem = "it does not exist"
    except ForbiddenError as error:
        problem = str(error)
    echo(f"note: {key.kind} {key.namespace}/{key.name} cannot be read: {problem}; {without}", err=True)
    return None
