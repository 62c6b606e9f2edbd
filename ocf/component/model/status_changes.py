"""Changes of an owner's status in one reconcile: a copy of the status, and the conditions that were set or removed.

Everything here is a function of values; `ocf.component.model.status_writer` writes the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ocf.component.status.reasons import Reason
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, copy_json
from ocf.objects.conditions import find_condition, with_condition
from ocf.objects.json_values import to_json

__all__ = ["StatusChanges"]


class StatusChanges:
    """The status that an owner will have, computed from the status as it was read.

    Args:
        stored: The status as read from the cluster; it is not changed.

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
        self.stored: Final = stored
        self.status: Final[dict[str, Any]] = copy_json(stored)
        self._set: set[str] = set()
        self._removed: set[str] = set()

    @property
    def conditions(self) -> list[Manifest]:
        """The conditions with all changes so far."""
        return self.status.get("conditions") or []

    @property
    def stored_conditions(self) -> list[Manifest]:
        """The conditions as they were read."""
        return self.stored.get("conditions") or []

    @property
    def changed_types(self) -> frozenset[str]:
        """Types of the conditions that were set, or changed in `status`."""
        stored = self.stored_conditions
        return frozenset({*self._set, *(str(one.get("type")) for one in self.conditions if one not in stored)})

    def set_condition(self, condition: Manifest) -> None:
        """Set a condition; it replaces the one of its type, at its place.

        Args:
            condition: The condition in API spelling.
        """
        self._set.add(condition["type"])
        self._removed.discard(condition["type"])
        self.status["conditions"] = with_condition(self.conditions, condition)

    def remove_failure(self, name: str) -> None:
        """Remove a stored condition whose reason is `Error`, unless it was changed.

        Args:
            name: Type of the condition.
        """
        failure = find_condition(self.stored_conditions, name)
        if failure is None or failure.get("reason") != Reason.ERROR:
            return
        self._removed |= {name} - self.changed_types
        self._drop_removed(self.status)

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the new conditions into a given order, after the stored ones.

        Args:
            types: Types of conditions, in order.
        """
        there = [condition["type"] for condition in self.stored_conditions]
        rank = {name: at for at, name in enumerate(dict.fromkeys([*there, *types]))}
        if "conditions" in self.status:
            self.status["conditions"].sort(key=lambda condition: rank.get(condition["type"], len(rank)))

    def make_plain(self) -> tuple[FieldProblem, ...]:
        """Convert the status to plain JSON values, which the cluster stores; it is compared with them.

        A field that contains something else keeps its stored value, so that the rest can be written. Each condition is
        such a field of its own.

        Returns:
            What cannot be stored.

        Example:
            >>> changes = StatusChanges({"since": "noon"})
            >>> changes.status.update(size=(1, 2), since={1, 2})
            >>> [problem.path for problem in changes.make_plain()], changes.status
            (['status.since'], {'since': 'noon', 'size': [1, 2]})
        """
        problems: list[FieldProblem] = []
        try:
            plain = to_json(self.status, "status")
        except ManifestError:
            plain = self._plain_fields(problems)
        if plain is not self.status:
            self.status.clear()
            self.status.update(plain)
        return tuple(problems)

    def _plain_fields(self, problems: list[FieldProblem]) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for name, value in self.status.items():
            try:
                plain |= to_json({name: value}, "status", ("status",))
            except ManifestError as error:
                if name == "conditions" and isinstance(value, list):
                    plain[name] = self._plain_conditions(value, problems)
                    continue
                problems += error.problems
                if name in self.stored:
                    plain[name] = self.stored[name]
        return plain

    def _plain_conditions(self, conditions: list[Any], problems: list[FieldProblem]) -> list[Any]:
        plain: list[Any] = []
        for place, condition in enumerate(conditions):
            try:
                plain.append(to_json(condition, "status", ("status", "conditions", place)))
            except ManifestError as error:
                problems += error.problems
                name = condition.get("type") if isinstance(condition, dict) else None
                plain += [one for one in self.stored_conditions if one.get("type") == name]
        return plain

    def rebased(self, live: Manifest) -> dict[str, Any]:
        """Merge the changes into a newer status; other writers' changes are kept, except where both changed the same.

        Args:
            live: The status as stored now; it is not changed.

        Returns:
            The merged status.
        """
        status: dict[str, Any] = copy_json(live)
        for key in self.stored.keys() | self.status.keys():
            if key != "conditions" and self.status.get(key) != self.stored.get(key):
                status.pop(key, None)
                if key in self.status:
                    status[key] = self.status[key]
        old = {condition["type"]: condition for condition in self.stored_conditions}
        for name, condition in {condition["type"]: condition for condition in self.conditions}.items():
            if name in self._set or condition != old.get(name):
                status["conditions"] = with_condition(status.get("conditions") or [], condition)
        if self._removed:
            self._drop_removed(status)
        return status

    def _drop_removed(self, status: dict[str, Any]) -> None:
        left = [one for one in status.get("conditions") or [] if one.get("type") not in self._removed]
        status.pop("conditions", None)
        if left:
            status["conditions"] = left
