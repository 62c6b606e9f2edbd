"""Relations between objects by labels: those of one kind have a selector, which selects those of another kind.

One declaration serves both sides: the operator of the objects that select, and that of the objects that are selected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ocf.cluster import ListOptions
from ocf.cluster.cache import Projection
from ocf.component import ReconcileContext
from ocf.errors import BuildError, ConfigError, FieldProblem, ManifestError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field, parse_path
from ocf.objects.selectors import LabelSelector
from ocf.runtime.operator.watches import Watch

if TYPE_CHECKING:
    from ocf.cluster import Cluster, WatchEvent

__all__ = ["Relation"]

_Kind: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects of one kind that select objects of another kind by their labels.

    It goes into `Operator.watches` on either side. The operator of what is selected reconciles an object when something
    selects it from now on or no longer, or has changed; the one of what selects does when the objects have changed that
    its reconcile has read with `selected`.

    Args:
        kind: The kind of the objects that select, `("example.com/v1", "Dashboard")`.
        selects: The kind of the objects that are selected.
        selector: The field of an object of `kind` with its selector: a map with `matchLabels` and `matchExpressions`,
            or a text such as `app=web`. Without the field it selects nothing, with an empty one everything.
        across_namespaces: Whether an object selects in all namespaces, or a field of it that says so, such as
            `spec.allNamespaces`; otherwise in its own. One without a namespace selects in all, and one without a
            namespace is selected from all.

    Raises:
        BuildError: If a kind or a field is none.

    Example:
        >>> relation = Relation(("example.com/v1", "Dashboard"), ("example.com/v1", "Screen"), "spec.screens")
        >>> dashboard = {"metadata": {"namespace": "shop"}, "spec": {"screens": {"matchLabels": {"floor": "2"}}}}
        >>> relation.relates(dashboard, {"metadata": {"namespace": "shop", "labels": {"floor": "2"}}})
        True
    """

    kind: _Kind
    selects: _Kind
    selector: str
    across_namespaces: bool | str = False
    _all_selecting: Projection[_Selecting] = field(init=False, repr=False, compare=False)
    """Of all objects of the kind: each owner that is selected looks at all of them."""

    def __post_init__(self) -> None:
        problems = []
        for name in ("kind", "selects"):
            kind: object = getattr(self, name)
            if not (isinstance(kind, tuple) and list(map(type, kind)) == [str, str]):
                problems.append(f'{name} must be a pair such as ("example.com/v1", "Dashboard"), got {kind!r:.60}')
        fields = {"selector": self.selector}
        if not isinstance(self.across_namespaces, bool):
            fields["across_namespaces"] = self.across_namespaces
        for name, path in fields.items():
            try:
                parse_path(path)
            except (ConfigError, AttributeError):
                problems.append(f'{name} must be a field such as "spec.selector", got {path!r:.60}')
        if problems:
            raise BuildError([f"relation: {problem}" for problem in problems])
        object.__setattr__(self, "_all_selecting", Projection(*self.kind, self._view))

    def relates(self, selecting: Manifest, selected: Manifest) -> bool:
        """Return whether an object selects another one.

        Args:
            selecting: The object with the selector.
            selected: The object with the labels.

        Raises:
            ManifestError: If the selector is invalid.
        """
        metadata = selected["metadata"]
        found = self._selecting(selecting, self._selector_of(selecting))
        return found.selects(metadata.get("namespace") or "", metadata.get("labels") or {})

    async def selected(self, context: ReconcileContext) -> list[Manifest]:
        """Return the objects that the owner of a reconcile selects, ordered by namespace and name.

        The owner is reconciled again when one of them changes, is selected from now on, or no longer.

        Args:
            context: The reconcile.

        Raises:
            ManifestError: If the selector of the owner is invalid.
            ApiError: If the objects cannot be read.
        """
        return await self._selected_by(context.owner, context.cluster)

    async def selecting(self, context: ReconcileContext) -> list[Manifest]:
        """Return the objects that select the owner of a reconcile, ordered by namespace and name.

        One whose selector is invalid selects nothing. With the relation in `Operator.watches`, the owner is reconciled
        again when one of them changes, another one selects it, or one of them no longer does.

        Args:
            context: The reconcile.

        Raises:
            ApiError: If the objects cannot be read.
        """
        labels = context.owner["metadata"].get("labels") or {}
        home = context.owner["metadata"].get("namespace") or ""
        # Only what selects the owner counts as read: a change of any other object is no change for it.
        related = []
        for one in await self._all_selecting.read(context.unobserved):
            if not one.selects(home, labels):
                continue
            try:
                live = await context.cluster.get(one.key)
            except NotFoundError:
                continue
            if self._view(live).selects(home, labels):
                related.append(live)
        return related

    def watches_of(self, owner: _Kind) -> list[Watch]:
        """Return the watches of an operator of one of both kinds; none for another kind."""
        # What the reconciles of the selecting side list triggers by itself; declared, it is read before the first.
        sides = (self.selects, Watch(*self.kind, self._selected_at)), (self.kind, Watch(*self.selects, lambda _: ()))
        return [watch for side, watch in sides if side == owner]

    async def _selected_at(self, event: WatchEvent, cluster: Cluster) -> list[tuple[str, str]]:
        """Return the owners that an object selects, those first that it has selected before."""
        found: dict[tuple[str, str], None] = {}
        for state in (event.old, event.object):
            try:
                selected = await self._selected_by(state, cluster) if state is not None else []
            except ManifestError:
                continue
            metadata = [one["metadata"] for one in selected]
            found |= {(one.get("namespace") or "", one["name"]): None for one in metadata}
        return list(found)

    async def _selected_by(self, live: Manifest, cluster: Cluster) -> list[Manifest]:
        selector = self._selector_of(live)
        if selector.nothing:
            return []
        home = live["metadata"].get("namespace") or ""
        if self._is_across(live) or not (home and await cluster.is_namespaced(*self.selects)):
            home = ""
        options = ListOptions(namespace=home, label_selector=str(selector))
        return [*(await cluster.list(*self.selects, options)).items]

    def _is_across(self, live: Manifest) -> bool:
        if isinstance(self.across_namespaces, bool):
            return self.across_namespaces
        return get_field(live, parse_path(self.across_namespaces)) is True

    def _selector_of(self, live: Manifest) -> LabelSelector:
        given = get_field(live, parse_path(self.selector))
        try:
            return _parsed(json.dumps(given))
        except ManifestError as error:
            found = [
                FieldProblem(".".join(filter(None, (self.selector, one.path))), one.detail) for one in error.problems
            ]
            raise ManifestError(str(ObjectKey.of(live)), found) from error

    def _view(self, live: Manifest) -> _Selecting:
        try:
            selector = self._selector_of(live)
        except ManifestError:
            selector = LabelSelector(nothing=True)
        return self._selecting(live, selector)

    def _selecting(self, live: Manifest, selector: LabelSelector) -> _Selecting:
        metadata = live["metadata"]
        key = ObjectKey(*self.kind, metadata.get("name") or "", metadata.get("namespace") or "")
        return _Selecting(key, self._is_across(live), selector)


class _Selecting(NamedTuple):
    """What decides whether an object selects another one.

    Args:
        across: Whether it selects in all namespaces.
    """

    key: ObjectKey
    across: bool
    selector: LabelSelector

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether it selects an object of a namespace, empty for one without, by its labels."""
        home = self.key.namespace
        return (self.across or not home or not namespace or home == namespace) and self.selector.matches(labels)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> LabelSelector:
    """Return the selector of a JSON text; many objects have the same one."""
    given = json.loads(text)
    return LabelSelector.parse(given) if isinstance(given, str) else LabelSelector.of(given)
