"""Authentication and authorization of HTTP requests: who sends a request, as whom, and whether that is allowed.

Sources: `staging/src/k8s.io/apiserver/pkg/endpoints/{request/requestinfo.go,filters}` of Kubernetes 1.36.

A request of a client certificate of this server, or of a token that it has issued, is that of its user. Any other is
that of the administrator, unless requests are authorized: then an unknown token is refused, and over TLS a request
without credentials is anonymous. Over plain HTTP it is not: kubectl sends no credentials there.
"""

import hashlib
import ssl
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from aiohttp import web
from multidict import MultiMapping

from ocf.cluster.impersonation import Impersonation
from ocf.errors import api_error
from ocf.objects.go_strings import go_quoted
from ocf_server.api.attributes import Attributes
from ocf_server.api.requests import selected_name
from ocf_server.api.status_errors import bad_request
from ocf_server.api.users import ADMINISTRATOR, ADMINISTRATOR_TOKEN, ANONYMOUS, AUTHENTICATED, User, impersonated
from ocf_server.http.request import DeeperPath, GroupPath, Query, ResourcePath, VersionPath, is_set
from ocf_server.registry.impersonation import authorize
from ocf_server.registry.registry import Registry

__all__ = ["Target", "admitted_user", "attributes_of_request"]

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_OF_COLLECTIONS: Final = {"get": "list", "delete": "deletecollection"}

Target: TypeAlias = GroupPath | VersionPath | ResourcePath | DeeperPath | None
"""A parsed path."""


def admitted_user(registry: Registry, request: web.Request, target: Target) -> User:
    """Return the user of a request, which may be one that its sender acts as.

    Args:
        target: The parsed path of the request.

    Raises:
        ApiError: If the credentials are not valid (401), the headers of impersonation are incomplete (400), or the
            request is not allowed (403).
    """
    sender = _authenticated(registry, request)
    user = _acting_as(request.headers)
    if registry.rbac is not None:
        attributes = attributes_of_request(request.method, request.rel_url.path, target, request.query)
        authorize(registry.rbac, user or sender, attributes, by=sender)
    return user or sender


def _authenticated(registry: Registry, request: web.Request) -> User:
    user = _of_certificate(request)
    if user is not None:
        return user
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    is_token = scheme.lower() == "bearer"
    # Only a JWT, which has points, can be a token that this server has issued.
    if is_token and "." in token:
        from ocf_server.registry.service_account_tokens import TokenError, authenticate, is_issued

        if is_issued(token):
            try:
                return authenticate(registry, token)[0]
            except TokenError as error:
                raise _unauthorized() from error
    if registry.rbac is None or token == ADMINISTRATOR_TOKEN:
        return ADMINISTRATOR
    if is_token:
        raise _unauthorized()
    return ANONYMOUS if request.secure else ADMINISTRATOR


def _unauthorized() -> Exception:
    return api_error("Unauthorized", code=401, reason="Unauthorized")


def _of_certificate(request: web.Request) -> User | None:
    """Return the user of a client certificate: its common name, in the groups of its organizations."""
    connection: ssl.SSLObject | None = request.get_extra_info("ssl_object")
    found = connection.getpeercert() if connection is not None else None
    if connection is None or not found:
        return None
    # Each relative name has one attribute.
    subject: list[Any] = [part[0] for part in found.get("subject", ())]
    names = [value for name, value in subject if name == "commonName"]
    groups = [value for name, value in subject if name == "organizationName"]
    digest = hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}
    return User(names[0] if names else "", (*groups, AUTHENTICATED), "", extra)


def _acting_as(headers: MultiMapping[str]) -> User | None:
    """Return the user in the headers of impersonation; None if there are none.

    Raises:
        BadRequestError: If they name no user.
    """
    if not any(name[: len(_PREFIX)].lower() == _PREFIX for name in headers):
        return None
    user, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = headers.getall("Impersonate-Group", [])
    names = {name.lower() for name in headers if name.lower().startswith(_EXTRA)} - {_EXTRA}
    extra = {unquote(name.removeprefix(_EXTRA)): headers.getall(name) for name in sorted(names)}
    if user:
        return impersonated(Impersonation(user, uid, tuple(groups), {name: tuple(extra[name]) for name in extra}))
    if not (groups or uid or extra):
        return None
    shown = f'&user.DefaultInfo{{Name:"", UID:{go_quoted(uid)}, Groups:{_go_texts(groups)}, Extra:{_go_map(extra)}}}'
    raise bad_request(f"requested {shown} without impersonating a user name")


def _go_texts(values: list[str]) -> str:
    return f"[]string{{{', '.join(map(go_quoted, values))}}}" if values else "[]string(nil)"


def _go_map(values: Mapping[str, list[str]]) -> str:
    listed = ", ".join(f"{go_quoted(name)}:{_go_texts(found)}" for name, found in values.items())
    return f"map[string][]string{{{listed}}}" if values else "map[string][]string(nil)"


def attributes_of_request(method: str, path: str, target: Target, query: Query) -> Attributes:
    """Return what a request is authorized by; that of an unknown resource is, too.

    Args:
        path: The path, decoded.
        target: The parsed path.

    Example:
        >>> from ocf_server.http.request import parse_path
        >>> path = "/apis/apps/v1/namespaces/shop/deployments/web/scale"
        >>> found = attributes_of_request("PUT", path, parse_path(path), {})
        >>> found.verb, found.full_resource, found.name
        ('update', 'deployments/scale', 'web')
    """
    if not isinstance(target, ResourcePath):
        return Attributes(method.lower(), path=path)
    verb, name = _VERBS.get(method, ""), target.name
    if not name:
        verb = _OF_COLLECTIONS.get(verb, verb)
    if target.watch or (verb == "list" and is_set(query, "watch")):
        verb = "watch"
    if verb in ("list", "watch"):
        name = name or selected_name(query.get("fieldSelector", ""))
    namespace = target.namespace
    if (target.group, target.plural) == ("", "namespaces"):
        # The object is in itself, so that a Role in a namespace can be about that.
        namespace = target.name
    return Attributes(verb, target.group, target.plural, target.subresource, namespace, name)
