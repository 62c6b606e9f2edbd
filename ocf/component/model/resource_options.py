"""Options of a resource in a component, and their validation.

Exclusive options are rejected by name, not by value: `delete_when=False` with `read_only=True` is an error like `True`,
because the pair would be wrong as soon as the value changes.

Names and types of keywords are checked at run time as well, because some options delete objects: a misspelt name and
the text "false" instead of a bool are errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypedDict, TypeVar

from ocf.cluster import Propagation
from ocf.component.author_code import is_open
from ocf.component.model.ownership import Mark
from ocf.component.model.rollout import Rollout
from ocf.errors import ConfigError
from ocf.feature import Gate
from ocf.objects.paths import format_path, parse_path
from ocf.objects.suggestions import nearest

__all__ = ["Adoption", "Conflicts", "EffectiveOptions", "Lifecycle", "Participation", "ResourceOptions", "Writes"]

EnumT = TypeVar("EnumT", bound=StrEnum)


class Participation(StrEnum):
    """Whether the health of a resource counts for the component's condition."""

    REQUIRED = "Required"
    AUXILIARY = "Auxiliary"


class Conflicts(StrEnum):
    """What happens if another field manager owns a field that the component applies with another value."""

    TAKE = "take"
    FAIL = "fail"


class Adoption(StrEnum):
    """Whether an object that exists already, and that the component did not create, is adopted."""

    ALWAYS = "always"
    """It is changed, gets the owner reference, and is deleted with the owner."""
    LABELLED = "labelled"
    """The same if its label `ocf.dev/adoptable-by` names the owner (`Shop.example.com_town_corner`); else it blocks."""
    NEVER = "never"
    """It is not changed, and blocks."""


class Writes(StrEnum):
    """Which writes a component sends for an object."""

    ALL = "all"
    """It is created, and updated whenever it differs from what the resource renders."""
    CREATE_ONLY = "create-only"
    """It is created if it does not exist, and left as it is from then on."""
    UPDATE_ONLY = "update-only"
    """Its declared fields are set if it exists, and released later; it is never created, adopted, owned or deleted."""


class Lifecycle(StrEnum):
    """What a component does with the object of a resource."""

    MANAGED = "managed"
    READ_ONLY = "read-only"
    DELETED = "deleted"
    ORPHANED = "orphaned"


class ResourceOptions(TypedDict, total=False):
    """The keywords of `Builder.with_resource`; None is the same as not given.

    Attributes:
        participation: Whether the health of the resource counts for the condition. A block always counts, and an error
            always fails the reconcile.
        ignore_fields: Fields that another writer sets, such as `spec.replicas`. They are never sent, not even at
            creation. The field that a scaler of the component sets is ignored automatically.
        set_once: Fields that are sent when the object is created, and ignored afterwards, such as `spec.replicas`. Any
            other client may change them, without a conflict.
        writes: Whether the object is only created, or only updated. One that is only updated belongs to another writer:
            while it does not exist, this resource and all later ones are blocked, or with `ignore_if_absent` it is
            skipped. Where another object would be deleted (a gate, `delete_when`, pruning, the deletion of the owner,
            which a finalizer holds until then), the fields are released: those that no other field manager owns are
            removed.
        on_conflict: Whether fields of another field manager are taken, or the reconcile fails and names them.
        read_only: The object is only read, never written, owned or deleted; its health counts.
        block_on_absence: A read-only object that does not exist blocks this resource and all later ones.
        ignore_if_absent: An object that is only read or only updated, and does not exist, is skipped.
        delete_when: True deletes the object, if it belongs to the component.
        gated_by: A gate that is off deletes the object, if it belongs to the component.
        orphan_when: True removes the component's owner reference and keeps the object.
        propagation: What happens to the dependents of the object, such as the pods of a StatefulSet, when the component
            deletes it: they are deleted after it (`BACKGROUND`, the default), before it (`FOREGROUND`), or kept
            (`ORPHAN`). A suspension and the deletion of the owner never keep them.
        unowned: The object gets no owner reference, so it is not deleted with its owner.
        delete_with_owner: An unowned object, such as a copy in another namespace, is deleted with its owner, which a
            finalizer holds until then, and is pruned. A label of the object names the owner.
        block_on_foreign_controller: An object of another controller is not changed; it blocks this resource and all
            later ones.
        adopt: Whether an object that exists already, and that no component of the owner has created, is adopted. One
            that is not is left as it is, and blocks this resource and all later ones. By default, as the component
            says with `with_adoption`.
        recreate_on_immutable_change: An object is deleted, with its data, and created again if the API server rejects a
            change because a field of an existing object cannot be changed.
        recreate_when_changed: Fields such as `metadata.annotations.example.com/restarted-at`: an object is deleted and
            created again, instead of changed, if one of them, or a field below, differs from what is rendered.
        only_if_served: While the API server does not serve the kind, the resource is left out, and the condition names
            it; an operator reconciles its owners once the kind is served.
        held_for_cleanup: A finalizer keeps the object until `on_delete` has succeeded and the external resources of the
            owner are gone, which may need it, however the owner is deleted. Without both it has no effect.
        independent: The resource is reconciled concurrently with the others, even if an earlier one is blocked or
            fails; none waits for the other.
        suppress_grace_warning: No log line if the grace handler reports Healthy while the resource is not ready.
    """

    participation: Participation
    ignore_fields: list[str] | tuple[str, ...]
    set_once: list[str] | tuple[str, ...]
    writes: Writes
    on_conflict: Conflicts
    read_only: bool
    block_on_absence: bool
    ignore_if_absent: bool
    delete_when: bool
    gated_by: Gate | None
    orphan_when: bool
    propagation: Propagation
    unowned: bool
    delete_with_owner: bool
    block_on_foreign_controller: bool
    adopt: Adoption
    recreate_on_immutable_change: bool
    recreate_when_changed: list[str] | tuple[str, ...]
    only_if_served: bool
    held_for_cleanup: bool
    independent: bool
    suppress_grace_warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveOptions:
    """The validated options of a resource, with gates and switches evaluated.

    Args:
        lifecycle: What happens to its object.
        possible_lifecycles: All lifecycles that the options allow, depending on gates and switches.
        participation: Whether its health counts for the condition.
        ignore_fields: Ignored fields of the object.
        set_once: Fields that are ignored once the object exists.
        writes: Whether the object is only created, or only updated.
        on_conflict: What happens to fields of another field manager.
        block_on_absence: Whether a missing read-only object blocks.
        ignore_if_absent: Whether a missing object that is not created is skipped.
        propagation: What happens to the dependents of its object when the component deletes it.
        unowned: Whether the object gets no owner reference.
        delete_with_owner: Whether it is deleted with its owner nevertheless.
        block_on_foreign_controller: Whether an object of another controller blocks.
        adopt: Whether an object that others created is adopted; None for the default, always.
        recreate_on_immutable_change: Whether it is deleted and created again if a changed field is immutable.
        recreate_when_changed: Fields, joined by dots, whose change deletes it and creates it again.
        only_if_served: Whether the resource is left out while its kind is not served.
        held_for_cleanup: Whether a finalizer keeps its object until the clean-up of the owner has succeeded.
        independent: Whether it is reconciled concurrently with the other resources.
        suppress_grace_warning: Whether a grace status that contradicts the status is not logged.
        gate_closed: Whether its gate is off, and nothing else deletes its object.
        rollout: The rollout of which it is a member; None for none.
    """

    lifecycle: Lifecycle = Lifecycle.MANAGED
    possible_lifecycles: frozenset[Lifecycle] = frozenset({Lifecycle.MANAGED})
    participation: Participation = Participation.REQUIRED
    ignore_fields: tuple[tuple[str, ...], ...] = ()
    set_once: tuple[tuple[str, ...], ...] = ()
    writes: Writes = Writes.ALL
    on_conflict: Conflicts = Conflicts.TAKE
    block_on_absence: bool = False
    ignore_if_absent: bool = False
    propagation: Propagation = Propagation.BACKGROUND
    unowned: bool = False
    delete_with_owner: bool = False
    block_on_foreign_controller: bool = False
    adopt: Adoption | None = None
    recreate_on_immutable_change: bool = False
    recreate_when_changed: tuple[str, ...] = ()
    only_if_served: bool = False
    held_for_cleanup: bool = False
    independent: bool = False
    suppress_grace_warning: bool = False
    gate_closed: bool = False
    rollout: Rollout | None = None

    @classmethod
    def of(cls, keywords: ResourceOptions) -> EffectiveOptions:
        """Validate the keywords of a resource, and evaluate its gate."""
        given: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
        if not given:
            return _DEFAULTS
        problems = [*_unknown_options(given), *_invalid_switches(given)]
        ignore_fields = _paths("ignore_fields", given, problems)
        set_once = _paths("set_once", given, problems)
        recreate_when_changed = tuple(".".join(path) for path in _paths("recreate_when_changed", given, problems))
        writes = _member(Writes, "writes", given, problems) or Writes.ALL
        problems += [*_clashes(given), *_write_clashes(writes, given), *_ignored_twice(ignore_fields, set_once)]
        participation = _member(Participation, "participation", given, problems) or Participation.REQUIRED
        on_conflict = _member(Conflicts, "on_conflict", given, problems) or Conflicts.TAKE
        problems += _never_changed(recreate_when_changed)
        adopt = _member(Adoption, "adopt", given, problems)
        propagation = _member(Propagation, "propagation", given, problems) or Propagation.BACKGROUND
        gate_closed = _is_gated_off(given, problems)
        lifecycle = _lifecycle(given, gate_closed=gate_closed)
        if problems:
            raise ConfigError("; ".join(problems))
        return cls(
            lifecycle=lifecycle,
            possible_lifecycles=frozenset({lifecycle, *_other_lifecycles(given)}),
            participation=participation,
            ignore_fields=ignore_fields,
            set_once=set_once,
            writes=writes,
            on_conflict=on_conflict,
            block_on_absence=given.get("block_on_absence", False),
            ignore_if_absent=given.get("ignore_if_absent", False),
            propagation=propagation,
            unowned=given.get("unowned", False) or writes is Writes.UPDATE_ONLY,
            delete_with_owner=given.get("delete_with_owner", False),
            block_on_foreign_controller=given.get("block_on_foreign_controller", False),
            adopt=adopt,
            recreate_on_immutable_change=given.get("recreate_on_immutable_change", False),
            recreate_when_changed=recreate_when_changed,
            only_if_served=given.get("only_if_served", False),
            held_for_cleanup=given.get("held_for_cleanup", False),
            independent=given.get("independent", False),
            suppress_grace_warning=given.get("suppress_grace_warning", False),
            gate_closed=gate_closed and not given.get("delete_when"),
        )

    @property
    def updates_only(self) -> bool:
        """Whether its object belongs to another writer, and only the declared fields are set in it."""
        return self.writes is Writes.UPDATE_ONLY

    @property
    def mark(self) -> Mark | None:
        """The value of the label of its object, by which that is found for its owner; None without one."""
        if self.updates_only:
            return Mark.FIELDS
        return Mark.OBJECT if self.delete_with_owner else None

    @property
    def recreates(self) -> bool:
        """Whether its object may be deleted to be created again."""
        return self.recreate_on_immutable_change or bool(self.recreate_when_changed)

    @property
    def stopping_propagation(self) -> Propagation:
        """What happens to the dependents when the deletion has to stop them: those that would be kept are deleted."""
        return Propagation.BACKGROUND if self.propagation is Propagation.ORPHAN else self.propagation


def _unknown_options(given: Mapping[str, Any]) -> Iterator[str]:
    known = ResourceOptions.__annotations__
    for name in given:
        if name not in known:
            found = nearest(name, known)
            hint = f', did you mean "{found}"?' if found else f"; known options: {', '.join(known)}"
            yield f'unknown option "{name}"{hint}'


def _invalid_switches(given: Mapping[str, Any]) -> Iterator[str]:
    for name in _SWITCHES:
        if name in given and not isinstance(given[name], bool):
            yield f"{name} must be True or False, got {given[name]!r}"


def _paths(option: str, given: Mapping[str, Any], problems: list[str]) -> tuple[tuple[str, ...], ...]:
    fields: object = given.get(option, ())
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        problems.append(f'{option} must be a list of fields such as ["spec.replicas"], got {fields!r}')
        return ()
    paths: list[tuple[str, ...]] = []
    for text in fields:
        if not isinstance(text, str):
            problems.append(f'{option} must be a list of fields such as ["spec.replicas"], got {text!r:.60} in it')
            continue
        try:
            paths.append(parse_path(text))
        except ConfigError as error:
            problems.append(str(error))
    return tuple(paths)


def _never_changed(fields: Sequence[str]) -> Iterator[str]:
    for field in fields:
        if field.partition(".")[0] in _NOT_APPLIED or field in _IDENTITY:
            yield f"recreate_when_changed: {field} is not applied, so it never differs; name a field of the resource"


def _member(kind: type[EnumT], name: str, given: Mapping[str, Any], problems: list[str]) -> EnumT | None:
    """Return an enum member by its value, which may be given as plain text."""
    if name not in given:
        return None
    try:
        return kind(given[name])
    except ValueError:
        problems.append(f'{name} must be one of {", ".join(kind)}, got "{given[name]}"')
        return None


def _is_gated_off(given: Mapping[str, Any], problems: list[str]) -> bool:
    try:
        return not is_open(given.get("gated_by"))
    except ConfigError as error:
        problems.append(str(error))
        return False


def _lifecycle(given: Mapping[str, Any], *, gate_closed: bool) -> Lifecycle:
    if given.get("read_only"):
        return Lifecycle.READ_ONLY
    if given.get("orphan_when"):
        return Lifecycle.ORPHANED
    return Lifecycle.DELETED if gate_closed or given.get("delete_when") else Lifecycle.MANAGED


def _other_lifecycles(given: Mapping[str, Any]) -> Iterator[Lifecycle]:
    """Yield the lifecycles that other values of the same options would give.

    A gate may open and close. A switch that is off may be turned on; one that is on is taken as permanent, because a
    resource that a product has dropped stays registered as deleted.
    """
    if "gated_by" in given:
        yield from (Lifecycle.MANAGED, Lifecycle.DELETED)
    if given.get("delete_when") is False:
        yield Lifecycle.DELETED
    if given.get("orphan_when") is False:
        yield Lifecycle.ORPHANED


def _clashes(given: Mapping[str, Any]) -> Iterator[str]:
    # False is the default of these switches, so it excludes nothing.
    names = {name for name, value in given.items() if value or name not in _ONE_WAY}
    if {"block_on_absence", "ignore_if_absent"} <= names:
        yield "block_on_absence and ignore_if_absent are mutually exclusive"
    if "block_on_absence" in names and "read_only" not in names:
        yield "block_on_absence requires read_only"
    if "ignore_if_absent" in names and "read_only" not in names and given.get("writes") != Writes.UPDATE_ONLY:
        yield f'ignore_if_absent requires read_only or writes="{Writes.UPDATE_ONLY}"'
    if "delete_with_owner" in names and "unowned" not in names:
        yield "delete_with_owner requires unowned: an object with an owner reference is deleted with its owner anyway"
    for one, other, problem in _EXCLUSIONS:
        if {one, other} <= names:
            yield problem


def _write_clashes(writes: Writes, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield which options are about writes that are not sent."""
    for name, why in _UNSENT[writes].items():
        # A switch that deletes may be turned on later.
        if given.get(name) or (name in given and name not in _ONE_WAY):
            yield f'writes="{writes}" is mutually exclusive with {name}: {why}'


def _ignored_twice(ignored: Sequence[tuple[str, ...]], set_once: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for one in set_once:
        for other in ignored:
            if one[: len(other)] == other or other[: len(one)] == one:
                yield (
                    f'set_once has "{format_path(one)}" and ignore_fields has "{format_path(other)}": an ignored field '
                    "is not sent at creation either; keep one of them"
                )


_ONE_WAY: Final = (
    "read_only",
    "block_on_absence",
    "ignore_if_absent",
    "unowned",
    "delete_with_owner",
    "block_on_foreign_controller",
    "recreate_on_immutable_change",
    "only_if_served",
    "held_for_cleanup",
    "independent",
    "suppress_grace_warning",
)
_SWITCHES: Final = (*_ONE_WAY, "delete_when", "orphan_when")
_NOT_APPLIED: Final = frozenset({"apiVersion", "kind", "status"})
_IDENTITY: Final = frozenset({"metadata.name", "metadata.namespace"})
_NOT_HELD: Final = (
    "held_for_cleanup is mutually exclusive with read_only: the object is not the component's to hold; copy what the "
    "clean-up needs into an object that the component manages, and hold that one"
)
_NOT_OURS: Final = "the object belongs to another writer"
_NEVER_UPDATED: Final = "the object is not updated"
_NOT_READ_ONLY: Final = {"read_only": "a read-only object is not written"}
_UNSENT: Final[Mapping[Writes, Mapping[str, str]]] = {
    Writes.ALL: {},
    Writes.CREATE_ONLY: {
        **_NOT_READ_ONLY,
        "set_once": "all fields are set once",
        "on_conflict": _NEVER_UPDATED,
        "recreate_on_immutable_change": _NEVER_UPDATED,
        "recreate_when_changed": _NEVER_UPDATED,
    },
    Writes.UPDATE_ONLY: {
        **_NOT_READ_ONLY,
        **dict.fromkeys(
            (
                "set_once",
                "unowned",
                "adopt",
                "orphan_when",
                "propagation",
                "held_for_cleanup",
                "recreate_on_immutable_change",
                "recreate_when_changed",
            ),
            _NOT_OURS,
        ),
    },
}
_EXCLUSIONS: Final = (
    ("read_only", "set_once", "set_once is mutually exclusive with read_only"),
    ("read_only", "delete_when", "read_only is mutually exclusive with delete_when"),
    ("read_only", "gated_by", "read_only is mutually exclusive with gated_by"),
    ("read_only", "block_on_foreign_controller", "block_on_foreign_controller is mutually exclusive with read_only"),
    ("read_only", "adopt", "adopt is mutually exclusive with read_only"),
    ("read_only", "propagation", "propagation is mutually exclusive with read_only"),
    ("read_only", "recreate_on_immutable_change", "recreate_on_immutable_change is mutually exclusive with read_only"),
    ("read_only", "recreate_when_changed", "recreate_when_changed is mutually exclusive with read_only"),
    ("read_only", "held_for_cleanup", _NOT_HELD),
    ("unowned", "held_for_cleanup", "held_for_cleanup is mutually exclusive with unowned"),
    ("orphan_when", "delete_when", "orphan_when is mutually exclusive with delete_when"),
    ("orphan_when", "gated_by", "orphan_when is mutually exclusive with gated_by"),
    ("orphan_when", "read_only", "orphan_when is mutually exclusive with read_only"),
)

_DEFAULTS: Final = EffectiveOptions()
