"""What a server and its controllers write into the status of a definition.

A real server names a kind, and a moment later serves it; here both happen with the same request, so that nobody has to
wait. The status is written by the manager that a real server writes it by.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.conditions import transition_time

__all__ = ["CLEANUP", "accepted_status", "remember_stored", "start_status"]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until the last object of its kind is gone."""


def start_status(definition: Manifest) -> None:
    """Write the status of a new definition: nothing is accepted yet, and one version is stored."""
    stored = [version["name"] for version in definition["spec"].get("versions") or () if version.get("storage")]
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored[:1] or None,
    }


def remember_stored(definition: Manifest) -> None:
    """Add the storage version of a changed definition to those in which objects may be stored."""
    status = dict(definition.get("status") or {})
    known = list(status.get("storedVersions") or ())
    for version in definition["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in known:
            known.append(version["name"])
    definition["status"] = {**status, "storedVersions": known or None}


def accepted_status(definition: Manifest, others: Iterable[Manifest], now: str) -> dict[str, Any] | None:
    """Return the status that a definition shall have.

    Args:
        definition: The definition.
        others: The other definitions.
        now: The time, as objects write it.

    Returns:
        The status; None where it is the one it has.
    """
    spec, status = definition["spec"], definition.get("status") or {}
    names = spec["names"]
    conflict = next(_conflicts(spec, others), None)
    if conflict is None:
        accepted = names
        wanted = [
            ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
        ]
    else:
        accepted = status.get("acceptedNames") or {"plural": "", "kind": ""}
        wanted = [
            ("NamesAccepted", "False", *conflict),
            ("Established", "False", "NotAccepted", "not all names are accepted"),
        ]
    known = {item["type"]: item for item in status.get("conditions") or ()}
    conditions = [_condition(row, known, now) for row in wanted]
    if status.get("acceptedNames") == accepted and status.get("conditions") == conditions:
        return None
    return {**status, "acceptedNames": accepted, "conditions": conditions}


def _conflicts(spec: dict[str, Any], others: Iterable[Manifest]) -> Iterator[tuple[str, str]]:
    """Find names that another definition of the group has; reason and message."""
    taken = [other["spec"]["names"] for other in others if other["spec"]["group"] == spec["group"]]
    words = {word for names in taken for word in (names["plural"], names.get("singular"), *names.get("shortNames", ()))}
    kinds = {word for names in taken for word in (names["kind"], names.get("listKind"))}
    for field, reason, used in (
        ("plural", "PluralConflict", words),
        ("singular", "SingularConflict", words),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        name = spec["names"].get(field)
        if name in used:
            yield reason, f'"{name}" is already in use'


def _condition(row: tuple[str, ...], known: dict[str, Any], now: str) -> dict[str, Any]:
    kind, status, reason, message = row
    before = known.get(kind)
    since = transition_time(status, now, stored=(before["status"], before["lastTransitionTime"]) if before else None)
    return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
