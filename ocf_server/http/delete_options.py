"""Options of a delete: `DeleteOptions` in the body, or else in the query.

If a request has a body, its query is not read, as by a real API server.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Preconditions, Propagation
from ocf.errors import FieldProblem
from ocf_server.api.status_errors import bad_request, go_shape
from ocf_server.http.request import Query, integer, invalid_options, is_set, read_dry_run, values
from ocf_server.http.status import bad_option

__all__ = ["DeleteQuery"]

_KIND: Final = "DeleteOptions"
_PROPAGATIONS: Final = ("Foreground", "Background", "Orphan", "nil")

_Type: TypeAlias = tuple[str, type]
"""A type in Go, and the type of its JSON values."""

_FIELDS: Final[Mapping[str, _Type]] = {
    "gracePeriodSeconds": ("int64", int),
    "preconditions": ("v1.Preconditions", dict),
    "orphanDependents": ("bool", bool),
    "propagationPolicy": ("v1.DeletionPropagation", str),
    "dryRun": ("[]string", list),
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("bool", bool),
}
_PRECONDITIONS: Final[Mapping[str, _Type]] = {"uid": ("types.UID", str), "resourceVersion": ("string", str)}


@dataclass(frozen=True, slots=True)
class DeleteQuery:
    """The options of a delete.

    Args:
        preconditions: Conditions that the stored object must meet.
        grace_period_seconds: Grace period of a pod; None for that of the pod.
        dry_run: Only check whether the delete would succeed.
    """

    preconditions: Preconditions | None = None
    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, query: Query, body: Mapping[str, Any] | None) -> "DeleteQuery":
        """Read the options.

        Args:
            body: The body; None if the request has none.

        Raises:
            ApiError: If an option has an invalid value.
        """
        given = _from_query(query) if body is None else _decoded(body)
        grace = given.get("gracePeriodSeconds")
        return cls(
            preconditions=_preconditions(given.get("preconditions")),
            propagation=_propagation(given.get("propagationPolicy"), orphan=given.get("orphanDependents")),
            grace_period_seconds=grace,
            dry_run=read_dry_run(given.get("dryRun") or [], _KIND),
        )


def _from_query(query: Query) -> Mapping[str, Any]:
    found: dict[str, Any] = {"dryRun": values(query, "dryRun")}
    if "gracePeriodSeconds" in query:
        found["gracePeriodSeconds"] = integer(query, "gracePeriodSeconds")
    if "orphanDependents" in query:
        found["orphanDependents"] = is_set(query, "orphanDependents")
    if "propagationPolicy" in query:
        found["propagationPolicy"] = query["propagationPolicy"]
    return found


def _decoded(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options in a body, whose types are checked in its order, as by Go's decoder."""
    kind = body.get("kind") or _KIND
    if kind != _KIND:
        version = body.get("apiVersion") or "meta.k8s.io/v1"
        problem = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(problem)
    found: dict[str, Any] = {}
    for name, value in body.items():
        if name not in _FIELDS or value is None:
            continue
        _require_type(value, _FIELDS[name], f"{_KIND}.{name}")
        if name == "preconditions":
            for inner, item in value.items():
                if inner in _PRECONDITIONS and item is not None:
                    _require_type(item, _PRECONDITIONS[inner], f"Preconditions.{name}.{inner}")
        if name == "dryRun":
            value = ["" if item is None else item for item in value]  # noqa: PLW2901 (as Go decodes null)
            for item in value:
                _require_type(item, ("string", str), f"{_KIND}.{name}")
        found[name] = value
    return found


def _require_type(value: Any, wanted: _Type, where: str) -> None:
    name, shape = wanted
    seen = go_shape(value)
    if shape is int and seen == "number":
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return
        seen = f"number {json.dumps(value)}"
    elif type(value) is shape:
        return
    raise bad_request(f"json: cannot unmarshal {seen} into Go struct field {where} of type {name}")


def _preconditions(given: Mapping[str, str | None] | None) -> Preconditions | None:
    if given is None:
        return None
    return Preconditions(uid=given.get("uid"), resource_version=given.get("resourceVersion"))


def _propagation(given: str | None, *, orphan: bool | None) -> Propagation | None:
    # Both have the same meaning, and the old option is kept (ValidateDeleteOptions).
    if given is not None and orphan is not None:
        detail = f'Invalid value: "{given}": orphanDependents and deletionPropagation cannot be both set'
        raise invalid_options(_KIND, [FieldProblem("propagationPolicy", detail)])
    if given is None:
        return None if orphan is None else Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    if given not in list(Propagation):
        raise bad_option(_KIND, "propagationPolicy", f'"{given}"', _PROPAGATIONS)
    return Propagation(given)
