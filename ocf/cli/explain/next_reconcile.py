"""What an operator's code would do next for an owner: its writes as a dry run, and the gates that are closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ocf.cli.component_loader import owner_name
from ocf.cli.diff import ComponentChanges, changes_json, early_stop, next_changes
from ocf.cli.operator_loader import load_components
from ocf.cli.output import value_text
from ocf.errors import ConfigError
from ocf.runtime.component_diagram import closed_gates, component_diagram

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.diff import ObjectDiff
    from ocf.objects import ObjectKey
    from ocf.ownership.diagram import Diagram

__all__ = ["NextReconcile", "next_reconcile"]


@dataclass(frozen=True, slots=True)
class NextReconcile:
    """What the next reconcile of an owner would do, by component."""

    owner: str
    changes: Sequence[ComponentChanges]

    @property
    def diagram(self) -> Diagram:
        """What the code declares."""
        return component_diagram(self.owner, [one.component for one in self.changes if one.component is not None])

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their indentation."""
        yield 0, "The next reconcile"
        for one in self.changes:
            name = "the function that returns the components" if one.component is None else one.component.name
            stop, found = early_stop(one.diff), list(_changed(one))
            none = "" if found or stop or one.diff.problem else ": writes nothing"
            yield 1, f"component {name}{none}" if one.component is not None else f"{name}{none}"
            yield from found
            yield from [(2, f"would stop early, {stop}")] if stop else []
            yield from [(2, f"would fail: {one.diff.problem}")] if one.diff.problem else []
            yield from ((2, f"{name}: {note}") for name, note in _gates(one))

    def to_json(self) -> list[dict[str, Any]]:
        """Return it as JSON values: those of `ocf diff`, and the closed gates."""
        return [
            {**changes_json(one), "gates": [{"of": name, "closed": note} for name, note in _gates(one)]}
            for one in self.changes
        ]


def _gates(changes: ComponentChanges) -> list[tuple[str, str]]:
    return [] if changes.component is None else [*closed_gates(changes.component)]


def _changed(changes: ComponentChanges) -> Iterator[tuple[int, str]]:
    for one in changes.diff.objects:
        reasons = ", ".join(one.reasons)
        yield 2, f"{one.verb} {one.resource}{f': {reasons}' if reasons else ''}"
        yield from ((3, line) for line in _fields(one))
    for conflict in changes.diff.conflicts:
        yield 2, f'conflict: {conflict.path} of {conflict.resource} is owned by "{conflict.manager}"'
    yield from ((2, f"{one} stays: it is not registered any more") for one in changes.diff.unregistered)


def _fields(changed: ObjectDiff) -> Iterator[str]:
    """Yield each field that would change, with who has set it and who loses it."""
    for one in changed.fields if changed.before is not None else ():
        source = f", set by {one.source}" if one.source else ""
        yield f"{one.path}: {_value(one.before)} → {_value(one.after)}{source}"
    yield from (f'{one.path} is taken over from "{one.manager}"' for one in changed.taken)


def _value(value: Any) -> str:
    return "nothing" if value is None else value_text(value)


async def next_reconcile(target: str, owner: ObjectKey, cluster: Cluster) -> NextReconcile:
    """Return what the next reconcile of an owner would do. Writes are sent as dry runs.

    Args:
        target: The operator's code, as for `ocf diff`.

    Raises:
        ConfigError: If no operator of it reconciles the owner's kind.
    """
    sources = load_components(target)
    live = await cluster.get(owner)
    reconciling = [source for source in sources if source.reconciles(live)]
    if not reconciling:
        raise ConfigError(f"--components {target}: no operator of it reconciles {owner.api_version} {owner.kind}")
    changes: list[ComponentChanges] = []
    for source in reconciling:
        source.note_unreconciled(live, "the next reconcile is the one that follows the pause")
        changes += await next_changes(owner_name(live), source, live, cluster)
    return NextReconcile(f"{owner.kind} {owner.name}", tuple(changes))
