"""Relations between objects by labels: those of one kind have a selector, which selects those of another kind.

One declaration serves both sides: the operator of the objects that select, and that of the objects that are selected.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ocf.cluster import ListOptions
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

    def __post_init__(self) -> None:
        problems = []
        for name in ("kind", "selects"):
            kind: object = getattr(self, name)
            if not (isinstance(kind, tuple) and list(map(type, kind)) == [str, str]):
                problems.append(f'{name} must be a pair such as ("example.com/v1", "Dashboard"), got {kind!r:.60}')
        fields = {"selector": self.selector}
        if not isinstance(self.across_namespaces, bool):
            fields["across_namespaces"] = self.across_namespaces
        for name, field in fields.items():
            try:
                parse_path(field)
            except (ConfigError, AttributeError):
                problems.append(f'{name} must be a field such as "spec.selector", got {field!r:.60}')
        if problems:
            raise BuildError([f"relation: {problem}" for problem in problems])

    def relates(self, selecting: Manifest, selected: Manifest) -> bool:
        """Return whether an object selects another one.

        Args:
            selecting: The object with the selector.
            selected: The object with the labels.

        Raises:
            ManifestError: If the selector is invalid.
        """
        homes = [one["metadata"].get("namespace") or "" for one in (selecting, selected)]
        if all(homes) and homes[0] != homes[1] and not self._is_across(selecting):
            return False
        return self._selector_of(selecting).matches(selected["metadata"].get("labels") or {})

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
        owner = context.owner
        home = owner["metadata"].get("namespace") or ""
        if self.across_namespaces is not False or not (home and await context.cluster.is_namespaced(*self.kind)):
            home = ""
        # Only what selects the owner counts as read: a change of any other object is no change for it.
        found = (await context.unobserved.list(*self.kind, ListOptions(namespace=home))).items
        related = []
        for key in sorted(ObjectKey.of(one) for one in found if self._relates_safely(one, owner)):
            try:
                live = await context.cluster.get(key)
            except NotFoundError:
                continue
            if self._relates_safely(live, owner):
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

    def _relates_safely(self, selecting: Manifest, selected: Manifest) -> bool:
        try:
            return self.relates(selecting, selected)
        except ManifestError:
            return False


@lru_cache(maxsize=4096)
def _parsed(text: str) -> LabelSelector:
    """Return the selector of a JSON text; each reconcile of an object compares the selectors of all that may select it.

    To parse them was half of the time of a reconcile with 300 of them.
    """
    given = json.loads(text)
    return LabelSelector.parse(given) if isinstance(given, str) else LabelSelector.of(given)
