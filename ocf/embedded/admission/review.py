"""What an admission webhook is asked, and what its answer means.

Pure: AdmissionReviews in and out, as
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response
has them. What a webhook says wrong is told in the words of a real server.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.embedded.admission.matching import WebhookCall
from ocf.embedded.api.status_errors import invalid
from ocf.embedded.patch.json_patch import PatchError, json_patch
from ocf.embedded.registry.conversion import convert
from ocf.embedded.registry.pending_write import Operation, Review
from ocf.errors import ApiError, FieldProblem, StatusCause, api_error
from ocf.objects import Manifest, get_field
from ocf.schema.builtin import ApiResource

__all__ = [
    "denial",
    "failure",
    "of_its_kind",
    "patched_object",
    "question",
    "refuses_dry_run",
    "response_of",
    "warnings_of",
]

_USER: Final = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
_OPTIONS: Final = {
    Operation.CREATE: "CreateOptions",
    Operation.UPDATE: "UpdateOptions",
    Operation.DELETE: "DeleteOptions",
}
_LEAST_REFUSAL: Final = 400


def question(call: WebhookCall, review: Review, uid: str) -> Manifest:
    """Write the AdmissionReview that a webhook is sent.

    Args:
        call: The webhook.
        review: What is about to happen.
        uid: What the answer must repeat.

    Returns:
        The AdmissionReview.
    """
    resource, asked = call.resource, review.resource
    part = review.options.subresource or ""
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(resource, part),
        "resource": _resource(resource),
        **({"subResource": str(part)} if part else {}),
        "requestKind": _kind(asked, part),
        "requestResource": _resource(asked),
        **({"requestSubResource": str(part)} if part else {}),
        **({"name": review.name} if review.name else {}),
        **({"namespace": review.namespace} if review.namespace else {}),
        "operation": str(review.operation),
        "userInfo": dict(_USER),
        "object": _seen(review.object, call, review),
        "oldObject": _seen(review.old, call, review),
        "dryRun": review.options.dry_run,
        "options": _request_options(review),
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _kind(resource: ApiResource, part: str) -> dict[str, str]:
    if part == Subresource.SCALE:
        return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ApiResource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _seen(manifest: Manifest | None, call: WebhookCall, review: Review) -> Manifest | None:
    if manifest is None or review.options.subresource is Subresource.SCALE:
        return manifest
    return convert(manifest, review.resource, call.resource)


def _request_options(review: Review) -> dict[str, Any]:
    options: dict[str, Any] = {"kind": _OPTIONS[review.operation], "apiVersion": "meta.k8s.io/v1"}
    if review.options.dry_run:
        options["dryRun"] = ["All"]
    if review.options.field_manager:
        options["fieldManager"] = review.options.field_manager
    return options


def refuses_dry_run(call: WebhookCall) -> ApiError | None:
    """Return the refusal of a dry run that a webhook with side effects would spoil, if it would."""
    if call.webhook.get("sideEffects") in ("None", "NoneOnDryRun"):
        return None
    message = f'admission webhook "{call.name}" does not support dry run'
    return api_error(message, code=400, reason="BadRequest")


def failure(call: WebhookCall, problem: str) -> ApiError:
    """Return the refusal of a request whose webhook could not be asked."""
    message = f'Internal error occurred: failed calling webhook "{call.name}": {problem}'
    return api_error(message, code=500, reason="InternalError", causes=[StatusCause("", message.partition(": ")[2])])


def response_of(answer: Any, uid: str) -> tuple[Mapping[str, Any], str]:
    """Return the response in an answer, and what is wrong with the answer; empty if nothing is."""
    if not isinstance(answer, dict) or not isinstance(answer.get("response"), dict):
        return {}, "received invalid webhook response: webhook response was absent"
    found = f"{answer.get('apiVersion') or ''}, Kind={answer.get('kind') or ''}"
    if found != "admission.k8s.io/v1, Kind=AdmissionReview":
        expected = "admission.k8s.io/v1, Kind=AdmissionReview"
        return {}, f"received invalid webhook response: expected webhook response of {expected}, got {found}"
    response = answer["response"]
    has_patch, has_type = bool(response.get("patch")), bool(response.get("patchType"))
    if has_patch is not has_type:
        given, missing = ("patch", "patchType") if has_patch else ("patchType", "patch")
        text = f"webhook returned response.{given} but not response.{missing}"
        return {}, f"received invalid webhook response: {text}"
    if response.get("uid") != uid:
        text = f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
        return {}, f"received invalid webhook response: {text}"
    return response, ""


def warnings_of(response: Mapping[str, Any]) -> list[str]:
    """Return the warnings in a response."""
    return [str(text) for text in response.get("warnings") or () if text]


def denial(call: WebhookCall, response: Mapping[str, Any]) -> ApiError | None:
    """Return the refusal that a response asks for; None if it allows the request.

    Args:
        call: The webhook.
        response: Its response.

    Returns:
        An error to be raised, with the webhook's code, reason and causes.
    """
    if response.get("allowed"):
        return None
    status = response.get("status")
    status = status if isinstance(status, dict) else {}
    code = status.get("code")
    explanation = status.get("message") or status.get("reason")
    message = f'admission webhook "{call.name}" denied the request'
    details = status.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    return api_error(
        f"{message}: {explanation}" if explanation else f"{message} without explanation",
        code=code if isinstance(code, int) and code >= _LEAST_REFUSAL else _LEAST_REFUSAL,
        reason=str(status.get("reason") or ""),
        causes=[
            StatusCause(str(cause.get("reason") or ""), str(cause.get("message") or ""), str(cause.get("field") or ""))
            for cause in causes
        ],
    )


def of_its_kind(wanted: Manifest, resource: ApiResource) -> Manifest:
    """Demand that an object is still of its kind after a webhook has changed it.

    Args:
        wanted: The object as the webhook wants it.
        resource: Its kind, in the version that the webhook saw.

    Returns:
        The object; what is built in is of its kind whether or not it says so.

    Raises:
        ApiError: If it says that it is something else, or a custom resource does not say what it is.
    """
    version, kind = str(wanted.get("apiVersion") or ""), str(wanted.get("kind") or "")
    if (version, kind) == (resource.api_version, resource.kind):
        return wanted
    if not resource.custom:
        if version in ("", resource.api_version) and kind in ("", resource.kind):
            return {**wanted, "apiVersion": resource.api_version, "kind": resource.kind}
        raise _internal(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    if not kind:
        raise _internal(f"Object 'Kind' is missing in '{json.dumps(wanted, separators=(',', ':'), sort_keys=True)}'")
    if version != resource.api_version:
        group, _, bare = version.rpartition("/")
        it = f"{group}/{bare}, Kind={kind}"
        text = f'{it} is unstructured and is not suitable for converting to "{resource.api_version}"'
        raise api_error(text, code=500)
    name = str(get_field(wanted, ("metadata", "name")) or "")
    detail = f'Invalid value: "{kind}": must be {resource.kind}'
    raise invalid(f"{kind}.{resource.group}", name, [FieldProblem("kind", detail)])


_SCHEME: Final = "pkg/runtime/scheme.go:111"


def _internal(problem: str) -> ApiError:
    causes = [StatusCause("", problem)]
    return api_error(f"Internal error occurred: {problem}", code=500, reason="InternalError", causes=causes)


def patched_object(manifest: Manifest, response: Mapping[str, Any]) -> Manifest:
    """Apply the patch in a response.

    Args:
        manifest: The object as the webhook saw it; it is not changed.
        response: The response of a mutating webhook.

    Returns:
        The object as the webhook wants it; the given one if it wants nothing.

    Raises:
        ValueError: If the patch is none, or cannot be applied.
    """
    if not response.get("patch"):
        return manifest
    if response.get("patchType") != "JSONPatch":
        raise ValueError(f'webhook response.patchType is "{response.get("patchType") or ""}", expected "JSONPatch"')
    try:
        operations = json.loads(base64.b64decode(response["patch"]))
        out = json_patch(manifest, operations if isinstance(operations, list) else [operations])
    except (binascii.Error, ValueError, TypeError, PatchError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(out, dict):
        raise ValueError("the patch does not leave an object")  # noqa: TRY004 (it is the webhook's data)
    return out
