"""Security contexts of the pods of operators and controllers.

They comply with the Pod Security Standard `restricted`, and the root file system is read-only in addition. Source:
https://kubernetes.io/docs/concepts/security/pod-security-standards/.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["USER", "container_security", "pod_security"]

USER: Final = 65532
"""User and group of the process, as in distroless images."""


def pod_security() -> dict[str, Any]:
    """Return the security context of a pod.

    Example:
        >>> pod_security()["runAsNonRoot"]
        True
    """
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """Return the security context of a container.

    Example:
        >>> container_security()["capabilities"]
        {'drop': ['ALL']}
    """
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
