"""Questions that are answered and not kept: may I, who am I.

There is one user here, and it may do everything.
"""

from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["review"]

_USER: Final = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(kind: str, question: Manifest) -> Manifest:
    """Answer a question.

    Args:
        kind: The kind of the question.
        question: The question; it is not changed.

    Returns:
        The question with its answer as status.

    Example:
        >>> review("SelfSubjectAccessReview", {"spec": {}})["status"]
        {'allowed': True}
    """
    return {**question, "metadata": question.get("metadata") or {}, "status": _status(kind)}


def _status(kind: str) -> dict[str, Any]:
    if kind == "SelfSubjectReview":
        return {"userInfo": _USER}
    if kind == "TokenReview":
        return {"authenticated": True, "user": _USER}
    return dict(_RULES) if kind == "SelfSubjectRulesReview" else {"allowed": True}
