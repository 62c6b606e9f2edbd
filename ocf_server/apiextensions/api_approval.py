"""Approval of definitions in the groups of Kubernetes: a rule of validation, and a condition.

Source: `GetAPIApprovalState` in pkg/apihelpers and pkg/controller/apiapproval of k8s.io/apiextensions-apiserver 1.36.
"""

from typing import Final, NamedTuple

from ocf.objects import Manifest
from ocf.objects.go_strings import go_quoted

__all__ = ["ANNOTATION", "Approval", "approval_of"]

ANNOTATION: Final = "api-approved.kubernetes.io"
_DOMAINS: Final = ("k8s.io", "kubernetes.io")
_PROPOSAL: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


class Approval(NamedTuple):
    """What the annotation of a definition says, as its condition reports it.

    Args:
        value: The annotation; empty without one.
    """

    reason: str
    message: str
    value: str

    @property
    def status(self) -> str:
        """Status of the condition."""
        return "True" if self.reason == "ApprovedAnnotation" else "False"


def approval_of(definition: Manifest) -> Approval | None:
    """Return what the annotation of a definition says; None in a group that needs no approval."""
    group = definition["spec"].get("group") or ""
    if not any(group == domain or group.endswith(f".{domain}") for domain in _DOMAINS):
        return None
    value = (definition["metadata"].get("annotations") or {}).get(ANNOTATION) or ""
    needed = f'protected groups must have approval annotation "{ANNOTATION}"'
    if not value:
        return Approval("MissingAnnotation", f"{needed}, {_PROPOSAL}", value)
    if value.startswith("unapproved"):
        return Approval("UnapprovedAnnotation", f"not approved: {go_quoted(value)}", value)
    # Imported here, because the server starts without CEL.
    from ocf_server.cel.urls import names_host

    if names_host(value):
        return Approval("ApprovedAnnotation", f"approved in {value}", value)
    text = f'{needed} with either a URL or a reason starting with "unapproved", {_PROPOSAL}'
    return Approval("InvalidAnnotation", text, value)
