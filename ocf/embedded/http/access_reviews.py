"""Access reviews: objects that are answered and not stored, such as SelfSubjectAccessReview.

Every user may do everything.
"""

from typing import Any, Final

from ocf.embedded.api.status_errors import bad_request
from ocf.embedded.api.users import ADMINISTRATOR, ADMINISTRATOR_TOKEN, User
from ocf.embedded.registry.registry import Registry
from ocf.objects import Manifest

__all__ = ["with_status"]

_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def with_status(kind: str, review: Manifest, registry: Registry, user: User) -> Manifest:
    """Return a review with its result as status.

    Args:
        kind: The kind of the review.
        review: The review; it is not changed.
        registry: The registry of the server, which knows the tokens that it has issued.
        user: The user of the request.

    Returns:
        The review with its status.

    Raises:
        BadRequestError: If a TokenReview has no token.
    """
    return {**review, "metadata": review.get("metadata") or {}, "status": _status(kind, review, registry, user)}


def _status(kind: str, review: Manifest, registry: Registry, user: User) -> dict[str, Any]:
    if kind == "SelfSubjectReview":
        return {"userInfo": user.info()}
    if kind == "TokenReview":
        return _token_status(review.get("spec"), registry)
    return dict(_RULES) if kind == "SelfSubjectRulesReview" else {"allowed": True}


def _token_status(spec: Any, registry: Registry) -> dict[str, Any]:
    wanted = spec if isinstance(spec, dict) else {}
    token, audiences = wanted.get("token"), wanted.get("audiences")
    if not isinstance(token, str) or not token:
        raise bad_request("token is required for TokenReview in authentication")
    if token == ADMINISTRATOR_TOKEN:
        return {"authenticated": True, "user": ADMINISTRATOR.info()}
    from ocf.embedded.registry.service_account_tokens import DEFAULT_AUDIENCES, TokenError, authenticate

    named = tuple(map(str, audiences)) if isinstance(audiences, list) else ()
    try:
        user, shared = authenticate(registry, token, named or DEFAULT_AUDIENCES)
    except TokenError as error:
        return {"user": {}, "error": str(error)}
    return {"authenticated": True, "user": user.info(), "audiences": shared}
