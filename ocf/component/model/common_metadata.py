"""Labels and annotations that a component adds to all its objects.

A value that a resource sets itself wins, whichever of its baseline and its mutations sets it. Selectors are never
changed: the API server rejects a change of the selector of a workload, and a Service would lose its pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.metadata_validation import annotation_errors, label_errors
from ocf.objects.paths import get_field

__all__ = ["NO_METADATA", "CommonMetadata", "MetadataPart"]

_POD_TEMPLATE: Final = ("spec", "template")
_POD_TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps/v1", "DaemonSet"): _POD_TEMPLATE,
    ("apps/v1", "Deployment"): _POD_TEMPLATE,
    ("apps/v1", "ReplicaSet"): _POD_TEMPLATE,
    ("apps/v1", "StatefulSet"): _POD_TEMPLATE,
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch/v1", "Job"): _POD_TEMPLATE,
}


@dataclass(frozen=True, slots=True)
class MetadataPart:
    """Labels and annotations for one place."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def problems(self) -> Iterator[str]:
        """Yield why the API server would reject them."""
        errors = [
            *label_errors(self.labels, "common labels"),
            *annotation_errors(self.annotations, "common annotations"),
        ]
        yield from (f"{error.path}: {error.message}" for error in errors)

    def added_to(self, holder: Manifest, path: tuple[str, ...], ignored: Collection[tuple[str, ...]]) -> Manifest:
        """Return an object, or a pod template, with the values that its metadata does not have."""
        metadata = dict(holder.get("metadata") or {})
        for name, entries in (("labels", self.labels), ("annotations", self.annotations)):
            present = metadata.get(name) or {}
            place = (*path, "metadata", name)
            added = {
                key: entries[key] for key in entries if not (key in present or _is_ignored((*place, key), ignored))
            }
            if added:
                metadata[name] = {**present, **added}
        return {**holder, "metadata": metadata} if metadata else holder


@dataclass(frozen=True, slots=True)
class CommonMetadata:
    """Labels and annotations that a component adds to its objects, where a resource does not set them itself.

    Args:
        objects: Added to the metadata of every object.
        pod_templates: Added to the metadata of every pod template of a built-in workload.

    Example:
        >>> common = CommonMetadata(MetadataPart(labels={"team": "web", "tier": "backend"}))
        >>> service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"tier": "front"}}}
        >>> common.added_to(service)["metadata"]
        {'name': 'web', 'labels': {'tier': 'front', 'team': 'web'}}
    """

    objects: MetadataPart = field(default_factory=MetadataPart)
    pod_templates: MetadataPart = field(default_factory=MetadataPart)

    def __bool__(self) -> bool:
        """Return whether anything is added."""
        return any((part.labels or part.annotations) for part in (self.objects, self.pod_templates))

    def extended(self, name: str, entries: Mapping[str, str], *, pod_templates: bool) -> CommonMetadata:
        """Return these values and more; the last value of a key wins."""
        checked: Mapping[Any, Any] = entries
        if not isinstance(checked, Mapping):
            raise ConfigError(f"common {name} must be a mapping of texts, got {checked!r:.60}")
        for key, value in checked.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise ConfigError(f"common {name} must be texts, got {key!r:.60}: {value!r:.60}")
        objects = _extended(self.objects, name, entries)
        templates = _extended(self.pod_templates, name, entries) if pod_templates else self.pod_templates
        return CommonMetadata(objects, templates)

    def problems(self) -> Iterator[str]:
        """Yield why the API server would reject the values."""
        yield from dict.fromkeys([*self.objects.problems(), *self.pod_templates.problems()])

    def added_to(self, manifest: Manifest, ignored: Collection[tuple[str, ...]] = ()) -> Manifest:
        """Return an object with the values that it does not set itself."""
        if not self:
            return manifest
        added = self.objects.added_to(manifest, (), ignored)
        path = _POD_TEMPLATES.get((manifest.get("apiVersion", ""), manifest.get("kind", "")), ())
        template = get_field(added, path) if path else None
        if not isinstance(template, dict):
            return added
        completed: Manifest = _replaced(added, path, self.pod_templates.added_to(template, path, ignored))
        return completed


def _extended(part: MetadataPart, name: str, entries: Mapping[str, str]) -> MetadataPart:
    return replace(part, **{name: {**getattr(part, name), **entries}})


def _is_ignored(path: tuple[str, ...], ignored: Collection[tuple[str, ...]]) -> bool:
    return any(path[: len(other)] == other for other in ignored)


def _replaced(manifest: Manifest, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    return {**manifest, path[0]: _replaced(manifest[path[0]], path[1:], value)}


NO_METADATA: Final = CommonMetadata()
"""Adds nothing."""
