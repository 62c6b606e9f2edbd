"""Changes of an owner's status: a copy of it is changed, and merged into a newer one after a conflict.

Everything here is a function of values. A definition without a schema lets other clients store anything in a status:
what is not a condition stays as it is stored, beside ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from ocf.component.status.reasons import Reason
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, copy_json
from ocf.objects.conditions import (
    completed_condition,
    condition_problems,
    find_condition,
    has_type,
    typed_conditions,
    with_condition,
)
from ocf.objects.json_values import encodable, to_json
from ocf.objects.paths import format_path

__all__ = ["StatusChanges", "StatusPart", "fields_of"]

_ABSENT: Final = object()
# How many characters of a condition's type a message shows.
_NAMED: Final = 80


class StatusPart(NamedTuple):
    """A field of a status, or the condition of a type."""

    field: str
    condition: str = ""


class StatusChanges:
    """The status that an owner will have, computed from the status as it was read.

    Attributes:
        stored: The status as it was read.
        status: A copy of it, for changes.

    Example:
        >>> changes = StatusChanges({"phase": "Idle", "size": 1})
        >>> changes.status["size"] = 2
        >>> changes.rebased({"phase": "Busy", "size": 1})
        {'phase': 'Busy', 'size': 2}
    """

    def __init__(self, stored: Manifest) -> None:
        self.stored = stored
        self.status: Final[dict[str, Any]] = copy_json(stored)
        self._copies: Final = self.conditions
        self._set: dict[str, Manifest] = {}
        self._removed: set[str] = set()
        self._problems: list[FieldProblem] = []

    @property
    def conditions(self) -> list[Manifest]:
        """The conditions with all changes so far."""
        return typed_conditions(self.status.get("conditions"))

    @property
    def stored_conditions(self) -> list[Manifest]:
        """The conditions as they were read."""
        return typed_conditions(self.stored.get("conditions"))

    @property
    def changed_types(self) -> frozenset[str]:
        """Types of the conditions that were set, or changed in `status`."""
        stored = self.stored_conditions
        return frozenset({*self._set, *(one["type"] for one in self.conditions if one not in stored)})

    @property
    def removed_types(self) -> frozenset[str]:
        """Types of the stored conditions that were removed, and not set again."""
        return frozenset(one["type"] for one in self.stored_conditions) - {one["type"] for one in self.conditions}

    @property
    def assigned_types(self) -> frozenset[str]:
        """Types of the conditions that were changed in `status` only."""
        return self.changed_types - self._set.keys()

    @property
    def assigned_fields(self) -> frozenset[str]:
        """Names of the fields, beside the conditions, that were changed in `status`."""
        names = fields_of({**self.stored, **self.status})
        return frozenset(name for name in names if self.status.get(name) != self.stored.get(name))

    @property
    def untouched_types(self) -> frozenset[str]:
        """Types of the conditions that are in the list as they were read, and not even assigned again."""
        copies = {id(one) for one in self._copies}
        return frozenset(one["type"] for one in self.conditions if id(one) in copies and one in self.stored_conditions)

    def set_condition(self, condition: Manifest) -> None:
        """Set a condition; it replaces the one of its type, at its place."""
        self._set[condition["type"]] = condition
        self._removed.discard(condition["type"])
        self._require_list()
        self.status["conditions"] = with_condition(self.status.get("conditions") or [], condition)

    def restore(self, name: str) -> None:
        """Give a condition that was changed in `status` its stored state back."""
        stored = [one for one in self.stored_conditions if has_type(one, name)]
        entries = self.status.get("conditions") or []
        kept = [one for one in entries if not has_type(one, name)]
        self._replace(with_condition(entries, stored[0]) if stored else kept)

    def withdraw(self, refused: Collection[StatusPart]) -> bool:
        """Give parts of the status that were changed their stored values back; return whether there were any.

        Args:
            refused: The parts that the API server has refused. Without one that was changed here, all that was changed
                in `status` only is withdrawn.
        """
        assigned = self._assigned()
        changed = assigned | {StatusPart("conditions", name) for name in self._set}
        parts = changed.intersection(refused) or assigned
        for field, condition in parts:
            if condition:
                self._set.pop(condition, None)
                self.restore(condition)
            elif field in self.stored:
                self.status[field] = copy_json(self.stored[field])
            else:
                self.status.pop(field, None)
        return bool(parts)

    def _assigned(self) -> set[StatusPart]:
        """Return the parts that were changed in `status` only."""
        gone = {one["type"] for one in self.stored_conditions} - {one["type"] for one in self.conditions}
        types = self.assigned_types | (gone - self._removed)
        parts = {StatusPart("conditions", name) for name in types}
        return parts | {StatusPart(name) for name in self.assigned_fields}

    def remove_failure(self, name: str, *, whatever: bool = False) -> None:
        """Remove a stored condition whose reason is `Error`, unless it was changed.

        Args:
            whatever: Whether it is removed whatever its reason is, unless it was assigned.
        """
        self._require_list()
        failure = find_condition(self.stored_conditions, name)
        if failure is None or name in self.changed_types:
            return
        if failure.get("reason") == Reason.ERROR or (whatever and name in self.untouched_types):
            self.remove_condition(name)

    def remove_condition(self, name: str) -> None:
        """Remove a condition, stored or set."""
        self._require_list()
        self._set.pop(name, None)
        self._removed.add(name)
        self._replace([one for one in self.status.get("conditions") or [] if not has_type(one, name)])

    def undo_removal(self, name: str) -> None:
        """Give a condition that was removed its stored state back."""
        if name in self._removed:
            self._removed.remove(name)
            self.restore(name)

    def forget_generation(self) -> None:
        """Set the conditions without `observedGeneration`: writes of the status itself are generations, too."""
        for condition in [*self._set.values()]:
            if condition in self.conditions:
                self.set_condition({name: condition[name] for name in condition if name != "observedGeneration"})

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the stored ones."""
        there = {one["type"] for one in self.stored_conditions}
        rank = {name: at for at, name in enumerate(types)}
        new = [one for one in self.conditions if one["type"] not in there]
        if new:
            others = [one for one in self.status["conditions"] if all(one is not each for each in new)]
            self._replace([*others, *sorted(new, key=lambda one: rank.get(one["type"], len(rank)))])

    def make_plain(self, now: datetime) -> tuple[FieldProblem, ...]:
        """Convert the status to plain JSON values, which the cluster stores; it is compared with them.

        A field that contains something else keeps its stored value, so that the rest can be written. Each condition is
        such a field of its own, also one that was assigned and is not a condition. Conditions that were assigned get
        the transition time that they lack.

        Example:
            >>> from datetime import UTC
            >>> changes = StatusChanges({"since": "noon"})
            >>> changes.status.update(size=(1, 2), since={1, 2})
            >>> [problem.path for problem in changes.make_plain(datetime.now(UTC))], changes.status
            (['status.since'], {'since': 'noon', 'size': [1, 2]})
        """
        self._require_list()
        problems, self._problems = self._problems, []
        plain: dict[str, Any] = {}
        for name, value in self.status.items():
            try:
                if name == "conditions" and isinstance(value, list):
                    plain[name] = self._plain_conditions(value, problems, now)
                else:
                    (field,) = to_json({name: None}, "status", ("status",))
                    plain[field] = to_json(value, "status", ("status", field))
            except ManifestError as error:
                problems += error.problems
                if name in self.stored:
                    plain[name] = self.stored[name]
        self.status.clear()
        self.status.update(plain)
        return tuple(problems)

    def rebased(self, live: Manifest) -> dict[str, Any]:
        """Merge the changes into a newer status; other writers' changes are kept, except where both changed the same.

        Maps are merged key by key, and conditions by type. Any other list is one value.
        """
        status: dict[str, Any] = _merged(fields_of(self.stored), fields_of(self.status), fields_of(live))
        entries = live.get("conditions")
        merged = list(entries) if isinstance(entries, list) else []
        ours, old = _by_type(self.conditions), _by_type(self.stored_conditions)
        for name, condition in ours.items():
            if name in self._set or condition != old.get(name):
                merged = with_condition(merged, condition)
        for name, condition in old.items():
            if name not in ours and (name in self._removed or find_condition(merged, name) == condition):
                merged = [one for one in merged if not has_type(one, name)]
        if "conditions" in live and merged == (entries if isinstance(entries, list) else []):
            return {**status, "conditions": entries}
        return {**status, "conditions": merged} if merged else status

    def accept(self, stored: Manifest, given: Manifest) -> None:
        """Take the fields of a status that is stored by now as read; the conditions are still those that were changed.

        Args:
            stored: The status.
            given: The fields as they were assigned; the author may hold maps of them, and change them further.

        Example:
            >>> changes = StatusChanges({})
            >>> sizes = changes.status["sizes"] = {"web": 1}
            >>> changes.accept({"sizes": {"web": 1, "api": 1}}, {**changes.status})
            >>> sizes["web"] = 2
            >>> changes.status, changes.stored
            ({'sizes': {'web': 2, 'api': 1}}, {'sizes': {'web': 1, 'api': 1}})
        """
        kept = {name: value for name, value in self.stored.items() if name == "conditions"}
        self.stored = copy_json(fields_of(stored)) | kept
        for name, value in fields_of(stored).items():
            self.status[name] = _completed(given.get(name), value)

    def discard_fields(self) -> None:
        """Give all fields but the conditions the values back that were read."""
        for name in fields_of(self.status):
            del self.status[name]
        self.status.update(copy_json(fields_of(self.stored)))

    def _require_list(self) -> None:
        """Set the list of conditions again if something else was assigned, and record the problem."""
        found, stored = self.status.get("conditions"), self.stored.get("conditions")
        if isinstance(found, list) or "conditions" not in self.status:
            return
        if found != stored:
            seen = "None" if found is None else f"a value of type {type(found).__name__}"
            self._problems.append(FieldProblem("status.conditions", f"must be a list of conditions, got {seen}"))
        elif not self._set:
            return
        entries = list(stored) if isinstance(stored, list) else []
        for condition in self._set.values():
            entries = with_condition(entries, condition)
        self._replace(entries)

    def _replace(self, entries: list[Any]) -> None:
        """Replace the conditions; a list that gets empty is removed."""
        if entries:
            self.status["conditions"] = entries
        else:
            self.status.pop("conditions", None)

    def _plain_conditions(self, conditions: list[Any], problems: list[FieldProblem], now: datetime) -> list[Any]:
        """Return the conditions without those that were assigned and are wrong; what is stored is not checked."""
        stored = self.stored.get("conditions")
        unchecked = [*(stored if isinstance(stored, list) else ()), *self._set.values()]
        twice = {name for name, times in Counter(one["type"] for one in self.stored_conditions).items() if times > 1}
        plain: list[Any] = []
        for place, condition in enumerate(conditions):
            path = "status", "conditions", place
            value: Any = None
            wrong: list[FieldProblem] = []
            try:
                value = to_json(condition, "status", path)
            except ManifestError as error:
                wrong += error.problems
            assigned = value not in unchecked
            if not wrong and assigned:
                wrong += condition_problems(value, format_path(path))
            name = condition.get("type") if isinstance(condition, dict) else None
            if isinstance(name, str) and name not in twice and find_condition(plain, name) is not None:
                problems.append(FieldProblem(format_path((*path, "type")), f'must be unique, got "{name}" twice'))
                continue
            if wrong:
                problems += (_of_condition(problem, name) for problem in wrong)
                plain += self._kept(name)
            elif assigned:
                plain.append(completed_condition(value, find_condition(self.stored_conditions, value["type"]), now))
            else:
                plain.append(value)
        return plain

    def _kept(self, name: object) -> list[Manifest]:
        """Return what is written in place of a wrong condition: the one of its type that was set or stored, if any."""
        if not isinstance(name, str):
            return []
        found = self._set.get(name) or find_condition(self.stored_conditions, name)
        return [] if found is None else [found]


def fields_of(status: Manifest) -> Manifest:
    """Return a status without its conditions."""
    return {name: value for name, value in status.items() if name != "conditions"}


def _completed(ours: Any, stored: Any) -> Any:
    """Return a value of ours with what the API server has added to it; it stays the same object where it is equal."""
    if not isinstance(ours, dict) or not isinstance(stored, dict):
        return ours if ours == stored else copy_json(stored)
    for key, value in stored.items():
        ours[key] = _completed(ours.get(key), value)
    return ours


def _by_type(conditions: list[Manifest]) -> dict[str, Manifest]:
    return {one["type"]: one for one in conditions}


def _merged(old: Any, ours: Any, theirs: Any) -> Any:
    """Merge a value of ours and one of another writer, which both come from an old one."""
    if ours == old:
        return copy_json(theirs) if theirs is not _ABSENT else theirs
    before, changed = (one if isinstance(one, dict) else {} for one in (old, ours))
    is_map = isinstance(ours, dict) or (ours is _ABSENT and isinstance(old, dict))
    if not is_map or not isinstance(theirs, dict):
        return ours
    merged = {}
    for key in {**theirs, **changed}:
        value = _merged(before.get(key, _ABSENT), changed.get(key, _ABSENT), theirs.get(key, _ABSENT))
        if value is not _ABSENT:
            merged[key] = value
    # A map that was removed here stays as far as another writer has added to it.
    return merged if merged or isinstance(ours, dict) else _ABSENT


def _of_condition(problem: FieldProblem, name: object) -> FieldProblem:
    """Return a problem with the type of the condition that has it, unless the problem is the type."""
    if not isinstance(name, str) or not name or problem.path.endswith(".type"):
        return problem
    return problem._replace(detail=f'condition "{encodable(name[:_NAMED])}": {problem.detail}')
