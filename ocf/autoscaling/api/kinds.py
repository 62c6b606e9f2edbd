"""Objects that are meant to be HPAs and that the API server or `kubectl` does not take for one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ocf.errors import FieldProblem

__all__ = ["HPA_KIND", "kind_problem"]

HPA_KIND: Final = "HorizontalPodAutoscaler"

_GROUP: Final = "autoscaling"
_OTHER_KINDS: Final = frozenset({"Scale", "DeleteOptions", "WatchEvent"})
_SHORT_NAMES: Final = frozenset({"hpa", "hpas", "horizontalpodautoscalers"})
_NEAR: Final = 0.9
# With more letters too many or too few, no text is that near.
_MOST_MISSING: Final = 5


def kind_problem(manifest: Mapping[str, Any]) -> FieldProblem | None:
    """Return why an object that is meant to be an HPA is none.

    It is meant to be one if it is of the group `autoscaling`, if its kind is nearly that of an HPA, or if it has
    `scaleTargetRef` and `maxReplicas` and no kind of its own. Groups with a dot belong to custom resources.

    Returns:
        The problem of the field; None for an HPA, whatever its version, and for objects of other kinds.

    Example:
        >>> kind_problem({"apiVersion": "autoscaling/v2", "kind": "HPA"}).detail
        '"HPA" is not a kind of the group autoscaling: write HorizontalPodAutoscaler'
        >>> kind_problem({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"})
    """
    kind, group = manifest.get("kind"), str(manifest.get("apiVersion") or "").strip().rpartition("/")[0].lower()
    if kind == HPA_KIND or "." in group:
        return None
    if isinstance(kind, str) and kind.strip():
        return _misnamed(manifest, kind, group)
    if isinstance(manifest.get("items"), list):
        return _untyped_list(manifest["items"])
    return _untyped(manifest, kind) if group == _GROUP or _has_shape(manifest) else None


def _untyped(manifest: Mapping[str, Any], kind: object) -> FieldProblem:
    """Return the problem of an object without a kind."""
    other = next((key for key in manifest if key.lower() == "kind"), "kind")
    if other != "kind":
        return FieldProblem(other, f"unknown field: write kind: {HPA_KIND}")
    if kind is not None and not isinstance(kind, str):
        return FieldProblem("kind", f"must be a text, not {kind!r:.60}: write {HPA_KIND}")
    return FieldProblem("kind", f"is missing: write {HPA_KIND}")


def _misnamed(manifest: Mapping[str, Any], kind: str, group: str) -> FieldProblem | None:
    bare = "".join(each for each in kind.lower() if each.isalnum())
    if bare.endswith(("list", "lists")) or bare in {"item", "items"}:
        return _misnamed_list(manifest, kind)
    near = bare in _SHORT_NAMES or _is_near(bare)
    if group == _GROUP and kind not in _OTHER_KINDS:
        instead = f"write {HPA_KIND}" if near or _has_shape(manifest) else f"it has {HPA_KIND} and Scale"
        return FieldProblem("kind", f'"{kind:.80}" is not a kind of the group {_GROUP}: {instead}')
    if near and (group or bare not in _SHORT_NAMES or _has_shape(manifest)):
        return FieldProblem("kind", f'"{kind:.80}" is not a kind of Kubernetes: write {HPA_KIND}')
    if _has_shape(manifest):
        return FieldProblem("kind", f'"{kind:.80}" has no scaleTargetRef and maxReplicas: write {HPA_KIND}')
    return None


@lru_cache(maxsize=1024)
def _is_near(bare: str) -> bool:
    if abs(len(bare) - len(HPA_KIND)) > _MOST_MISSING:
        return False
    import difflib

    return difflib.SequenceMatcher(None, bare, HPA_KIND.lower()).ratio() > _NEAR


def _misnamed_list(manifest: Mapping[str, Any], kind: str) -> FieldProblem | None:
    """Return the problem of a list that contains an HPA and that is not read as one."""
    for key, items in manifest.items():
        if key.lower() not in {"item", "items"}:
            continue
        found = [items, *items.values()] if isinstance(items, Mapping) else items if isinstance(items, list) else []
        if not any(_is_meant(item) for item in found):
            continue
        if key != "items":
            return FieldProblem(key, "unknown field: write items")
        if isinstance(items, Mapping):
            return FieldProblem(key, "must be a list of objects, not an object: write `- ` before each")
        return FieldProblem("kind", f'"{kind:.80}" is not a kind: write List')
    return None


def _untyped_list(items: list[Any]) -> FieldProblem | None:
    """Return the problem of a list without a kind that contains an HPA."""
    if not any(_is_meant(item) for item in items):
        return None
    return FieldProblem("kind", "is missing: kubectl reads items only with apiVersion: v1 and kind: List")


def _is_meant(item: Any) -> bool:
    return isinstance(item, Mapping) and (item.get("kind") == HPA_KIND or kind_problem(item) is not None)


def _has_shape(manifest: Mapping[str, Any]) -> bool:
    spec = manifest.get("spec")
    return isinstance(spec, Mapping) and isinstance(spec.get("scaleTargetRef"), Mapping) and "maxReplicas" in spec
