"""A diagram of what an operator's code declares: components and resources in order, with gates, guards and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

from ocf.component import Component, Participation, Prerequisite
from ocf.component.model.data_flow import DataFlow, data_flows
from ocf.component.model.registration import find_scale_targets
from ocf.component.model.resource_options import Lifecycle
from ocf.component.preview import explain_entry, previewing
from ocf.component.reconcile.prerequisites import DependsOn
from ocf.concepts import GuardStatus
from ocf.errors import OcfError
from ocf.ownership import values
from ocf.ownership.diagram import Arrow, Box, Diagram, component_identity
from ocf.primitives.rendering import closed_because

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration
    from ocf.feature import Gate

__all__ = ["closed_gates", "component_diagram", "with_declared"]

# No identity of an object has this.
_AGAIN: Final = ": "
_GATED: Final = "gate: closed: the object is deleted"
_LIFECYCLES: Final = {
    Lifecycle.READ_ONLY: "only read",
    Lifecycle.DELETED: "is deleted",
    Lifecycle.ORPHANED: "is released, and kept",
}


def component_diagram(owner: str, components: Sequence[Component]) -> Diagram:
    """Return the diagram of the components of an owner, as its operator's code declares them. No cluster is needed.

    Args:
        owner: Kind and name of the owner, `Shop corner`.
        components: Its components, in the order in which they are reconciled.

    Returns:
        Boxes without states. The notes name what is gated and why a gate is closed, guards, prerequisites and data; the
        arrows are data cells from the resources that fill them to those that read them, prerequisites, and autoscalers.

    Example:
        >>> from ocf.component import Builder
        >>> from ocf.primitives import configmap
        >>> settings = configmap.Builder({"metadata": {"name": "settings", "namespace": "town"}})
        >>> web = Builder("web", condition_type="WebReady").with_resource(settings.build()).build()
        >>> [box.title for box in component_diagram("Shop corner", [web]).root.walk()]
        ['Shop corner', '1. component web', '1. ConfigMap settings']
    """
    declared = [_Declared.of(component) for component in components]
    first: dict[str, str] = {}
    for one in declared:
        managed = (entry.identity for entry in one.entries if entry.lifecycle is not Lifecycle.READ_ONLY)
        first |= dict.fromkeys(managed, one.component.name)
    for one in declared:
        for entry in one.entries:
            one.identities[entry.identity] = _identity(one.component.name, entry.identity, first)
    boxes = tuple(one.box(number) for number, one in enumerate(declared, 1))
    arrows = [*_prerequisites(components), *(arrow for one in declared for arrow in one.arrows())]
    root = Box(owner, owner, children=boxes)
    count = values.plural_count(len(boxes), "component")
    known = {box.identity for box in root.walk()}
    drawn = (one for one in dict.fromkeys(arrows) if {one.source, one.target} <= known)
    return Diagram(f"{owner} has {count}.", root, tuple(drawn))


def _identity(component: str, identity: str, first: dict[str, str]) -> str:
    """Return the identity of the box of a resource: an object that several components have has a box in each."""
    return identity if first.setdefault(identity, component) == component else f"{component}{_AGAIN}{identity}"


def _object_of(identity: str) -> str:
    """Return the object of the box of a resource."""
    return identity.rpartition(_AGAIN)[2]


@dataclass(frozen=True, slots=True)
class _Declared:
    """A component with its resources in order.

    Args:
        scaled: The target of each of its autoscalers, by identity; empty if that cannot be known without data.
        identities: The identity of the box of each resource.
    """

    component: Component
    entries: Sequence[Registration]
    flows: Sequence[DataFlow]
    scaled: dict[str, str]
    identities: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, component: Component) -> Self:
        entries = sorted((*component.entries, *component.external), key=lambda entry: entry.place)
        by_name = {entry.unversioned: entry.identity for entry in component.entries}
        try:
            targets = find_scale_targets(component.entries, previewing).targets
        except OcfError:
            # An autoscaler that needs data for its target.
            targets = {}
        found = ((scaler, by_name.get(target.key.unversioned, "")) for scaler, target in targets.items())
        return cls(component, entries, data_flows(entries), {scaler: scaled for scaler, scaled in found if scaled})

    def box(self, number: int) -> Box:
        component = self.component
        notes = [f"condition {component.condition_type}" if component.published else "its condition is not published"]
        notes += [f"waits for {_prerequisite(one)}" for one in component.prerequisites]
        notes += _gate_notes(component.gate)
        notes += ["suspended"] if component.suspended else []
        boxes = tuple(self._resource(entry, place) for place, entry in enumerate(self.entries, 1))
        name = f"component {component.name}"
        return Box(name, component_identity(component.name), notes=tuple(notes), children=boxes, order=number)

    def _resource(self, entry: Registration, place: int) -> Box:
        options, identity = entry.options, entry.identity
        is_closed = options.gate_closed
        notes = [_GATED] if is_closed else []
        notes += [_LIFECYCLES[entry.lifecycle]] if entry.lifecycle in _LIFECYCLES and not is_closed else []
        for words, readers in (("needs", "guarded"), ("reads", "optional"), ("fills", "producers")):
            cells = [flow.data for flow in self.flows if identity in getattr(flow, readers)]
            notes += [f"{words} {', '.join(cells)}"] if cells else []
        notes += [f"scales {_name(other)}" for other in self.entries if other.identity == self.scaled.get(identity)]
        notes += _guard_notes(entry)
        notes += _mutation_notes(entry)
        notes += ["blocks while it does not exist"] if options.block_on_absence else []
        notes += ["does not count for the condition"] if options.participation is Participation.AUXILIARY else []
        notes += ["reconciled beside the others"] if options.independent else []
        return Box(_name(entry), self.identities[identity], notes=tuple(notes), order=place)

    def arrows(self) -> Iterator[Arrow]:
        boxes = self.identities
        for identity, box in boxes.items():
            if box != identity:
                yield Arrow(identity, box, "read")
        for flow in self.flows:
            for source in flow.producers:
                for target in flow.guarded:
                    yield Arrow(boxes[source], boxes[target], flow.data)
                for target in flow.optional:
                    yield Arrow(boxes[source], boxes[target], flow.data, is_required=False)
        for scaler, scaled in self.scaled.items():
            yield Arrow(boxes[scaler], boxes[scaled], "scales")


def _name(entry: Registration) -> str:
    return f"{entry.key.kind} {entry.key.name}"


def _prerequisite(prerequisite: Prerequisite) -> str:
    if isinstance(prerequisite, DependsOn):
        return f"condition {prerequisite.condition_type}"
    return f"prerequisite {type(prerequisite).__name__}"


def _gate_notes(gate: Gate | None) -> Iterator[str]:
    closed = list(_closed(gate))
    yield from closed or (["gate: open"] if gate is not None else [])


def _closed(gate: Gate | None) -> Iterator[str]:
    """Yield why the gate of a component is closed."""
    if gate is None:
        return
    try:
        is_open = gate.enabled()
    except OcfError as error:
        yield f"gate: cannot be evaluated: {error}"
        return
    if not is_open:
        yield f"gate: closed, {closed_because(gate)}: its objects are deleted"


def closed_gates(component: Component) -> Iterator[tuple[str, str]]:
    """Yield each gate of a component, its resources and their mutations that is closed, with what it gates.

    Args:
        component: The component, as the operator's code returns it for an owner.

    Yields:
        `component web` or the identity of a resource; and which gate is closed and why.
    """
    yield from ((f"component {component.name}", note) for note in _closed(component.gate))
    for entry in component.entries:
        if entry.options.gate_closed:
            yield entry.identity, _GATED
        elif entry.lifecycle is Lifecycle.MANAGED:
            yield from ((entry.identity, note) for note in _closed_mutations(entry))


def _guard_notes(entry: Registration) -> Iterator[str]:
    # A resource of the user's own with this concept always has a guard.
    if entry.guardable is None or not getattr(entry.resource, "has_guard", True):
        return
    if not all(read.optional or read.cell.is_set for read in (entry.consumer.consumed_data if entry.consumer else ())):
        yield "guard: asked once its data is there"
        return
    try:
        with previewing(entry):
            report = entry.guardable.guard_status()
    except OcfError as error:
        yield f"guard: fails: {error.__cause__ or error}"
        return
    yield f"guard: blocked: {report.reason}" if report.status == GuardStatus.BLOCKED else "guard: open"


def _mutation_notes(entry: Registration) -> Iterator[str]:
    firing = _firing(entry)
    if firing and not isinstance(firing, OcfError):
        yield f"mutations: {', '.join(firing)}"
    yield from _closed_mutations(entry)


def _firing(entry: Registration) -> Sequence[str] | OcfError:
    """Return the names of the mutations of a resource whose gates are open, or the error of a gate."""
    if entry.inspector is None:
        return ()
    try:
        with previewing(entry):
            return entry.inspector.firing_set()
    except OcfError as error:
        return error


def _closed_mutations(entry: Registration) -> Iterator[str]:
    firing = _firing(entry)
    if isinstance(firing, OcfError):
        yield f"mutations: a gate cannot be evaluated: {firing.__cause__ or firing}"
        return
    closed = [name for name in (entry.inspector.registered_mutations if entry.inspector else ()) if name not in firing]
    reasons: dict[str, str] = {}
    if closed:
        # Without its data a resource cannot be rendered; the names are known nevertheless.
        with suppress(OcfError):
            reasons = {one.name: one.reason for one in explain_entry(entry, ()).mutations}
    for name in closed:
        yield f"mutation {name}: gate closed{f', {reasons[name]}' if reasons.get(name) else ''}"


def _prerequisites(components: Sequence[Component]) -> Iterator[Arrow]:
    by_condition = {component.condition_type: component.name for component in components}
    for component in components:
        for one in component.prerequisites:
            source = by_condition.get(one.condition_type) if isinstance(one, DependsOn) else None
            if source is not None and isinstance(one, DependsOn):
                yield Arrow(component_identity(source), component_identity(component.name), one.condition_type)


def with_declared(observed: Diagram, declared: Diagram) -> Diagram:
    """Return a diagram with what was observed of an owner and what its operator's code declares.

    Args:
        observed: The diagram of an explanation.
        declared: That of the components of the same owner.

    Returns:
        The components and resources in the order of the code, with the states and texts of the explanation; after them
        what only one of the two has. An object that is declared and was not observed has no state, and a note.
    """
    by_identity = {box.identity: box for box in observed.root.walk()}
    placed = {box.identity for box in declared.root.walk()} - {declared.root.identity}
    children = tuple(_merged(box, by_identity, placed) for box in declared.root.children)
    rest = tuple(_without(box, placed) for box in observed.root.children if box.identity not in placed)
    root = replace(observed.root, children=(*children, *rest), notes=(*observed.root.notes, *declared.root.notes))
    known = {box.identity for box in root.walk()}
    renamed = {declared.root.identity: root.identity}
    arrows = dict.fromkeys((*declared.arrows, *observed.arrows))
    drawn = (
        replace(one, source=renamed.get(one.source, one.source), target=renamed.get(one.target, one.target))
        for one in arrows
    )
    return Diagram(observed.title, root, tuple(one for one in drawn if {one.source, one.target} <= known))


def _merged(box: Box, observed: dict[str, Box], placed: set[str]) -> Box:
    found = observed.get(_object_of(box.identity))
    children = tuple(_merged(child, observed, placed) for child in box.children)
    if found is None:
        is_component = bool(box.children)
        return replace(box, children=children, notes=(*box.notes, *(() if is_component else ("does not exist",))))
    is_again = _object_of(box.identity) != box.identity
    below = () if is_again else found.children
    rest = tuple(_without(child, placed) for child in below if child.identity not in placed)
    notes = tuple(dict.fromkeys([*box.notes, *found.notes]))
    return replace(box, state=found.state, text=found.text, notes=notes, children=(*children, *rest))


def _without(box: Box, placed: set[str]) -> Box:
    """Return a box without those that have a place of their own."""
    kept = tuple(_without(child, placed) for child in box.children if child.identity not in placed)
    return replace(box, children=kept)
