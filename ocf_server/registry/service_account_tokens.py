"""Tokens of service accounts: issued by TokenRequests, read by TokenReviews and requests.

Source: pkg/registry/core/serviceaccount/storage/token.go and pkg/serviceaccount of Kubernetes 1.36. A token has the
claims of a real one, but is signed with HMAC by a key that only this server has, so there are no public keys.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from ocf.errors import ApiError, FieldProblem
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.timestamps import format_time
from ocf.schema.builtin import ApiResource, EmptyValue, Field, ListType, Scalar, StructType, Type, struct
from ocf_server.api.status_errors import bad_request, invalid, stale
from ocf_server.api.users import User
from ocf_server.api.write_options import WriteOptions
from ocf_server.codec.decoding import DecodeError, decode
from ocf_server.managedfields.field_manager import UPDATE, ManagerIdentifier, updated, write_entries
from ocf_server.registry.pending_write import PendingWrite
from ocf_server.registry.registry import Registry

__all__ = ["DEFAULT_AUDIENCES", "TokenError", "authenticate", "is_issued", "issue"]

ISSUER: Final = "https://kubernetes.default.svc"
DEFAULT_AUDIENCES: Final = (ISSUER,)
"""Audiences of the API server itself."""

_VERSION: Final = "authentication.k8s.io/v1"
_KIND: Final = "TokenRequest.authentication.k8s.io"
# Bounds of ValidateTokenRequest, and the default of the API.
_SHORTEST, _LONGEST, _DEFAULT = 600, 1 << 32, 3600
# WarnOnlyBoundTokenExpirationSeconds and ExpirationExtensionSeconds: this odd period marks the tokens that are injected
# into pods.
_EXTENDED_FROM, _EXTENDED_TO = 3607, 365 * 24 * 3600
_BOUND: Final = ("Pod", "Secret", "Node")
_HEADER: Final = {"alg": "HS256", "kid": "ocf"}
_PREFIX: Final = "authentication.kubernetes.io"

Json = dict[str, Any]


class TokenError(ValueError):
    """A token that does not authenticate its bearer; the message contains the reason."""


def issue(
    registry: Registry, _resource: ApiResource, key: ObjectKey, sent: Manifest, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Issue a token for a service account.

    Args:
        sent: The TokenRequest; it is not changed.

    Returns:
        The TokenRequest with the token in its status.

    Raises:
        ApiError: If the request is invalid, or the service account or the object that the token is bound to is missing.
    """
    yield from ()
    sent = _typed(sent)
    account = _found(registry, "v1", "ServiceAccount", key.name, key.namespace)
    spec = _spec(sent["spec"])
    metadata = _metadata(registry, sent["metadata"], account)
    metadata["managedFields"] = _managed(registry, _given(spec, sent["spec"]), options)
    bound = _bound(registry, spec["boundObjectRef"], key)
    claims = _claims(registry, account, spec, bound)
    expires = registry.now() + timedelta(seconds=spec["expirationSeconds"])
    status = {"token": _signed(claims, registry.token_key()), "expirationTimestamp": format_time(expires)}
    return {"kind": "TokenRequest", "apiVersion": _VERSION, "metadata": metadata, "spec": spec, "status": status}


def _field(kind: Type) -> Field:
    return Field(kind, EmptyValue.DROP_EMPTY)


_REFERENCE_TYPE: Final = StructType(
    "BoundObjectReference", fields={name: _field(Scalar.TEXT) for name in ("kind", "apiVersion", "name", "uid")}
)
_SPEC_TYPE: Final = StructType(
    "TokenRequestSpec",
    fields={
        "audiences": _field(ListType(Scalar.TEXT, None)),
        "expirationSeconds": _field(Scalar.INT64),
        "boundObjectRef": _field(_REFERENCE_TYPE),
    },
)


def _request_type() -> StructType:
    head = {name: _field(Scalar.TEXT) for name in ("apiVersion", "kind")}
    metadata = _field(struct("meta.v1.ObjectMeta"))
    return StructType("TokenRequest", fields={**head, "metadata": metadata, "spec": _field(_SPEC_TYPE)})


def _typed(sent: Manifest) -> Manifest:
    """Return a TokenRequest as the API server decodes it."""
    try:
        found = decode(sent, _request_type())
    except DecodeError as error:
        text = f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {error}'
        raise bad_request(text) from error
    return {**found, "metadata": found.get("metadata") or {}, "spec": found.get("spec") or {}}


def _given(spec: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """Return the fields of a spec that the request owns: those that it sends, and the default of the expiration."""
    return {name: value for name, value in spec.items() if name in sent or name == "expirationSeconds"}


def _managed(registry: Registry, owned: Mapping[str, Any], options: WriteOptions) -> list[Json]:
    manager = ManagerIdentifier.of(options.field_manager, UPDATE, _VERSION, options.subresource or "")
    found = updated(
        {"spec": {"boundObjectRef": {}}},
        {"spec": dict(owned)},
        _request_type(),
        {},
        manager=manager,
        api_version=_VERSION,
        ignored={},
        now=registry.timestamp(),
    )
    return write_entries(found.items())


def _found(registry: Registry, api_version: str, kind: str, name: str, namespace: str) -> Manifest:
    return registry.find(registry.resource(api_version, kind), ObjectKey(api_version, kind, name, namespace))


def _metadata(registry: Registry, sent: Mapping[str, Any], account: Manifest) -> Json:
    known = account["metadata"]
    uid = sent.get("uid") or known["uid"]
    if uid != known["uid"]:
        problem = f"the UID in the token request ({uid}) does not match the UID of the service account ({known['uid']})"
        raise stale(_KIND, known["name"], problem)
    named = {"name": known["name"], "namespace": known["namespace"], "uid": uid}
    return {**sent, **named, "creationTimestamp": registry.timestamp()}


def _spec(sent: Mapping[str, Any]) -> Json:
    seconds = _DEFAULT if sent.get("expirationSeconds") is None else sent["expirationSeconds"]
    limit = "less than 10 minutes" if seconds < _SHORTEST else "larger than 2^32 seconds" if seconds > _LONGEST else ""
    if limit:
        detail = f"Invalid value: {seconds}: may not specify a duration {limit}"
        raise invalid(_KIND, "", [FieldProblem("spec.expirationSeconds", detail)])
    audiences = list(sent.get("audiences") or DEFAULT_AUDIENCES)
    return {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": sent.get("boundObjectRef")}


def _bound(registry: Registry, reference: Mapping[str, Any] | None, account: ObjectKey) -> Manifest | None:
    """Return the object that a token is bound to; None if there is none."""
    if reference is None:
        return None
    group, version = split_api_version(str(reference.get("apiVersion") or ""))
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    if group or kind not in _BOUND:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    bound = _found(registry, "v1", kind, name, "" if kind == "Node" else account.namespace)
    if kind == "Pod" and bound["spec"].get("serviceAccountName") != account.name:
        problem = "to pod running with different serviceaccount name."
        raise bad_request(f'cannot bind token for serviceaccount "{account.name}" {problem}')
    uid = reference.get("uid")
    if uid and uid != bound["metadata"]["uid"]:
        guess = "The object might have been deleted and then recreated"
        problem = f"the UID in the bound object reference ({uid}) does not match the UID in record. {guess}"
        raise stale(kind, name, problem)
    return bound


def _claims(registry: Registry, account: Manifest, spec: Mapping[str, Any], bound: Manifest | None) -> Json:
    now, seconds = int(registry.now().timestamp()), spec["expirationSeconds"]
    name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
    about: Json = {"namespace": namespace, "serviceaccount": _reference(account)}
    if bound is not None:
        about[bound["kind"].lower()] = _reference(bound)
        node = bound["spec"].get("nodeName") if bound["kind"] == "Pod" else None
        if node:
            found = registry.store.get(("", "Node"), ("", node))
            about["node"] = _reference(found) if found else {"name": node}
        # A pod may use such a token for a year, because older clients do not read it again.
        if bound["kind"] == "Pod" and seconds == _EXTENDED_FROM and spec["audiences"] == [*DEFAULT_AUDIENCES]:
            about["warnafter"], seconds = now + seconds, _EXTENDED_TO
    times = {"iat": now, "nbf": now, "exp": now + seconds}
    subject = f"system:serviceaccount:{namespace}:{name}"
    identity = {"iss": ISSUER, "sub": subject, "aud": spec["audiences"], "jti": registry.new_uid()}
    return {**identity, **times, "kubernetes.io": about}


def _reference(manifest: Manifest) -> Json:
    return {"name": manifest["metadata"]["name"], "uid": manifest["metadata"]["uid"]}


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _decoded(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _signature(text: str, key: bytes) -> str:
    return _encoded(hmac.digest(key, text.encode(), hashlib.sha256))


def _signed(claims: Mapping[str, Any], key: bytes) -> str:
    text = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (_HEADER, claims))
    return f"{text}.{_signature(text, key)}"


def _unsigned(token: str) -> Json | None:
    """Return the claims of a token, without a check of its signature; None if it is not one of this issuer."""
    parts = token.split(".")
    try:
        claims = _decoded(parts[1]) if len(parts) == len(("header", "claims", "signature")) else None
    except (ValueError, binascii.Error):
        return None
    return claims if isinstance(claims, dict) and claims.get("iss") == ISSUER else None


def is_issued(token: str) -> bool:
    """Return whether a token says that it is one of this server; only `authenticate` checks that."""
    return _unsigned(token) is not None


def authenticate(registry: Registry, token: str, audiences: tuple[str, ...] = ()) -> tuple[User, list[str]]:
    """Return the user of a token.

    Args:
        audiences: The audiences of the reader; empty for those of the API server.

    Returns:
        The user, and those audiences that the token is for.

    Raises:
        TokenError: If the server has not issued the token, it has expired, is for other audiences, or its service
            account or the object that it is bound to is gone.
    """
    claims = _unsigned(token)
    text, _, signature = token.rpartition(".")
    if claims is None:
        raise TokenError("invalid bearer token")
    # In constant time, as for any signature.
    if not hmac.compare_digest(signature.encode(), _signature(text, registry.token_key()).encode()):
        raise TokenError("[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]")
    if registry.now().timestamp() >= claims["exp"]:
        raise TokenError("[invalid bearer token, service account token has expired]")
    wanted = audiences or DEFAULT_AUDIENCES
    shared = [audience for audience in wanted if audience in claims["aud"]]
    if not shared:
        listed = [f"[{' '.join(map(json.dumps, names))}]" for names in (claims["aud"], wanted)]
        problem = f"token audiences {listed[0]} is invalid for the target audiences {listed[1]}"
        raise TokenError(f"[invalid bearer token, {problem}]")
    _require_present(registry, claims["kubernetes.io"])
    return _user(claims), shared


def _require_present(registry: Registry, about: Mapping[str, Any]) -> None:
    namespace = about["namespace"]
    kinds = {"serviceaccount": "ServiceAccount", **{kind.lower(): kind for kind in _BOUND}}
    for name, kind in kinds.items():
        # The node of a pod is only informative.
        if name not in about or (name == "node" and "pod" in about):
            continue
        wanted = about[name]
        try:
            live = _found(registry, "v1", kind, wanted["name"], "" if kind == "Node" else namespace)
        except ApiError as error:
            raise TokenError(f"[invalid bearer token, {error.message}]") from error
        if live["metadata"]["uid"] != wanted["uid"]:
            what = f"{name} UID ({live['metadata']['uid']}) does not match claim ({wanted['uid']})"
            raise TokenError(f"[invalid bearer token, {what}]")


def _user(claims: Mapping[str, Any]) -> User:
    about = claims["kubernetes.io"]
    namespace = about["namespace"]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    extra = {f"{_PREFIX}/credential-id": (f"JTI={claims['jti']}",)}
    for name in ("node", "pod"):
        for field, value in about.get(name, {}).items():
            extra[f"{_PREFIX}/{name}-{field}"] = (value,)
    return User(claims["sub"], groups, about["serviceaccount"]["uid"], extra)
