"""Access reviews: objects that are answered and not stored, such as SelfSubjectAccessReview.

The server has one user, who may do everything.
"""

from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["with_status"]

_USER: Final = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def with_status(kind: str, review: Manifest) -> Manifest:
    """Return a review with its result as status.

    Args:
        kind: The kind of the review.
        review: The review; it is not changed.

    Returns:
        The review with its status.

    Example:
        >>> with_status("SelfSubjectAccessReview", {"spec": {}})["status"]
        {'allowed': True}
    """
    return {**review, "metadata": review.get("metadata") or {}, "status": _status(kind)}


def _status(kind: str) -> dict[str, Any]:
    if kind == "SelfSubjectReview":
        return {"userInfo": _USER}
    if kind == "TokenReview":
        return {"authenticated": True, "user": _USER}
    return dict(_RULES) if kind == "SelfSubjectRulesReview" else {"allowed": True}
