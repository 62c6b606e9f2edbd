"""Access reviews: objects that are answered and not stored, such as SelfSubjectAccessReview.

Without authorization every user may do everything.
"""

from collections.abc import Iterable
from typing import Any, Final

from ocf.errors import ApiError, FieldProblem
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.attributes import Attributes
from ocf_server.api.status_errors import bad_request, invalid, method_not_allowed
from ocf_server.api.users import ADMINISTRATOR, ADMINISTRATOR_TOKEN, User
from ocf_server.api.write_options import WriteOptions
from ocf_server.codec.decoding import DecodeError, decode, unknown_fields
from ocf_server.registry.rbac import Rule
from ocf_server.registry.registry import Registry
from ocf_server.registry.request_checks import report_unknown
from ocf_server.validation.reviews import REVIEW_RULES

__all__ = ["answer", "is_review"]

_RULES: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def is_review(resource: ApiResource) -> bool:
    """Return whether the objects of a kind are answered and not stored."""
    return resource.verbs == {"create"}


def answer(registry: Registry, resource: ApiResource, sent: Manifest, options: WriteOptions) -> Manifest:
    """Return a review with its result as status.

    Args:
        registry: The registry of the server, which knows the tokens that it has issued.
        sent: The review; it is not changed.
        options: Options of the request, with its user.

    Raises:
        BadRequestError: If a value is of a wrong JSON type, a field is unknown and the field validation is strict, a
            TokenReview has no token, or a SelfSubjectRulesReview no namespace.
        InvalidError: If the review is invalid.
    """
    review = _read(resource, sent, options)
    if resource.namespaced and not review["metadata"].get("namespace"):
        raise method_not_allowed()
    if resource.kind == "SelfSubjectReview":
        # Only this one is answered with the time (Create of selfsubjectreview).
        review["metadata"]["creationTimestamp"] = registry.timestamp()
    return {**review, "status": _status(resource.kind, review, registry, options.user)}


def _read(kind: ApiResource, sent: Manifest, options: WriteOptions) -> Manifest:

    def unreadable(problem: str) -> ApiError:
        return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')

    try:
        review = decode(sent, kind.type)
    except DecodeError as error:
        raise unreadable(str(error)) from error
    # As the create handler does for cluster-scoped kinds (EnsureObjectNamespaceMatchesRequestNamespace).
    if not kind.namespaced:
        review["metadata"].pop("namespace", None)
    report_unknown(unknown_fields(sent, kind.type), options, rejected=unreadable)
    errors = REVIEW_RULES[kind.kind](review) if kind.kind in REVIEW_RULES else ()
    if problems := [FieldProblem(error.path, error.message) for error in errors]:
        # The API server leaves the kind and the name out.
        raise invalid(f".{kind.group}", "", problems)
    return review


def _status(kind: str, review: Manifest, registry: Registry, user: User) -> dict[str, Any]:
    if kind == "SelfSubjectReview":
        return {"userInfo": user.info()}
    if kind == "TokenReview":
        return _token_status(review.get("spec") or {}, registry)
    spec = review.get("spec") or {}
    if kind == "SelfSubjectRulesReview":
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        return dict(_RULES) if registry.rbac is None else _rules(registry.rbac.rules_of(user, spec["namespace"]))
    if registry.rbac is None:
        return {"allowed": True}
    extra = {name: tuple(values) for name, values in (spec.get("extra") or {}).items()}
    subject = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
    asked = user if kind == "SelfSubjectAccessReview" else subject
    decision = registry.rbac.authorize(asked, _attributes(spec))
    return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _attributes(spec: Manifest) -> Attributes:
    if found := spec.get("nonResourceAttributes"):
        return Attributes(found.get("verb", ""), path=found.get("path", ""))
    found = spec.get("resourceAttributes") or {}
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{field: found.get(field, "") for field in fields})


def _rules(found: Iterable[Rule]) -> dict[str, Any]:
    """Return rules as the status of a SelfSubjectRulesReview."""
    listed: dict[str, list[Rule]] = {"resourceRules": [], "nonResourceRules": []}
    for rule in found:
        listed["nonResourceRules" if rule.get("nonResourceURLs") else "resourceRules"].append(rule)
    return {**listed, "incomplete": False}


def _token_status(spec: Manifest, registry: Registry) -> dict[str, Any]:
    token, audiences = spec.get("token", ""), spec.get("audiences") or ()
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    if token == ADMINISTRATOR_TOKEN:
        return {"authenticated": True, "user": ADMINISTRATOR.info()}
    from ocf_server.registry.service_account_tokens import DEFAULT_AUDIENCES, TokenError, authenticate

    try:
        user, shared = authenticate(registry, token, tuple(audiences) or DEFAULT_AUDIENCES)
    except TokenError as error:
        return {"user": {}, "error": str(error)}
    return {"authenticated": True, "user": user.info(), "audiences": shared}
