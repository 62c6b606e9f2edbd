"""Processing of admission reviews: an AdmissionReview with a request in, one with the response out.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response.

Every request gets a response. An internal error rejects the request without the text of the exception, which may
contain data of the object.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar, cast

from ocf.cluster import Cluster
from ocf.component.author_code import is_cancelled
from ocf.errors import ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, copy_json, read_live, write_model
from ocf.objects.field_errors import FieldError, invalid_message
from ocf.objects.json_changes import merge_changes, same_json
from ocf.objects.model_errors import field_errors_of
from ocf.objects.models import validate_live
from ocf.runtime.admission.match import Operation
from ocf.runtime.admission.webhooks import AdmissionRequest, Step, Warn, Webhook
from ocf.runtime.running_function import RunningFunction, name_of, running_function

__all__ = ["completed_review", "json_patch", "rejection", "review"]

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
_API: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


class _WebhookError(Exception):
    """A function of the webhook failed; the text is sent to the client, so it contains no data of the object."""


class _UnreadableError(Exception):
    """The model cannot read an object."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


def review(webhook: Webhook[Any], step: Step, question: Mapping[str, Any]) -> Manifest:
    """Respond to an admission request of an API server.

    Validators that are coroutine functions are not called: they need a cluster. See `completed_review`.

    Updates of an object that is being deleted are always allowed, so that rules added after it was stored cannot
    prevent the removal of its finalizers.

    Args:
        webhook: The webhook of the object's kind.
        step: The requested step.
        question: The AdmissionReview; not changed.

    Returns:
        An AdmissionReview whose response allows the request, changes the object with a JSON patch, or rejects it: with
        422 and a cause for every invalid field of the object, with 400 for an invalid request, and with 500 if one of
        the functions fails.

    Example:
        >>> from ocf.objects.field_errors import FieldError, required
        >>> def named(new: Manifest, old: Manifest | None, operation: Operation) -> list[FieldError]:
        ...     return [] if new["spec"].get("color") else [required("spec.color")]
        >>> webhook: Webhook[Manifest] = Webhook("example.com", "v1", "Shop", "shops", validators=[named])
        >>> kind = {"group": "example.com", "version": "v1", "kind": "Shop"}
        >>> shop = {"kind": "Shop", "metadata": {"name": "corner"}, "spec": {}}
        >>> request = {"uid": "1", "kind": kind, "operation": "CREATE", "name": "corner", "object": shop}
        >>> answer = review(webhook, Step.VALIDATE, {"request": request})
        >>> answer["response"]["status"]["message"]
        'Shop.example.com "corner" is invalid: spec.color: Required value'
    """
    request = question.get("request")
    if not isinstance(request, dict):
        return rejection("", 400, "BadRequest", "the AdmissionReview has no request")
    uid = str(request.get("uid") or "")
    if problem := _request_problem(webhook, request):
        return rejection(uid, 400, "BadRequest", problem)
    try:
        if _is_exempt(webhook, request):
            return _answer(uid, {"allowed": True})
        answer = _default if step is Step.DEFAULT else _validate
        return _answer(uid, answer(webhook, request))
    except _WebhookError as error:
        return rejection(uid, 500, "InternalError", f"Internal error occurred: {webhook.name(step)}: {error}")
    except RecursionError:
        return rejection(uid, 400, "BadRequest", f"{webhook.name(step)}: the object is nested too deeply")


async def completed_review(
    webhook: Webhook[Any], question: Mapping[str, Any], answer: Manifest, cluster: Cluster, running: RunningFunction
) -> Manifest:
    """Call the validators that are coroutine functions for a request that the others accept.

    Args:
        question: The AdmissionReview, as `review` got it.
        answer: The response of `review`.
        running: Shows which of them runs; it keeps the name of one that is cancelled.
    """
    request, response = question.get("request"), answer["response"]
    if not response["allowed"] or not isinstance(request, dict) or _is_exempt(webhook, request):
        return answer
    operation, uid = Operation(request["operation"]), str(response["uid"])
    asked = AdmissionRequest(operation, bool(request.get("dryRun")), cluster)
    warnings: list[str] = [*(response.get("warnings") or ())]
    errors: list[FieldError] = []
    try:
        new = _read(webhook, request["oldObject" if operation is Operation.DELETE else "object"])
        # What cannot be read was warned of already.
        old = None if operation is Operation.CREATE else _stored(webhook, request, [])
        for validator in filter(iscoroutinefunction, webhook.validators):
            running.name = name_of(validator)
            _sort_findings(running.name, await _awaited(validator, new, old, asked), errors, warnings)
    except _WebhookError as error:
        name = webhook.name(Step.VALIDATE)
        return rejection(uid, 500, "InternalError", f"Internal error occurred: {name}: {error}")
    found = _invalid(webhook, request, errors) if errors else {"allowed": True}
    return _answer(uid, {**found, **({"warnings": warnings} if warnings else {})})


async def _awaited(validator: Callable[..., Awaitable[Iterable[Any]]], *arguments: Any) -> list[Any]:
    name = name_of(validator)
    try:
        return list(await validator(*arguments))
    except (Exception, asyncio.CancelledError) as error:
        if is_cancelled(error):
            raise
        raise _author_failure(name, error) from error


def _author_failure(name: str, error: BaseException) -> _WebhookError:
    """Log the error of an author's function; return what the response shows of it."""
    _log.error("%s failed", name, exc_info=error)
    return _WebhookError(f"{name} failed with {_type(error)}, see the operator's log")


def rejection(uid: str, code: int, reason: str, message: str) -> Manifest:
    """Return a response that rejects a request for another reason than its object.

    Args:
        uid: UID of the request; empty if it has none.
    """
    return _answer(uid, _failure(code, reason, message))


def _answer(uid: str, response: Mapping[str, Any]) -> Manifest:
    return {**_API, "response": {"uid": uid, **response}}


def _failure(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"allowed": False, "status": {**status, **({"details": details} if details else {})}}


def _request_problem(webhook: Webhook[Any], request: Mapping[str, Any]) -> str:
    """Return why the webhook cannot process a request; empty if it can."""
    kind = request.get("kind")
    found = tuple(kind.get(part) or "" for part in ("group", "version", "kind")) if isinstance(kind, dict) else ()
    wanted = (webhook.group, webhook.version, webhook.kind)
    if found != wanted or request.get("subResource"):
        seen = " ".join(map(str, filter(None, [*found, request.get("subResource")])))
        return f"this webhook is for {' '.join(filter(None, wanted))}, got {seen or 'no kind'}"
    operation = request.get("operation")
    for name, needed in (("object", ("CREATE", "UPDATE")), ("oldObject", ("UPDATE", "DELETE"))):
        if operation in needed and not isinstance(request.get(name), dict):
            return f"{operation} needs request.{name}, which is not an object"
    return ""


def _is_exempt(webhook: Webhook[Any], request: Mapping[str, Any]) -> bool:
    """Return whether the request skips all defaulters and validators."""
    if request.get("operation") not in list(Operation):
        return True
    if request["operation"] == Operation.DELETE:
        return not webhook.deletes
    metadata = request["object"].get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _default(webhook: Webhook[Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the defaulters; an object that the model cannot read is rejected later, by the validation."""
    if request["operation"] == Operation.DELETE:
        return {"allowed": True}
    given: Manifest = request["object"]
    try:
        model = _read(webhook, given)
    except _UnreadableError:
        return {"allowed": True}
    before = _written(webhook, model)
    after = _written(webhook, reduce(_run_defaulter, webhook.defaulters, model))
    operations = list(json_patch(given, merge_changes(given, before, after)))
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(json.dumps(operations, separators=(",", ":")).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _run_defaulter(model: T, defaulter: Callable[[T], T | None]) -> T:
    made = _call(defaulter, model)
    if made is not None and type(made) is not type(model):
        raise _WebhookError(f"{name_of(defaulter)} must return {_type(model)} or None, got {_type(made)}")
    return model if made is None else made


def _validate(webhook: Webhook[Any], request: Mapping[str, Any]) -> dict[str, Any]:
    operation = Operation(request["operation"])
    warnings: list[str] = []
    try:
        new = _read(webhook, request["oldObject" if operation is Operation.DELETE else "object"])
        old = None if operation is Operation.CREATE else _stored(webhook, request, warnings)
        errors = _errors(webhook, new, old, operation, warnings)
    except _UnreadableError as error:
        errors = list(error.errors)
    response = _invalid(webhook, request, errors) if errors else {"allowed": True}
    return {**response, **({"warnings": warnings} if warnings else {})}


def _stored(webhook: Webhook[T], request: Mapping[str, Any], warnings: list[str]) -> T | None:
    """Read the stored object; if the model cannot read it, warn only, so that an update can fix it."""
    try:
        return _read(webhook, request["oldObject"])
    except _UnreadableError as error:
        fields = ", ".join(finding.path or "the object" for finding in error.errors)
        warnings.append(f"the stored object cannot be read, so its update rules were not checked: {fields}")
        return None


def _errors(webhook: Webhook[T], new: T, old: T | None, operation: Operation, warnings: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for validator in webhook.validators:
        if not iscoroutinefunction(validator):
            _sort_findings(name_of(validator), _call(_all, validator, new, old, operation), errors, warnings)
    return errors


def _sort_findings(name: str, findings: Iterable[Any], errors: list[FieldError], warnings: list[str]) -> None:
    for finding in findings:
        if isinstance(finding, FieldError):
            errors.append(finding)
        elif isinstance(finding, Warn):
            warnings.append(finding.text)
        else:
            raise _WebhookError(f"{name} must return FieldError or Warn, got {_type(finding)}")


def _all(validator: Callable[..., Iterable[Any]], *arguments: Any) -> list[Any]:
    return list(validator(*arguments))


def _invalid(webhook: Webhook[Any], request: Mapping[str, Any], errors: Sequence[FieldError]) -> dict[str, Any]:
    """Return the rejection in the format of Go's `apierrors.NewInvalid`."""
    metadata = (request.get("object") or request.get("oldObject") or {}).get("metadata") or {}
    name = str(request.get("name") or (metadata.get("name") if isinstance(metadata, dict) else "") or "")
    causes = [error.to_cause() for error in errors]
    details = {
        "name": name,
        "group": webhook.group,
        "kind": webhook.kind,
        "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes],
    }
    message = invalid_message(name, errors, kind=webhook.kind, group=webhook.group)
    return _failure(422, "Invalid", message, details)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    name = name_of(arguments[0] if function is _all else function)
    try:
        with running_function(name):
            return function(*arguments)
    except (Exception, asyncio.CancelledError) as error:
        if is_cancelled(error):
            raise
        raise _author_failure(name, error) from error


def _read(webhook: Webhook[T], manifest: Manifest) -> T:
    if webhook.model is None:
        return cast("T", copy_json(manifest))
    model: Any = webhook.model
    try:
        with running_function(f"the model {model.__name__}"):  # its validators are functions, too
            return cast("T", read_live(manifest, model))
    except ManifestError as error:
        raise _UnreadableError(_problems(model, manifest)) from error


def _problems(model: type[BaseModel], manifest: Manifest) -> list[FieldError]:
    from pydantic import ValidationError

    try:
        validate_live(manifest, model)
    except ValidationError as error:
        return field_errors_of(error.errors(), manifest)
    raise _WebhookError(f"{model.__name__} is not deterministic: it rejected and then accepted the same object")


def _written(webhook: Webhook[Any], model: Any) -> Manifest:
    if webhook.model is None:
        return cast("Manifest", copy_json(model))
    try:
        return write_model(model)
    except ManifestError as error:
        fields = ", ".join(problem.path or "the object" for problem in error.problems)
        raise _WebhookError(f"a defaulter set values of the wrong type: {fields}") from error


def _type(value: object) -> str:
    return type(value).__name__


# A model does not represent an object exactly: it ignores unknown fields, adds its own defaults and formats some values
# differently. So the serialized model is never sent. Instead the difference between the model before and after the
# defaulter is applied to the object of the request.
def json_patch(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield a change as a JSON patch (RFC 6902) with one operation per changed field.

    Example:
        >>> list(json_patch({"spec": {"a": 1}}, {"spec": {"a": 1, "b/c": [2]}}))
        [{'op': 'add', 'path': '/spec/b~1c', 'value': [2]}]
    """
    if same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from ({"op": "remove", "path": _below(path, key)} for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                yield from json_patch(before[key], value, _below(path, key))
            else:
                yield {"op": "add", "path": _below(path, key), "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from json_patch(old, new, _below(path, position))
    else:
        yield {"op": "replace", "path": path, "value": after}


def _below(path: str, key: str | int) -> str:
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
