"""What a baseline gets where it has nothing: kind, name and namespace of the owner, labels of a selector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ocf.concepts.resource import ObjectDefaults
from ocf.objects import Manifest, write_model
from ocf.objects.models import validate_kept
from ocf.primitives.kind import Kind

__all__ = ["added_paths", "completed", "lacks_selector"]


def completed(baseline: Manifest, kind: Kind[Any, Any], defaults: ObjectDefaults) -> Manifest:
    """Return a baseline with what it lacks; values of a wrong type stay, for the strict checks."""
    typed = {"apiVersion": kind.api_version, "kind": kind.name} if kind.api_version else {}
    lacking = {key: value for key, value in typed.items() if key not in baseline}
    return _selecting(_placed({**lacking, **baseline}, kind, defaults), kind, defaults.selector)


def added_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of what a completed baseline has and the one before does not, but for its kind."""
    for key, value in after.items():
        if before.get(key) is value:
            continue  # as it was, which holds for most parts
        found, value = _written(before.get(key)), _written(value)  # noqa: PLW2901 (the same value in plain form)
        if found in (None, "") and value != found and key not in ("apiVersion", "kind"):
            yield (key,)
        elif isinstance(found, Mapping) and isinstance(value, Mapping):
            yield from ((key, *path) for path in added_paths(found, value))


def _written(value: Any) -> Any:
    return write_model(value) if hasattr(value, "model_fields_set") else value


def lacks_selector(baseline: Mapping[str, Any], kind: Kind[Any, Any]) -> bool:
    """Return whether an object of a kind with a selector has none, and should have one."""
    spec = baseline.get("spec") or {}
    if not kind.selector or not isinstance(spec, dict):
        return False
    # A Service with a name outside of the cluster has no pods.
    return spec.get(kind.selector[1]) is None and spec.get("type") != "ExternalName"


def _placed(baseline: Manifest, kind: Kind[Any, Any], defaults: ObjectDefaults) -> Manifest:
    metadata = baseline.get("metadata") or {}
    if not isinstance(metadata, dict):
        return baseline
    # A name beside `generateName` would hide that the author expects another one for each object.
    name = "" if metadata.get("generateName") else _name(kind, defaults)
    given = {"name": name, "namespace": "" if kind.cluster_scoped else defaults.namespace}
    lacking = {key: value for key, value in given.items() if value and not metadata.get(key)}
    return {**baseline, "metadata": {**metadata, **lacking}} if lacking else baseline


def _name(kind: Kind[Any, Any], defaults: ObjectDefaults) -> str:
    owner = defaults.owner
    return "" if owner is None or (kind.cluster_scoped and owner.namespace) else owner.name


def _selecting(baseline: Manifest, kind: Kind[Any, Any], labels: Mapping[str, str]) -> Manifest:
    """Return the baseline with the labels in its selector and in its pod template, whose own values win in both."""
    if not labels or not lacks_selector(baseline, kind):
        return baseline
    spec = dict(baseline.get("spec") or {})
    passed_on: Any = spec.get("template")
    template = _written(passed_on)
    if isinstance(template, dict):
        metadata = template.get("metadata") or {}
        own = metadata.get("labels") or {} if isinstance(metadata, dict) else None
        if not isinstance(own, dict):
            return baseline
        labels = {key: own.get(key, value) for key, value in labels.items()}
        complete = {**template, "metadata": {**metadata, "labels": {**own, **labels}}}
        # A model stays one: of a manifest, the strict checks reject what only a later release names.
        spec["template"] = complete if passed_on is template else validate_kept(complete, type(passed_on))
    selector: Any = dict(labels)
    for part in reversed(kind.selector[2:]):
        selector = {part: selector}
    return {**baseline, "spec": {**spec, kind.selector[1]: selector}}
