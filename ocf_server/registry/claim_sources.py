"""The two fields of a PersistentVolumeClaim that name the source of its data.

Source: `EnforceDataSourceBackwardsCompatibility` and `NormalizeDataSources` in `pkg/api/persistentvolumeclaim/util.go`
of Kubernetes.
"""

from collections.abc import Mapping
from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["set_sources"]

_FIELDS: Final = ("apiGroup", "kind", "name")
_KNOWN: Final = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def set_sources(claim: Manifest, live: Mapping[str, Any]) -> None:
    """Drop sources that the API server ignores, and copy the one of the two fields that is set to the other.

    Args:
        claim: The claim; its spec is replaced.
        live: The stored spec; empty for a new claim.
    """
    spec = claim["spec"] = dict(claim["spec"])
    reference = spec.get("dataSourceRef")
    if reference and reference.get("namespace") and "dataSourceRef" not in live:
        # Sources in other namespaces are off by default.
        del spec["dataSourceRef"]
    used = "dataSource" in live or "dataSourceRef" in live
    if not used and "dataSourceRef" not in spec and not _is_known(spec.get("dataSource")):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _copy(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _copy(reference)


def _is_known(source: Mapping[str, Any] | None) -> bool:
    return source is not None and (source.get("apiGroup") or "", source.get("kind")) in _KNOWN


def _copy(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name] for name in _FIELDS if name in source}
