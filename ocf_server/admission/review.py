"""AdmissionReviews: requests to admission webhooks, and the reading of their responses.

The format is described in
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response.
Errors about invalid responses have the texts of a real API server. No I/O is done here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.errors import ApiError, FieldProblem, StatusCause, api_error
from ocf.objects import Manifest
from ocf.objects.data_validation import decode_base64
from ocf.objects.json_syntax import json_problem
from ocf.objects.paths import get_field
from ocf.schema.builtin import ApiResource
from ocf_server.admission.matching import WebhookCall, request_namespace
from ocf_server.api.attributes import Attributes
from ocf_server.api.numbers import encoded_numbers
from ocf_server.api.status_errors import invalid
from ocf_server.patch.json_patch import PatchError, json_patch
from ocf_server.registry.pending_write import Review, WriteOperation
from ocf_server.registry.registry import Registry

__all__ = [
    "admission_request",
    "admission_review",
    "call_error",
    "converted",
    "denial",
    "dry_run_error",
    "expression_values",
    "is_part",
    "patched_object",
    "read_response",
    "require_kind",
    "warnings_of",
]

_OPTIONS: Final = {
    WriteOperation.CREATE: "CreateOptions",
    WriteOperation.UPDATE: "UpdateOptions",
    WriteOperation.DELETE: "DeleteOptions",
}
_LOWEST_ERROR_CODE: Final = 400


def admission_review(registry: Registry, call: WebhookCall, review: Review, uid: str) -> Manifest:
    """Return the AdmissionReview to send to a webhook.

    Args:
        uid: Identifies the request; the response must repeat it.
    """
    request: dict[str, Any] = {
        "uid": uid,
        **admission_request(call.resource, review),
        "object": converted(registry, review.object, call.resource, review),
        "oldObject": converted(registry, review.old, call.resource, review),
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def expression_values(registry: Registry, resource: ApiResource, review: Review) -> dict[str, Any]:
    """Return the values of `object`, `oldObject`, `request` and the authorizer in expressions.

    Args:
        resource: The kind, in the API version that a rule matched.
    """
    return {
        "object": converted(registry, review.object, resource, review),
        "oldObject": converted(registry, review.old, resource, review),
        "request": admission_request(resource, review),
        **_authorizer(registry, review),
    }


def _authorizer(registry: Registry, review: Review) -> Mapping[str, Any]:
    """Return the variables of the authorizer; none without authorization."""
    if registry.rbac is None:
        return {}
    # Imported here, because most clusters have no expressions.
    from ocf_server.cel.authorizer import authorizer_values

    requested, subresource = review.resource, str(review.options.subresource or "")
    home, name = request_namespace(review), review.name
    attributes = Attributes("", requested.group, requested.plural, subresource, home, name)
    return authorizer_values(registry.rbac.authorize, review.options.user, attributes)


def admission_request(resource: ApiResource, review: Review) -> dict[str, Any]:
    """Return an admission request without the objects, as expressions see it.

    Args:
        resource: The kind, in the API version that a rule matched.
    """
    requested, subresource = review.resource, review.options.subresource
    namespace = request_namespace(review)
    return {
        "kind": _kind(resource, subresource),
        "resource": _resource(resource),
        **({"subResource": str(subresource)} if subresource else {}),
        "requestKind": _kind(requested, subresource),
        "requestResource": _resource(requested),
        **({"requestSubResource": str(subresource)} if subresource else {}),
        **({"name": review.name} if review.name else {}),
        **({"namespace": namespace} if namespace else {}),
        "operation": str(review.operation),
        "userInfo": review.options.user.info(),
        "dryRun": review.options.dry_run,
        "options": _request_options(review),
    }


_PARTS: Final = {
    Subresource.SCALE: {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    Subresource.EVICTION: {"group": "policy", "version": "v1", "kind": "Eviction"},
    Subresource.BINDING: {"group": "", "version": "v1", "kind": "Binding"},
}


def _kind(resource: ApiResource, subresource: Subresource | None) -> Mapping[str, str]:
    if subresource is not None and subresource in _PARTS:
        return _PARTS[subresource]
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ApiResource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def converted(registry: Registry, manifest: Manifest | None, resource: ApiResource, review: Review) -> Manifest | None:
    """Return the object of a write in the API version that a rule matched; objects of subresources stay as they are."""
    if manifest is None or review.options.subresource in _PARTS:
        return manifest
    return registry.convert(encoded_numbers(manifest) if resource.custom else manifest, review.resource, resource)


def is_part(review: Review) -> bool:
    """Return whether a request sends a part of the object or an action on it, such as its scale."""
    subresource = review.options.subresource
    return subresource is not None and not subresource.shows_object


def _request_options(review: Review) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": _OPTIONS[review.operation], "apiVersion": "meta.k8s.io/v1"}
    if review.options.dry_run:
        options["dryRun"] = ["All"]
    if review.options.field_manager:
        options["fieldManager"] = review.options.field_manager
    return options


def dry_run_error(call: WebhookCall) -> ApiError | None:
    """Return the error of a dry run that matches a webhook with side effects; None if the webhook has none."""
    if call.webhook.get("sideEffects") in ("None", "NoneOnDryRun"):
        return None
    message = f'admission webhook "{call.name}" does not support dry run'
    return api_error(message, code=400, reason="BadRequest")


def call_error(call: WebhookCall, problem: str) -> ApiError:
    """Return the error of a request whose webhook could not be called."""
    message = f'Internal error occurred: failed calling webhook "{call.name}": {problem}'
    return api_error(message, code=500, reason="InternalError", causes=[StatusCause("", message.partition(": ")[2])])


def read_response(body: Any, uid: str, *, mutates: bool) -> tuple[Mapping[str, Any], str]:
    """Return the response in the body that a webhook sent, and what is wrong with it; empty if it is valid.

    Args:
        mutates: Whether the webhook may return a patch.
    """
    problem = _problem(body, uid, mutates=mutates)
    return ({}, f"received invalid webhook response: {problem}") if problem else (body["response"], "")


def _problem(body: Any, uid: str, *, mutates: bool) -> str:
    """Return the first problem of a response, in the order of VerifyAdmissionResponse."""
    if not isinstance(body, dict) or not isinstance(body.get("response"), dict):
        return "webhook response was absent"
    response = body["response"]
    if response.get("uid") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
    found = f"{body.get('apiVersion') or ''}, Kind={body.get('kind') or ''}"
    expected = "admission.k8s.io/v1, Kind=AdmissionReview"
    if found != expected:
        return f"expected webhook response of {expected}, got {found}"
    given = [name for name in ("patch", "patchType") if response.get(name)]
    if given and not mutates:
        return f"validating webhook may not return response.{given[0]}"
    if len(given) == 1:
        missing = "patchType" if given == ["patch"] else "patch"
        return f"webhook returned response.{given[0]} but not response.{missing}"
    return ""


def warnings_of(response: Mapping[str, Any]) -> list[str]:
    """Return the warnings in a response."""
    return [str(text) for text in response.get("warnings") or () if text]


def denial(call: WebhookCall, response: Mapping[str, Any]) -> ApiError | None:
    """Return the error for a response that denies the request; None if it allows the request.

    Returns:
        The error, with the code, reason and details of the webhook.
    """
    if response.get("allowed"):
        return None
    status = response.get("status")
    status = status if isinstance(status, dict) else {}
    code = status.get("code")
    explanation = status.get("message") or status.get("reason")
    message = f'admission webhook "{call.name}" denied the request'
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    return api_error(
        f"{message}: {explanation}" if explanation else f"{message} without explanation",
        # A denial must not look like a success, whatever code the webhook sends.
        code=code if isinstance(code, int) and code >= _LOWEST_ERROR_CODE else _LOWEST_ERROR_CODE,
        reason=str(status.get("reason") or ""),
        causes=[
            StatusCause(str(cause.get("reason") or ""), str(cause.get("message") or ""), str(cause.get("field") or ""))
            for cause in details.get("causes") or ()
        ],
        retry_after=details.get("retryAfterSeconds"),
        subject={name: str(details[name]) for name in ("name", "group", "kind", "uid") if details.get(name)},
    )


def require_kind(wanted: Manifest, resource: ApiResource) -> Manifest:
    """Check that a patch of a webhook has not changed the kind of the object.

    Args:
        resource: Its kind, in the API version that the webhook got.

    Returns:
        The object; `apiVersion` and `kind` of a built-in object are restored if the patch removed them.

    Raises:
        ApiError: If the object has another kind or version, or a custom resource has no kind.
    """
    version, kind = str(wanted.get("apiVersion") or ""), str(wanted.get("kind") or "")
    if (version, kind) == (resource.api_version, resource.kind):
        return wanted
    # A built-in object is decoded into a Go type that knows its kind, so the patch may drop it.
    if not resource.custom:
        if version in ("", resource.api_version) and kind in ("", resource.kind):
            return {**wanted, "apiVersion": resource.api_version, "kind": resource.kind}
        raise _internal(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    if not kind:
        raise _internal(f"Object 'Kind' is missing in '{json.dumps(wanted, separators=(',', ':'), sort_keys=True)}'")
    if version != resource.api_version:
        group, _, number = version.rpartition("/")
        gvk = f"{group}/{number}, Kind={kind}"
        text = f'{gvk} is unstructured and is not suitable for converting to "{resource.api_version}"'
        raise api_error(text, code=500)
    name = str(get_field(wanted, ("metadata", "name")) or "")
    detail = f'Invalid value: "{kind}": must be {resource.kind}'
    raise invalid(f"{kind}.{resource.group}", name, [FieldProblem("kind", detail)])


# The name of the API server's scheme, which its errors contain: the place in its source that makes it.
_SCHEME: Final = "pkg/runtime/scheme.go:111"


def _internal(problem: str) -> ApiError:
    causes = [StatusCause("", problem)]
    return api_error(f"Internal error occurred: {problem}", code=500, reason="InternalError", causes=causes)


def patched_object(manifest: Manifest, response: Mapping[str, Any]) -> Manifest:
    """Apply the patch in a response.

    Args:
        manifest: The object that the webhook got; it is not changed.

    Returns:
        The patched object; the given one if the response has no patch.

    Raises:
        ValueError: If the patch is invalid or cannot be applied.
    """
    if not response.get("patch"):
        return manifest
    if response.get("patchType") != "JSONPatch":
        raise ValueError(f'webhook response.patchType is "{response.get("patchType") or ""}", expected "JSONPatch"')
    patch = decode_base64(response["patch"])
    try:
        operations = json.loads(patch)
        out = json_patch(manifest, operations if isinstance(operations, list) else [operations])
    except RecursionError as error:
        raise ValueError("exceeded max depth") from error
    except PatchError as error:
        raise ValueError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise ValueError(json_problem(patch).message or "a value of the patch cannot be read") from error
    if not isinstance(out, dict):
        raise ValueError("the patch does not leave an object")  # noqa: TRY004 (data of the webhook, not an argument)
    return out
