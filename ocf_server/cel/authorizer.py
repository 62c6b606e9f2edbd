"""The authorizer library of CEL: checks of the rights of the user of a request.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library. A cluster without
authorization allows every check, as for a member of `system:masters`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ocf_server.api.attributes import Attributes, Authorize, Decision
from ocf_server.api.users import User, account_groups
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import AUTHORIZER, AUTHORIZER_TYPES
from ocf_server.cel.values import Opaque

__all__ = ["AUTHORIZATION", "authorizer_values"]


@dataclass(frozen=True, slots=True)
class _Authorizer(Opaque):
    """Decides for one user; without `decide`, everything is allowed."""

    decide: Authorize | None = None
    user: User | None = None

    def check(self, attributes: Attributes) -> Decision:
        """Return the decision about a request."""
        if self.decide is None or self.user is None:
            return Decision(allowed=True)
        return self.decide(self.user, attributes)


@dataclass(frozen=True, slots=True)
class _Check(Opaque):
    """A request that is described step by step."""

    authorizer: _Authorizer
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class _Decided(Opaque):
    """The result of a check."""

    decision: Decision


def authorizer_values(
    decide: Authorize | None = None, user: User | None = None, requested: Attributes | None = None
) -> Mapping[str, Any]:
    """Return the values of the variables of the library.

    Args:
        decide: The authorizer; None if every user may do everything.
        user: The user of the request.
        requested: The resource of the request.
    """
    authorizer = _Authorizer(AUTHORIZER.name, decide, user)
    requested = requested or Attributes("")
    return {"authorizer": authorizer, "authorizer.requestResource": _part("resource", authorizer, requested)}


def _part(name: str, authorizer: _Authorizer, attributes: Attributes) -> _Check:
    return _Check(AUTHORIZER_TYPES[name].name, authorizer, attributes)


def _service_account(authorizer: _Authorizer, namespace: str, name: str) -> _Authorizer:
    user = User(f"system:serviceaccount:{namespace}:{name}", account_groups(namespace))
    return replace(authorizer, user=user)


def _setter(field: str) -> Callable[[_Check, str], _Check]:
    return lambda check, value: replace(check, attributes=replace(check.attributes, **{field: value}))


def _check(check: _Check, verb: str) -> _Decided:
    decision = check.authorizer.check(replace(check.attributes, verb=verb))
    return _Decided(AUTHORIZER_TYPES["decision"].name, decision)


AUTHORIZATION: Final[tuple[Function, ...]] = (
    overload("authorizer on path: string -> path", lambda one, path: _part("path", one, Attributes("", path=path))),
    overload("authorizer on group: string -> group", lambda one, group: _part("group", one, Attributes("", group))),
    overload("authorizer on serviceAccount: string, string -> authorizer", _service_account),
    overload(
        "group on resource: string -> resource",
        lambda one, name: _part("resource", one.authorizer, replace(one.attributes, resource=name)),
    ),
    *(
        overload(f"resource on {name}: string -> resource", _setter(name))
        for name in ("subresource", "namespace", "name")
    ),
    # RBAC looks at no selector.
    *(
        overload(f"resource on {name}: string -> resource", lambda check, _: check)
        for name in ("fieldSelector", "labelSelector")
    ),
    *(overload(f"{check} on check: string -> decision", _check) for check in ("path", "resource")),
    overload("decision on allowed -> bool", lambda one: one.decision.allowed),
    overload("decision on errored -> bool", lambda _: False),
    overload("decision on error -> string", lambda _: ""),
    overload("decision on reason -> string", lambda one: one.decision.reason),
)
"""The functions of the library."""
