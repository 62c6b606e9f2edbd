"""Status of CustomResourceDefinitions.

A real API server accepts the names of a kind first and serves the kind a moment later. The embedded one does both in
the same request, so that a client does not have to wait. The field manager of the status is that of a real API server.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.conditions import transition_time

__all__ = ["CLEANUP", "accepted_status", "remember_stored", "start_status"]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a CustomResourceDefinition, removed after the deletion of the last object of its kind."""


def start_status(definition: Manifest) -> None:
    """Set the status of a new CustomResourceDefinition: no names are accepted yet, and one version is stored."""
    stored = [version["name"] for version in definition["spec"].get("versions") or () if version.get("storage")]
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored[:1] or None,
    }


def remember_stored(definition: Manifest) -> None:
    """Add the storage version of a changed CustomResourceDefinition to `status.storedVersions`."""
    status = dict(definition.get("status") or {})
    known = list(status.get("storedVersions") or ())
    for version in definition["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in known:
            known.append(version["name"])
    definition["status"] = {**status, "storedVersions": known or None}


def accepted_status(definition: Manifest, others: Iterable[Manifest], now: str) -> dict[str, Any] | None:
    """Return the new status of a CustomResourceDefinition after a check of its names.

    Args:
        now: The current time, in the format of object timestamps.

    Returns:
        The status; None if it does not change.
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
    """Yield reason and message for each name that another CustomResourceDefinition of the group already uses."""
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
