"""One privilege: a verb on a resource."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PolicyRule"]


@dataclass(frozen=True, slots=True, order=True)
class PolicyRule:
    """One verb on one resource.

    Args:
        group: Group of the resource; empty for the core group.
        resource: Name of the resource, with its subresource: `shops/status`.
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, or any other verb.
        name: Name of the only allowed object; empty for all.
        namespaced: Whether the resource is namespaced.
        namespace: The only allowed namespace; empty for all namespaces of the operator.
    """

    group: str
    resource: str
    verb: str
    name: str = ""
    namespaced: bool = True
    namespace: str = ""
