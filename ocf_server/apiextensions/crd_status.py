"""Status of CustomResourceDefinitions.

A real API server accepts the names of a kind first and serves the kind a moment later. The embedded one does both in
the same request, so that a client does not have to wait. The field manager of the status is that of a real API server.

What clients store in the status stays, even conditions of the API server: it writes them only while the accepted names
differ from those of the spec, while the kind is not established, and during the deletion. Sources, in
k8s.io/apiextensions-apiserver/pkg: `calculateNamesAndConditions` in controller/status/naming_controller.go,
controller/establish/establishing_controller.go, controller/apiapproval/apiapproval_controller.go,
controller/finalizer/crd_finalizer.go, and `Delete` in registry/customresourcedefinition/etcd.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.conditions import find_condition, is_condition_true
from ocf_server.apiextensions.api_approval import approval_of

__all__ = [
    "CLEANUP",
    "accepted_status",
    "cleaned_up",
    "cleaning_up",
    "has_accepted_names",
    "is_established",
    "is_terminating",
    "marked_for_deletion",
    "remember_stored",
    "start_status",
    "with_approval",
]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a CustomResourceDefinition, removed after the deletion of the last object of its kind."""

_NAMES_ACCEPTED: Final = "NamesAccepted"
_ESTABLISHED: Final = "Established"
_TERMINATING: Final = "Terminating"
_APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"
_PENDING: Final = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


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


def has_accepted_names(definition: Manifest) -> bool:
    """Return whether the accepted names of a CustomResourceDefinition are those of its spec."""
    return _present(definition["spec"]["names"]) == _present(_status(definition).get("acceptedNames"))


def is_established(definition: Manifest) -> bool:
    """Return whether the kind of a CustomResourceDefinition is served."""
    return is_condition_true(_status(definition).get("conditions"), _ESTABLISHED)


def is_terminating(definition: Manifest) -> bool:
    """Return whether no objects of the kind of a CustomResourceDefinition can be created any more."""
    return is_condition_true(_status(definition).get("conditions"), _TERMINATING)


def accepted_status(definition: Manifest, definitions: Iterable[Manifest], now: str) -> dict[str, Any] | None:
    """Return the new status of a CustomResourceDefinition after a check of its names.

    Args:
        definitions: All CustomResourceDefinitions; only read if its names are not accepted yet.
        now: The current time, in the format of object timestamps.

    Returns:
        The status; None if it does not change.
    """
    status = _status(definition)
    accepted, conditions = status.get("acceptedNames") or {}, list(status.get("conditions") or ())
    if not has_accepted_names(definition):
        accepted, conflict = _accept(definition["spec"], accepted, definitions)
        row = (_NAMES_ACCEPTED, *(("False", *conflict) if conflict else ("True", "NoConflicts", "no conflicts found")))
        known = find_condition(conditions, _NAMES_ACCEPTED)
        if known is None or any(known.get(name) != value for name, value in _fields(*row).items()):
            conditions = _with(conditions, now, *row)
        if find_condition(conditions, _ESTABLISHED) is None:
            conditions = _with(conditions, now, _ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
    if is_condition_true(conditions, _NAMES_ACCEPTED) and not is_condition_true(conditions, _ESTABLISHED):
        text = "the initial names have been accepted"
        conditions = _with(conditions, now, _ESTABLISHED, "True", "InitialNamesAccepted", text)
    if accepted == (status.get("acceptedNames") or {}) and conditions == (status.get("conditions") or []):
        return None
    return {**status, "acceptedNames": accepted, "conditions": conditions}


def with_approval(definition: Manifest, now: str) -> dict[str, Any] | None:
    """Return the status of a CustomResourceDefinition with the condition of its approval.

    Returns:
        The status; None if it does not change, or if the group needs no approval.
    """
    found, conditions = approval_of(definition), list(_status(definition).get("conditions") or ())
    if found is None:
        return None
    row = (_APPROVED, found.status, found.reason, found.message)
    known = find_condition(conditions, _APPROVED)
    if known is not None and all(known.get(name) == value for name, value in _fields(*row).items()):
        return None
    return {**_status(definition), "conditions": _with(conditions, now, *row)}


def marked_for_deletion(definition: Manifest, now: str) -> Manifest:
    """Return a CustomResourceDefinition after its first delete, whose propagation policy has no effect."""
    metadata = dict(definition["metadata"])
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
    metadata["deletionTimestamp"] = now
    return _terminating({**definition, "metadata": metadata}, now, "True", "InstanceDeletionPending", _PENDING)


def cleaning_up(definition: Manifest, now: str) -> Manifest:
    """Return a CustomResourceDefinition when the deletion of the objects of its kind has begun."""
    text = "CustomResource deletion is in progress"
    return _terminating(definition, now, "True", "InstanceDeletionInProgress", text)


def cleaned_up(definition: Manifest, now: str) -> Manifest:
    """Return a CustomResourceDefinition after the deletion of the last object of its kind."""
    finalizers = [name for name in definition["metadata"]["finalizers"] if name != CLEANUP]
    without = {**definition, "metadata": {**definition["metadata"], "finalizers": finalizers}}
    return _terminating(without, now, "False", "InstanceDeletionCompleted", "removed all instances")


def _terminating(definition: Manifest, now: str, *row: str) -> Manifest:
    status = _status(definition)
    conditions = _with(list(status.get("conditions") or ()), now, _TERMINATING, *row)
    return {**definition, "status": {**status, "conditions": conditions}}


def _accept(
    spec: Mapping[str, Any], accepted: Mapping[str, Any], definitions: Iterable[Manifest]
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Return the accepted names after a check of those of a spec, and reason and message of the last conflict."""
    group = [
        _status(other).get("acceptedNames") or {} for other in definitions if other["spec"]["group"] == spec["group"]
    ]
    used = {fields: {name for names in group for each in fields for name in _listed(names, each)} for fields in _FIELDS}
    conflict: tuple[str, str] | None = None
    out: dict[str, Any] = {"plural": "", "kind": "", **accepted}
    for field, fields in _SHARED:
        names = used[fields]
        # Its own accepted names are among those in use.
        taken = [name for name in _listed(spec["names"], field) if name in names - set(_listed(accepted, field))]
        if taken:
            texts = [f'"{name}" is already in use' for name in taken]
            text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            conflict = (f"{field[0].upper()}{field[1:]}Conflict", text)
        else:
            out[field] = spec["names"].get(field)
    out["categories"] = spec["names"].get("categories")
    return {name: value for name, value in out.items() if value or name in _REQUIRED}, conflict


_WORDS: Final = ("plural", "singular", "shortNames")
_KINDS: Final = ("kind", "listKind")
_FIELDS: Final[tuple[tuple[str, ...], ...]] = (_WORDS, _KINDS)
_SHARED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    *((field, _WORDS) for field in _WORDS),
    *((field, _KINDS) for field in _KINDS),
)
"""The names of a kind, with those of other kinds that they must differ from."""
_REQUIRED: Final = frozenset({"plural", "kind"})


def _listed(names: Mapping[str, Any], field: str) -> list[str]:
    value = names.get(field) or []
    return value if isinstance(value, list) else [value]


def _present(names: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (names or {}).items() if value}


def _status(definition: Manifest) -> Mapping[str, Any]:
    return definition.get("status") or {}


def _fields(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _with(conditions: Sequence[Manifest], now: str, *row: str) -> list[Manifest]:
    """Return conditions with one of them set, in its place; a new one is the last."""
    wanted = _fields(*row)
    known = find_condition(conditions, wanted["type"])
    if known is None:
        return [*conditions, _condition(wanted, now)]
    since = known.get("lastTransitionTime") if known.get("status") == wanted["status"] else None
    return [{**item, **_condition(wanted, since or now)} if item is known else item for item in conditions]


def _condition(fields: Mapping[str, str], since: str) -> Manifest:
    return {"type": fields["type"], "status": fields["status"], "lastTransitionTime": since, **fields}
