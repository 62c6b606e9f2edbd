"""Snapshots of the state of a cluster that are comparable between runs.

Two equal runs still differ in uids, addresses of pods, resource versions and times. A snapshot omits resource versions,
masks times, and replaces each uid by the name of its object wherever it occurs, so that owner references are equal only
if they refer to the same object; each address likewise. The entries of `managedFields` are compared without times and
order, conditions without their order, which depends on what was set first. Generations are kept, because they count the
changes of a spec.
"""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, dump_document
from ocf.objects.conditions import typed_conditions
from ocf.objects.paths import get_field, parse_path, without_field
from ocf.objects.redaction import redacted
from ocf.testing.diffs import unified

__all__ = ["differences", "snapshot"]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_SHORTEST_TIME: Final = len("2026-01-01T00:00:00Z")
# A key of an entry of `managedFields`.
_ADDRESS: Final = re.compile(r'(?<=^k:\{"ip":")[^"]+')
_UID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


async def snapshot(
    cluster: Cluster, kinds: Iterable[tuple[str, str]], *, masks: Iterable[str] = ()
) -> dict[str, Manifest]:
    """Read every object of some kinds, masked so that two runs are comparable.

    Args:
        cluster: The cluster.
        kinds: `apiVersion` and `kind` of each kind; a kind that is not served has no objects.
        masks: Further fields that are left out of every object that has them, `status.secondsWaited`.

    Returns:
        The objects by identity (`apps/v1/Deployment/shop/web`), sorted by identity. Values of Secrets are redacted.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> default = asyncio.run(snapshot(EmbeddedCluster(), [("v1", "Namespace")]))["v1/Namespace/default"]
        >>> default["metadata"]["uid"], default["metadata"]["creationTimestamp"]
        ('uid of v1/Namespace/default', 'a time')
    """
    found = [item for kind in sorted(set(kinds)) for item in await _objects(cluster, *kind)]
    names = {str(item["metadata"].get("uid")): f"uid of {ObjectKey.of(item)}" for item in found}
    names |= {address: f"address of {ObjectKey.of(item)}" for item in found for address in _addresses(item)}
    paths = [parse_path(one) for one in masks]
    masked = {str(ObjectKey.of(item)): _masked(_without(item, paths), names) for item in found}
    return dict(sorted(masked.items()))


def differences(before: dict[str, Manifest], after: dict[str, Manifest], *, before_name: str, after_name: str) -> str:
    """Return the differences of two snapshots.

    Args:
        before_name: Name of `before` in the diff.
        after_name: Name of `after` in the diff.

    Returns:
        A unified diff for each object that differs; empty for equal snapshots.
    """
    pairs = ((name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys()))
    return "\n".join(
        unified(
            "" if old is None else dump_document(old),
            "" if new is None else dump_document(new),
            before_name=f"{name} ({before_name})",
            after_name=f"{name} ({after_name})",
        )
        for name, old, new in pairs
        if old != new
    )


async def _objects(cluster: Cluster, api_version: str, kind: str) -> tuple[Manifest, ...]:
    try:
        return (await cluster.list(api_version, kind)).items
    except NotFoundError:
        return ()


def _addresses(manifest: Manifest) -> set[str]:
    """Return the addresses that a pod has got for itself, and not from its node."""
    if manifest["kind"] != "Pod":
        return set()
    status = manifest.get("status") or {}
    return {str(one.get("ip")) for one in status.get("podIPs") or ()} - {status.get("hostIP")}


def _without(manifest: Manifest, paths: Iterable[Sequence[str]]) -> Manifest:
    for path in paths:
        manifest = without_field(manifest, path)
    return manifest


def _masked(manifest: Manifest, names: dict[str, str]) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    if "managedFields" in metadata:
        metadata["managedFields"] = sorted(metadata["managedFields"], key=_entry)
    masked: Manifest = _mask(redacted({**manifest, "metadata": metadata}), names)
    conditions = get_field(masked, ("status", "conditions"))
    typed = typed_conditions(conditions)
    # The API identifies them by their types, so another order is no difference.
    if typed and typed == conditions:
        masked["status"]["conditions"] = sorted(typed, key=itemgetter("type"))
    return masked


def _entry(managed: Manifest) -> tuple[str, ...]:
    return tuple(str(managed.get(key, "")) for key in ("manager", "operation", "subresource", "apiVersion"))


def _mask(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        # Nearly all texts are short: names of fields, above all.
        return names.get(value, value) if len(value) < _SHORTEST_TIME else _mask_text(value, names)
    if isinstance(value, dict):
        # Sorted, so that a diff does not show lines that only moved.
        return {
            key if len(key) < _SHORTEST_TIME else _mask_text(key, names): _mask(item, names) if item else item
            for key, item in sorted(value.items(), key=itemgetter(0))
        }
    if isinstance(value, list):
        return [_mask(item, names) for item in value]
    return value


def _mask_text(value: str, names: dict[str, str]) -> str:
    if _TIME.fullmatch(value):
        return "a time"
    value = _ADDRESS.sub(lambda match: names.get(match[0], match[0]), names.get(value, value))
    return _UID.sub(lambda match: names.get(match[0], "uid of nothing that was read"), value)
