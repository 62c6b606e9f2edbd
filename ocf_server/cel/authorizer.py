"""The authorizer library of CEL: checks of the rights of the user of a request.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library. The embedded cluster has no
authorization, so every check is allowed, as for a member of `system:masters`.
"""

from typing import Final

from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import AUTHORIZER, AUTHORIZER_TYPES
from ocf_server.cel.values import Opaque

__all__ = ["AUTHORIZATION", "AUTHORIZER_VALUES"]

_PATH, _GROUP, _RESOURCE, _DECISION = (
    Opaque(AUTHORIZER_TYPES[name].name) for name in ("path", "group", "resource", "decision")
)
_AUTHORIZER: Final = Opaque(AUTHORIZER.name)

AUTHORIZER_VALUES: Final = {"authorizer": _AUTHORIZER, "authorizer.requestResource": _RESOURCE}
"""Values of the variables of the library."""

AUTHORIZATION: Final[tuple[Function, ...]] = (
    overload("authorizer on path: string -> path", lambda *_: _PATH),
    overload("authorizer on group: string -> group", lambda *_: _GROUP),
    overload("authorizer on serviceAccount: string, string -> authorizer", lambda *_: _AUTHORIZER),
    overload("group on resource: string -> resource", lambda *_: _RESOURCE),
    *(
        overload(f"resource on {name}: string -> resource", lambda *_: _RESOURCE)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    ),
    *(overload(f"{check} on check: string -> decision", lambda *_: _DECISION) for check in ("path", "resource")),
    overload("decision on allowed -> bool", lambda _: True),
    overload("decision on errored -> bool", lambda _: False),
    overload("decision on error -> string", lambda _: ""),
    overload("decision on reason -> string", lambda _: ""),
)
"""The functions of the library."""
