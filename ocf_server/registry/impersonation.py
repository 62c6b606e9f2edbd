"""Impersonation: whether a user may act as another one.

Source: `staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation` of Kubernetes 1.36. The rights of constrained
impersonation (`impersonate:user-info`, `impersonate-on:user-info:get`) are not evaluated; only texts name them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ocf_server.api.attributes import Attributes, forbidden_error
from ocf_server.api.users import AUTHENTICATED, MASTERS, User, account_groups, account_of
from ocf_server.registry.rbac import Rbac

__all__ = ["authorize"]

_VERB: Final = "impersonate"
_AUTHENTICATION: Final = "authentication.k8s.io"
_NODE: Final = "system:node:"


def authorize(rbac: Rbac, user: User, attributes: Attributes, *, by: User) -> None:
    """Check that a user may make a request.

    Args:
        by: The user who sends the request; it is impersonation if that is another one.

    Raises:
        ForbiddenError: If not; the text names the first right that is missing.
    """
    if by is not user and MASTERS not in by.groups:
        _require_impersonation(rbac, by, user, attributes)
    rbac.require(user, attributes)


def _require_impersonation(rbac: Rbac, requestor: User, user: User, attributes: Attributes) -> None:
    asked = [*_asked(user)]
    for one in asked:
        decision = rbac.authorize(requestor, one)
        if decision.allowed:
            continue
        # The API server tries several ways to allow it, and names what the first one lacks: that is the constrained
        # way, or the one in which the user has succeeded before.
        mode = "" if requestor.username in rbac.impersonators else _mode(user, named_only=len(asked) == 1)
        verb = f"impersonate-on:{mode}:{attributes.verb}"
        raise forbidden_error(requestor, replace(attributes, verb=verb) if mode else one, decision.reason)
    rbac.impersonators.add(requestor.username)


def _mode(user: User, *, named_only: bool) -> str:
    """Return the constrained way to act as a user; empty if there is none."""
    is_account, is_node = account_of(user.username) is not None, user.username.startswith(_NODE)
    if not (is_account or is_node):
        return "user-info"
    # A service account and a node have the groups and the uid that they have.
    return "" if not named_only else "serviceaccount" if is_account else "arbitrary-node"


def _asked(user: User) -> Iterator[Attributes]:
    account = account_of(user.username)
    if account:
        yield Attributes(_VERB, "", "serviceaccounts", "", *account)
    else:
        yield Attributes(_VERB, "", "users", "", "", user.username)
    known = {AUTHENTICATED, *(account_groups(account[0]) if account else ())}
    yield from (Attributes(_VERB, "", "groups", "", "", group) for group in user.groups if group not in known)
    for key, values in user.extra.items():
        yield from (Attributes(_VERB, _AUTHENTICATION, "userextras", key, "", value) for value in values)
    if user.uid:
        yield Attributes(_VERB, _AUTHENTICATION, "uids", "", "", user.uid)
