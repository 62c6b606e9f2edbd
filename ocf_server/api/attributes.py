"""What the API server authorizes: the attributes of a request, and the decision about it.

The texts are those of `forbiddenMessage` in `staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters` of
Kubernetes.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ocf.errors import ApiError, api_error
from ocf_server.api.status_errors import forbidden
from ocf_server.api.users import User

__all__ = ["Attributes", "Authorize", "Decision", "forbidden_error"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a request by which it is authorized.

    Args:
        group: API group of the resource; empty for the core group.
        resource: The resource in the plural; empty for a request that is not about a resource.
        namespace: The namespace; empty for all, and for what is cluster-scoped.
        name: Name of the object; empty for a collection, and for a create.
        path: The path of a request that is not about a resource.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of an authorizer.

    Args:
        reason: Why; empty if there is nothing to say.
    """

    allowed: bool
    reason: str = ""


Authorize: TypeAlias = Callable[[User, Attributes], Decision]
"""Decides whether a user may make a request."""


def forbidden_error(user: User, attributes: Attributes, reason: str = "") -> ApiError:
    """Return the error of a request that is not allowed.

    Args:
        reason: The reason of the decision.
    """
    problem = f"User {json.dumps(user.username)} cannot {attributes.verb}"
    if not attributes.resource:
        text = f"forbidden: {problem} path {json.dumps(attributes.path)}"
        return api_error(f"{text}: {reason}" if reason else text, code=403, reason="Forbidden")
    where = f"in the namespace {json.dumps(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    problem = f'{problem} resource "{attributes.full_resource}" in API group "{attributes.group}" {where}'
    group_resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    return forbidden(group_resource, attributes.name, f"{problem}: {reason}" if reason else problem)
