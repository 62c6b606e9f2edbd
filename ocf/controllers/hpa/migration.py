"""Migration of an autoscaler from HorizontalPodAutoscaler to our own kind, and back.

Our controller does not scale a target that a HorizontalPodAutoscaler names, so the new object is always created before
the old one is deleted: in between, only the controller of the HorizontalPodAutoscaler is responsible. Each step waits
until the controller that has to act next has shown in a status that it runs.
"""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Final

from ocf.cluster import Cluster, DeleteOptions
from ocf.cluster.protocol import Preconditions
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.errors import ConfigError, ServerError
from ocf.objects import Manifest, ObjectKey

__all__ = ["migrate", "to_built_in_kind", "to_own_kind"]

_MANAGER: Final = "ocf-hpa-migrate"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_PAUSE: Final = timedelta(milliseconds=500)
_CLAIMED: Final = "TargetClaimed"


def to_own_kind(hpa: Manifest) -> Manifest:
    """Return the autoscaler of our own kind that does what a HorizontalPodAutoscaler does.

    Args:
        hpa: The HorizontalPodAutoscaler, autoscaling/v2.

    Returns:
        An object to be created: name, namespace, labels, annotations and spec; without status, owners and finalizers.

    Example:
        >>> hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
        >>> to_own_kind({**hpa, "spec": {"maxReplicas": 3}})["kind"]
        'HorizontalAutoscaler'
    """
    return _converted(hpa, OWN)


def to_built_in_kind(autoscaler: Manifest) -> Manifest:
    """Return the HorizontalPodAutoscaler that does what an autoscaler of our own kind does."""
    settings = autoscaler["spec"].get("settings")
    if settings:
        name = autoscaler["metadata"]["name"]
        raise ConfigError(
            f"HorizontalAutoscaler {name}: spec.settings has {', '.join(sorted(settings))}, which a"
            " HorizontalPodAutoscaler cannot have; remove spec.settings first"
        )
    return _converted(to_autoscaling_v2(autoscaler), BUILT_IN)


def _converted(autoscaler: Manifest, kind: tuple[str, str]) -> Manifest:
    metadata = autoscaler["metadata"]
    kept = {field: metadata[field] for field in ("name", "namespace", "labels") if metadata.get(field)}
    # kubectl would compare the next apply with the manifest of the other kind.
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    if annotations:
        kept["annotations"] = annotations
    spec = {field: value for field, value in autoscaler["spec"].items() if value is not None}
    return deepcopy({"apiVersion": kind[0], "kind": kind[1], "metadata": kept, "spec": spec})


async def migrate(
    cluster: Cluster,
    name: str,
    namespace: str,
    *,
    back: bool = False,
    limit: timedelta = timedelta(minutes=2),
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Migrate one autoscaler; a migration that was interrupted continues when it is called again.

    Args:
        cluster: The cluster; both controllers must be running.
        limit: How long a step may take; after that the new object is deleted, and the old one is as before.
    """
    source, target = (ObjectKey(*kind, name, namespace) for kind in ((OWN, BUILT_IN) if back else (BUILT_IN, OWN)))
    old = await cluster.get(source)
    created = await cluster.apply(to_built_in_kind(old) if back else to_own_kind(old), field_manager=_MANAGER)
    report(f"created {target}")
    try:
        # Ours stops when it sees the HorizontalPodAutoscaler, and its status shows that.
        ours = source if back else target
        await _until(cluster, ours, _is_refused, "the controller of ocf does not run (in mode own-kind)", limit)
        report(f"{ours} does not scale while the other one exists")
        if back:
            await _until(cluster, target, _is_run, "the built-in controller does not run it", limit)
            report(f"{target} scales")
        await _check_unchanged(cluster, source, old)
    except ServerError:
        # Without this, ours would wait for a controller that does not come.
        await cluster.delete(target, _only(created))
        report(f"deleted {target} again")
        raise
    await cluster.delete(source, _only(old))
    report(f"deleted {source}")
    if not back:
        await _until(cluster, target, _is_run, "the controller of ocf does not run it", limit)
        report(f"{target} scales")


async def _check_unchanged(cluster: Cluster, source: ObjectKey, old: Manifest) -> None:
    if (await cluster.get(source))["spec"] != old["spec"]:
        raise ServerError(f"{source} has changed during the migration; migrate it again")


def _only(live: Manifest) -> DeleteOptions:
    # One that was deleted and created again meanwhile is not the one that was migrated.
    return DeleteOptions(preconditions=Preconditions(uid=live["metadata"].get("uid")))


async def _until(
    cluster: Cluster, key: ObjectKey, reached: Callable[[Manifest], bool], problem: str, limit: timedelta
) -> None:
    try:
        async with asyncio.timeout(limit.total_seconds()):
            while not reached(await cluster.get(key)):  # noqa: ASYNC110 (a controller in another process)
                await asyncio.sleep(_PAUSE.total_seconds())
    except TimeoutError:
        raise ServerError(f"{key}: {problem} after {limit.total_seconds():g} s") from None


def _reasons(autoscaler: Manifest) -> dict[str, tuple[str, str]]:
    conditions = (autoscaler.get("status") or {}).get("conditions") or ()
    return {each["type"]: (each["status"], each.get("reason", "")) for each in conditions}


def _is_refused(autoscaler: Manifest) -> bool:
    return _reasons(autoscaler).get("AbleToScale") == ("False", _CLAIMED)


def _is_run(autoscaler: Manifest) -> bool:
    return _reasons(autoscaler).get("AbleToScale", ("", _CLAIMED))[1] != _CLAIMED
