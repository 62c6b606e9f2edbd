"""`review`: an AdmissionReview with a request in, one with the answer out.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response.

Everything is answered: what cannot be is refused as a failure, never with what an exception says, which may hold what
is in the object.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ocf.errors import ManifestError
from ocf.objects import Manifest, copy_json, read_live, write_model
from ocf.objects.field_errors import FieldError, invalid_message
from ocf.objects.model_errors import field_errors_of
from ocf.runtime.admission.json_patch import json_patch, merge_changes
from ocf.runtime.admission.webhooks import Operation, Step, Warn, Webhook

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["refusal", "review"]

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
_API: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


class _BrokenError(Exception):
    """The operator cannot answer; the text goes to whoever sent the request, so it says nothing of the object."""


class _UnreadableError(Exception):
    """The model cannot read an object."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


def review(webhook: Webhook[Any], step: Step, question: Mapping[str, Any]) -> Manifest:
    """Answer what an API server asks.

    An object that is being deleted passes as it is, so that rules made since it was stored cannot keep its finalizers
    from being taken off.

    Args:
        webhook: How objects of the kind are admitted.
        step: What is asked for.
        question: The AdmissionReview; left as it is.

    Returns:
        An AdmissionReview whose response allows the request, changes the object with a JSON patch, or refuses it:
        with 422 and a cause for every field if the object is wrong, with 400 if the request is, and with 500 if one of
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
        return refusal("", 400, "BadRequest", "the AdmissionReview holds no request")
    uid = str(request.get("uid") or "")
    if problem := _wrong_request(webhook, request):
        return refusal(uid, 400, "BadRequest", problem)
    try:
        if _passes(webhook, request):
            return _answer(uid, {"allowed": True})
        answer = _defaulted if step is Step.DEFAULT else _validated
        return _answer(uid, answer(webhook, request))
    except _BrokenError as error:
        return refusal(uid, 500, "InternalError", f"Internal error occurred: {webhook.name(step)}: {error}")
    except RecursionError:
        return refusal(uid, 400, "BadRequest", f"{webhook.name(step)}: the object is nested too deeply")


def refusal(uid: str, code: int, reason: str, message: str) -> Manifest:
    """Write an answer that refuses a request for another reason than its object.

    Args:
        uid: Of the request; empty where it has none.
        code: Status of HTTP that the client sees.
        reason: The reason of the Status.
        message: What happened.
    """
    return _answer(uid, _refused(code, reason, message))


def _answer(uid: str, response: Mapping[str, Any]) -> Manifest:
    return {**_API, "response": {"uid": uid, **response}}


def _refused(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"allowed": False, "status": {**status, **({"details": details} if details else {})}}


def _wrong_request(webhook: Webhook[Any], request: Mapping[str, Any]) -> str:
    """Say why a request is none that the webhook can answer; empty if it can."""
    kind = request.get("kind")
    found = tuple(kind.get(part) or "" for part in ("group", "version", "kind")) if isinstance(kind, dict) else ()
    wanted = (webhook.group, webhook.version, webhook.kind)
    if found != wanted or request.get("subResource"):
        seen = " ".join(map(str, filter(None, [*found, request.get("subResource")])))
        return f"this webhook is for {' '.join(filter(None, wanted))}, and was asked about {seen or 'no kind'}"
    operation = request.get("operation")
    for name, needed in (("object", ("CREATE", "UPDATE")), ("oldObject", ("UPDATE", "DELETE"))):
        if operation in needed and not isinstance(request.get(name), dict):
            return f"{operation} needs request.{name}, which is no object"
    return ""


def _passes(webhook: Webhook[Any], request: Mapping[str, Any]) -> bool:
    """Tell whether nobody has to be asked."""
    if request.get("operation") not in list(Operation):
        return True
    if request["operation"] == Operation.DELETE:
        return not webhook.deletes
    metadata = request["object"].get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _defaulted(webhook: Webhook[Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the defaulters; what the model cannot read is left to the verdict, which comes after the schema's."""
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
    made = _called(defaulter, model)
    if made is not None and type(made) is not type(model):
        raise _BrokenError(f"{_name(defaulter)} must return {_type(model)} or None, got {_type(made)}")
    return model if made is None else made


def _validated(webhook: Webhook[Any], request: Mapping[str, Any]) -> dict[str, Any]:
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
    """Read the stored object; one that the model cannot read may still be mended, so that is no refusal."""
    try:
        return _read(webhook, request["oldObject"])
    except _UnreadableError as error:
        fields = ", ".join(finding.path or "the object" for finding in error.errors)
        warnings.append(f"the stored object cannot be read, rules on changes were not asked: {fields}")
        return None


def _errors(webhook: Webhook[T], new: T, old: T | None, operation: Operation, warnings: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for validator in webhook.validators:
        for finding in _called(_all, validator, new, old, operation):
            if isinstance(finding, FieldError):
                errors.append(finding)
            elif isinstance(finding, Warn):
                warnings.append(finding.text)
            else:
                raise _BrokenError(f"{_name(validator)} must give FieldError or Warn, got {_type(finding)}")
    return errors


def _all(validator: Callable[..., Iterable[Any]], *arguments: Any) -> list[Any]:
    return list(validator(*arguments))


def _invalid(webhook: Webhook[Any], request: Mapping[str, Any], errors: Sequence[FieldError]) -> dict[str, Any]:
    """Write the refusal as Go's `apierrors.NewInvalid` does."""
    held = (request.get("object") or request.get("oldObject") or {}).get("metadata") or {}
    name = str(request.get("name") or (held.get("name") if isinstance(held, dict) else "") or "")
    causes = [error.to_cause() for error in errors]
    details = {
        "name": name,
        "group": webhook.group,
        "kind": webhook.kind,
        "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes],
    }
    message = invalid_message(name, errors, kind=webhook.kind, group=webhook.group)
    return _refused(422, "Invalid", message, details)


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        blamed = arguments[0] if function is _all else function
        _log.exception("%s failed", _name(blamed))
        raise _BrokenError(f"{_name(blamed)} failed with {_type(error)}, see the operator's log") from error


def _read(webhook: Webhook[T], manifest: Manifest) -> T:
    if webhook.model is None:
        return cast("T", copy_json(manifest))
    model: Any = webhook.model
    try:
        return cast("T", read_live(manifest, model))
    except ManifestError as error:
        raise _UnreadableError(_problems(model, manifest)) from error


def _problems(model: type[BaseModel], manifest: Manifest) -> list[FieldError]:
    from pydantic import ValidationError

    try:
        model.model_validate(manifest, extra="ignore")
    except ValidationError as error:
        return field_errors_of(error.errors(), manifest)
    raise _BrokenError(f"{model.__name__} reads an object one time and not another")


def _written(webhook: Webhook[Any], model: Any) -> Manifest:
    if webhook.model is None:
        return cast("Manifest", copy_json(model))
    try:
        return write_model(model)
    except ManifestError as error:
        fields = ", ".join(problem.path or "the object" for problem in error.problems)
        raise _BrokenError(f"a defaulter left values of the wrong type: {fields}") from error


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", _type(function)))


def _type(value: object) -> str:
    return type(value).__name__
