"""How a component treats one of its resources, and which ways exclude each other.

What excludes another is decided by what was said, not by its value: `delete_when=False` beside `read_only=True` is
refused as `True` would be, because the pair makes no sense on the day the value changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

from ocf.errors import ConfigError
from ocf.objects import parse_path

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["Conflicts", "Fate", "Options", "Participation", "ResourceOptions"]


class Participation(StrEnum):
    """Whether the health of a resource counts for the component's condition."""

    REQUIRED = "Required"
    AUXILIARY = "Auxiliary"


class Conflicts(StrEnum):
    """What happens when somebody else owns a field that we apply with another value."""

    TAKE = "take"
    FAIL = "fail"


class Fate(StrEnum):
    """What becomes of the object of a resource."""

    MANAGED = "managed"
    READ_ONLY = "read-only"
    DELETED = "deleted"
    ORPHANED = "orphaned"


class ResourceOptions(TypedDict, total=False):
    """The keywords of `Builder.with_resource`.

    Attributes:
        participation: Whether its health counts; a block counts in any case, and an error fails the pass in any case.
        leaves: Fields of the object that somebody else sets, `spec.replicas`; we send them neither at creation nor
            later. The field that a scaler of this component sets is left to it without being named here.
        on_conflict: Whether fields that somebody else owns are taken, or the pass fails and names them.
        read_only: The object is only read: never written, never owned, never deleted; its health counts.
        block_on_absence: A read-only object that does not exist blocks this resource and all later ones.
        ignore_if_absent: A read-only object that does not exist is passed over.
        delete_when: True deletes the object, if it is ours.
        gated_by: A gate that is off deletes the object, if it is ours; None says nothing.
        orphan_when: True takes our owner reference off the object and keeps it.
        unowned: The object gets no owner reference, and so outlives its owner.
        block_on_foreign_controller: An object that another owner controls is left alone: it blocks this resource and
            all later ones.
    """

    participation: Participation
    leaves: Sequence[str]
    on_conflict: Conflicts
    read_only: bool
    block_on_absence: bool
    ignore_if_absent: bool
    delete_when: bool
    gated_by: Gate | None
    orphan_when: bool
    unowned: bool
    block_on_foreign_controller: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a component treats a resource, decided.

    Args:
        fate: What becomes of its object.
        participation: Whether its health counts.
        leaves: Fields of the object that somebody else sets.
        on_conflict: What happens to fields that somebody else owns.
        block_on_absence: Whether a missing read-only object blocks.
        ignore_if_absent: Whether a missing read-only object is passed over.
        unowned: Whether the object gets no owner reference.
        block_on_foreign_controller: Whether an object that another owner controls blocks.
    """

    fate: Fate = Fate.MANAGED
    participation: Participation = Participation.REQUIRED
    leaves: tuple[tuple[str, ...], ...] = ()
    on_conflict: Conflicts = Conflicts.TAKE
    block_on_absence: bool = False
    ignore_if_absent: bool = False
    unowned: bool = False
    block_on_foreign_controller: bool = False

    @classmethod
    def of(cls, given: ResourceOptions) -> Options:
        """Decide.

        Args:
            given: The keywords of `with_resource`.

        Raises:
            ConfigError: If two of them exclude each other, a field is no path, or the gate cannot answer; with every
                problem.
        """
        problems = list(_clashes(given))
        leaves: list[tuple[str, ...]] = []
        for text in given.get("leaves", ()):
            try:
                leaves.append(parse_path(text))
            except ConfigError as error:
                problems.append(str(error))
        try:
            fate = _fate(given)
        except ConfigError as error:
            fate = Fate.MANAGED
            problems.append(str(error))
        if problems:
            raise ConfigError("; ".join(problems))
        return cls(
            fate=fate,
            participation=given.get("participation", Participation.REQUIRED),
            leaves=tuple(leaves),
            on_conflict=given.get("on_conflict", Conflicts.TAKE),
            block_on_absence=given.get("block_on_absence", False),
            ignore_if_absent=given.get("ignore_if_absent", False),
            unowned=given.get("unowned", False),
            block_on_foreign_controller=given.get("block_on_foreign_controller", False),
        )


def _fate(given: ResourceOptions) -> Fate:
    gate = given.get("gated_by")
    if given.get("read_only"):
        return Fate.READ_ONLY
    if given.get("orphan_when"):
        return Fate.ORPHANED
    if given.get("delete_when") or (gate is not None and not gate.enabled()):
        return Fate.DELETED
    return Fate.MANAGED


def _clashes(given: ResourceOptions) -> Iterator[str]:
    said = {name for name, value in given.items() if value is not None}
    # A switch that can only be thrown one way says nothing while it is off.
    said -= {name for name in _SWITCHES if not given.get(name)}
    if {"block_on_absence", "ignore_if_absent"} <= said:
        yield "BlockOnAbsence and IgnoreIfAbsent are mutually exclusive"
    if "block_on_absence" in said and "read_only" not in said:
        yield "BlockOnAbsence requires ReadOnly"
    if "ignore_if_absent" in said and "read_only" not in said:
        yield "IgnoreIfAbsent requires ReadOnly"
    for one, other, problem in _EXCLUSIONS:
        if {one, other} <= said:
            yield problem


_SWITCHES = ("read_only", "block_on_absence", "ignore_if_absent", "unowned", "block_on_foreign_controller")
_EXCLUSIONS = (
    ("read_only", "delete_when", "ReadOnly is mutually exclusive with Delete and DeleteWhen"),
    ("read_only", "gated_by", "ReadOnly is mutually exclusive with GatedBy"),
    ("read_only", "block_on_foreign_controller", "BlockOnForeignController is mutually exclusive with ReadOnly"),
    ("orphan_when", "delete_when", "OrphanWhen is mutually exclusive with Delete"),
    ("orphan_when", "gated_by", "OrphanWhen is mutually exclusive with GatedBy"),
    ("orphan_when", "read_only", "OrphanWhen is mutually exclusive with ReadOnly"),
)
