"""How a component treats one of its resources, and which ways exclude each other.

What excludes another is decided by what was said, not by its value: `delete_when=False` beside `read_only=True` is
refused as `True` would be, because the pair makes no sense on the day the value changes.

Keywords reach a dictionary unchecked at run time, so a misspelt one, or the text "false" where a switch is meant, is
refused here: some of them delete.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from ocf.component.model.gates import is_open
from ocf.errors import ConfigError
from ocf.objects import parse_path

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["Conflicts", "EffectiveOptions", "Lifecycle", "Participation", "ResourceOptions"]

WordT = TypeVar("WordT", bound=StrEnum)


class Participation(StrEnum):
    """Whether the health of a resource counts for the component's condition."""

    REQUIRED = "Required"
    AUXILIARY = "Auxiliary"


class Conflicts(StrEnum):
    """What happens when somebody else owns a field that we apply with another value."""

    TAKE = "take"
    FAIL = "fail"


class Lifecycle(StrEnum):
    """What becomes of the object of a resource."""

    MANAGED = "managed"
    READ_ONLY = "read-only"
    DELETED = "deleted"
    ORPHANED = "orphaned"


class ResourceOptions(TypedDict, total=False):
    """The keywords of `Builder.with_resource`; one that is None says nothing.

    Attributes:
        participation: Whether its health counts; a block counts in any case, and an error fails the pass in any case.
        ignore_fields: Fields that another writer sets, such as `spec.replicas`; they are sent neither at creation nor
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
        independent: The resource waits for no other and no other waits for it: it is worked on together with the
            rest, even where an earlier one is blocked or fails.
        suppress_grace_warning: A grace handler that calls the resource healthy while it is not ready is no line in the
            log.
    """

    participation: Participation
    ignore_fields: Sequence[str]
    on_conflict: Conflicts
    read_only: bool
    block_on_absence: bool
    ignore_if_absent: bool
    delete_when: bool
    gated_by: Gate | None
    orphan_when: bool
    unowned: bool
    block_on_foreign_controller: bool
    independent: bool
    suppress_grace_warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveOptions:
    """How a component treats a resource, decided.

    Args:
        fate: What becomes of its object.
        fates: What may become of it as well, on the day on which a gate or a switch answers otherwise.
        participation: Whether its health counts.
        ignore_fields: Fields of the object that somebody else sets.
        on_conflict: What happens to fields that somebody else owns.
        block_on_absence: Whether a missing read-only object blocks.
        ignore_if_absent: Whether a missing read-only object is passed over.
        unowned: Whether the object gets no owner reference.
        block_on_foreign_controller: Whether an object that another owner controls blocks.
        independent: Whether it waits for no other resource, and no other for it.
        suppress_grace_warning: Whether a grace handler that disagrees with the status is not worth a line in the log.
    """

    lifecycle: Lifecycle = Lifecycle.MANAGED
    possible_lifecycles: frozenset[Lifecycle] = frozenset({Lifecycle.MANAGED})
    participation: Participation = Participation.REQUIRED
    ignore_fields: tuple[tuple[str, ...], ...] = ()
    on_conflict: Conflicts = Conflicts.TAKE
    block_on_absence: bool = False
    ignore_if_absent: bool = False
    unowned: bool = False
    block_on_foreign_controller: bool = False
    independent: bool = False
    suppress_grace_warning: bool = False

    @classmethod
    def of(cls, given: ResourceOptions) -> EffectiveOptions:
        """Decide.

        Args:
            given: The keywords of `with_resource`.

        Raises:
            ConfigError: If two of them exclude each other, a field is no path, or the gate cannot answer; with every
                problem.
        """
        said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        problems = [*_unknown(said), *_no_switches(said), *_clashes(said)]
        ignore_fields = _paths(said.get("ignore_fields", ()), problems)
        participation = _word(Participation, "participation", said, problems) or Participation.REQUIRED
        on_conflict = _word(Conflicts, "on_conflict", said, problems) or Conflicts.TAKE
        fate = _fate(said, problems)
        if problems:
            raise ConfigError("; ".join(problems))
        return cls(
            lifecycle=fate,
            possible_lifecycles=frozenset({fate, *_other_fates(said)}),
            participation=participation,
            ignore_fields=ignore_fields,
            on_conflict=on_conflict,
            block_on_absence=said.get("block_on_absence", False),
            ignore_if_absent=said.get("ignore_if_absent", False),
            unowned=said.get("unowned", False),
            block_on_foreign_controller=said.get("block_on_foreign_controller", False),
            independent=said.get("independent", False),
            suppress_grace_warning=said.get("suppress_grace_warning", False),
        )


def _unknown(said: Mapping[str, Any]) -> Iterator[str]:
    known = list(ResourceOptions.__annotations__)
    for name in said:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f', did you mean "{nearest[0]}"?' if nearest else f"; there are {', '.join(known)}"
            yield f'unknown option "{name}"{hint}'


def _no_switches(said: Mapping[str, Any]) -> Iterator[str]:
    for name in (*_ONE_WAY, *_TWO_WAY):
        if not isinstance(said.get(name, False), bool):
            yield f"{name} takes True or False, got {said[name]!r}"


def _paths(ignore_fields: object, problems: list[str]) -> tuple[tuple[str, ...], ...]:
    if isinstance(ignore_fields, str) or not isinstance(ignore_fields, Sequence):
        problems.append(f'ignore_fields takes a list of fields, ["spec.replicas"], got {ignore_fields!r}')
        return ()
    paths: list[tuple[str, ...]] = []
    for text in ignore_fields:
        try:
            paths.append(parse_path(text))
        except ConfigError as error:
            problems.append(str(error))
    return tuple(paths)


def _word(words: type[WordT], name: str, said: Mapping[str, Any], problems: list[str]) -> WordT | None:
    """Read a word; the plain text of one is taken too."""
    if name not in said:
        return None
    try:
        return words(said[name])
    except ValueError:
        problems.append(f'{name} is one of {", ".join(words)}, got "{said[name]}"')
        return None


def _fate(said: Mapping[str, Any], problems: list[str]) -> Lifecycle:
    try:
        gated_off = not is_open(said.get("gated_by"))
    except ConfigError as error:
        problems.append(str(error))
        return Lifecycle.MANAGED
    if said.get("read_only"):
        return Lifecycle.READ_ONLY
    if said.get("orphan_when"):
        return Lifecycle.ORPHANED
    return Lifecycle.DELETED if gated_off or said.get("delete_when") else Lifecycle.MANAGED


def _other_fates(said: Mapping[str, Any]) -> Iterator[Lifecycle]:
    """Yield what may become of an object another time.

    A gate may open and close. A switch that is off may be on; one that is on may be so for good, for what a product
    has got rid of is registered as deleted from then on.
    """
    if "gated_by" in said:
        yield from (Lifecycle.MANAGED, Lifecycle.DELETED)
    if said.get("delete_when") is False:
        yield Lifecycle.DELETED
    if said.get("orphan_when") is False:
        yield Lifecycle.ORPHANED


def _clashes(given: Mapping[str, Any]) -> Iterator[str]:
    # A switch that can only be thrown one way says nothing while it is off.
    said = {name for name, value in given.items() if value or name not in _ONE_WAY}
    if {"block_on_absence", "ignore_if_absent"} <= said:
        yield "BlockOnAbsence and IgnoreIfAbsent are mutually exclusive"
    if "block_on_absence" in said and "read_only" not in said:
        yield "BlockOnAbsence requires ReadOnly"
    if "ignore_if_absent" in said and "read_only" not in said:
        yield "IgnoreIfAbsent requires ReadOnly"
    for one, other, problem in _EXCLUSIONS:
        if {one, other} <= said:
            yield problem


_ONE_WAY: Final = (
    "read_only",
    "block_on_absence",
    "ignore_if_absent",
    "unowned",
    "block_on_foreign_controller",
    "independent",
    "suppress_grace_warning",
)
_TWO_WAY: Final = ("delete_when", "orphan_when")
_EXCLUSIONS: Final = (
    ("read_only", "delete_when", "ReadOnly is mutually exclusive with Delete and DeleteWhen"),
    ("read_only", "gated_by", "ReadOnly is mutually exclusive with GatedBy"),
    ("read_only", "block_on_foreign_controller", "BlockOnForeignController is mutually exclusive with ReadOnly"),
    ("orphan_when", "delete_when", "OrphanWhen is mutually exclusive with Delete"),
    ("orphan_when", "gated_by", "OrphanWhen is mutually exclusive with GatedBy"),
    ("orphan_when", "read_only", "OrphanWhen is mutually exclusive with ReadOnly"),
)
