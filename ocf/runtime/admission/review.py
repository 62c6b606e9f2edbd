"""Processing of admission reviews: an AdmissionReview with a request in, one with the response out.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response.

Every request gets a response. An internal error rejects the request without the text of the exception, which may
contain data of the object.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar, cast

from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest, copy_json, write_model
from ocf.objects.field_errors import FieldError, invalid_message
from ocf.objects.json_changes import merge_changes
from ocf.runtime.admission.author_calls import (
    Calls,
    DirectCalls,
    all_of,
    author_failure,
    await_function,
    call_function,
    type_name,
)
from ocf.runtime.admission.json_patch import json_patch
from ocf.runtime.admission.match import Operation
from ocf.runtime.admission.requests import (
    OBJECT_SUBRESOURCES,
    AdmissionRequest,
    AuditAnnotation,
    Deny,
    NestedTooDeeplyError,
    UnreadableError,
    Warn,
    WebhookError,
    warnings_of,
)
from ocf.runtime.admission.webhooks import Step, Webhook, is_coroutine
from ocf.runtime.running_function import name_of

__all__ = ["Answer", "failure", "rejection", "respond", "review"]

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)
_API: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
_FAILURES: Final = {500: "InternalError", 504: "Timeout"}


class Answer(NamedTuple):
    """The response to a review.

    Args:
        failed: Whether the webhook itself has failed; a rejection is not a failure.
    """

    review: Manifest
    failed: bool = False


def review(webhook: Webhook[Any], step: Step, question: Mapping[str, Any]) -> Manifest:
    """Respond to an admission request of an API server, for webhooks whose functions are plain functions.

    Args:
        webhook: The webhook of the object's kind.
        step: The requested step.
        question: The AdmissionReview; not changed.

    Returns:
        An AdmissionReview whose response allows the request, changes the object with a JSON patch, or rejects it: with
        the code of a `Deny`, with 422 and a cause for every invalid field of the object, with 400 for an invalid
        request, and with 500 if one of the functions fails.

    Raises:
        ConfigError: If a function of the step is a coroutine function: await it in the test instead.

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
    for function in filter(is_coroutine, webhook.handlers(step)):
        raise ConfigError(
            f"review calls plain functions only, and {name_of(function)} is a coroutine function: await it with an "
            "AdmissionRequest, or serve the webhook"
        )
    answering = respond(webhook, step, question, DirectCalls())
    try:
        answering.send(None)  # nothing waits without coroutine functions, so it ends at once
    except StopIteration as ended:
        return cast("Answer", ended.value).review
    raise ConfigError(f"{webhook.qualified_name(step)}: a plain function waits for the event loop")


async def respond(webhook: Webhook[Any], step: Step, question: Mapping[str, Any], calls: Calls) -> Answer:
    """Respond to an admission request of an API server; see `review`."""
    request = question.get("request")
    uid = str(request.get("uid") or "") if isinstance(request, dict) else ""
    problem = _request_problem(webhook, request)
    if problem or not isinstance(request, dict):
        return Answer(rejection(uid, 400, "BadRequest", problem))
    if request.get("operation") not in list(Operation):
        return Answer(_answer(uid, {"allowed": True}))
    asked: AdmissionRequest[Any] = AdmissionRequest(request, webhook.model)
    try:
        response = await (_mutated if step is Step.DEFAULT else _validated)(webhook, asked, calls)
        _require_json(response, "the functions returned what no API server can read")
    except WebhookError as error:
        return failure(webhook, uid, 500, f"Internal error occurred: {webhook.qualified_name(step)}: {error}")
    except UnreadableError as error:
        response = _unreadable(asked, error)
    except (NestedTooDeeplyError, RecursionError):
        text = f"{webhook.qualified_name(step)}: the object is nested too deeply"
        return Answer(rejection(uid, 400, "BadRequest", text))
    except Exception as error:  # noqa: BLE001 (such as an iterable of findings that fails, or a value without a text)
        failed = author_failure(webhook.qualified_name(step), error)
        return failure(webhook, uid, 500, f"Internal error occurred: {failed}")
    return Answer(_answer(uid, response))


def _require_json(value: Any, problem: str) -> str:
    """Return a value as JSON; what a function has returned may contain anything."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        _log.error("%s", problem, exc_info=error)
        raise WebhookError(f"{problem}, see the operator's log") from error


def failure(webhook: Webhook[Any], uid: str, code: int, message: str) -> Answer:
    """Return the response of a webhook that has failed.

    With the failure policy `Ignore`, the request is allowed, and the user is warned: the API server itself ignores only
    that it cannot call the webhook.

    Args:
        code: 500 for an error, 504 if it took too long.
    """
    if webhook.failure_policy == "Ignore":
        response = {"allowed": True, "warnings": [f"{message}; the request was allowed without this webhook"]}
        return Answer(_answer(uid, response), failed=True)
    return Answer(rejection(uid, code, _FAILURES[code], message), failed=True)


def rejection(uid: str, code: int, reason: str, message: str) -> Manifest:
    """Return a response that rejects a request for another reason than its object.

    Args:
        uid: UID of the request; empty if it has none.
    """
    return _answer(uid, _rejection(code, reason, message))


def _answer(uid: str, response: Mapping[str, Any]) -> Manifest:
    return {**_API, "response": {"uid": uid, **response}}


def _rejection(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"allowed": False, "status": {**status, **({"details": details} if details else {})}}


def _request_problem(webhook: Webhook[Any], request: object) -> str:
    """Return why the webhook cannot process a request; empty if it can."""
    if not isinstance(request, dict):
        return "the AdmissionReview has no request"
    kind, subresource = request.get("kind"), str(request.get("subResource") or "")
    found = tuple(kind.get(part) or "" for part in ("group", "version", "kind")) if isinstance(kind, dict) else ()
    wanted = (webhook.group, webhook.version, webhook.kind)
    is_other = found != wanted and subresource in OBJECT_SUBRESOURCES
    if is_other or not webhook.match.has_subresource(subresource):
        seen = " ".join(map(str, filter(None, [*found, subresource])))
        return f"this webhook is for {' '.join(filter(None, wanted))}, got {seen or 'no kind'}"
    operation = request.get("operation")
    for name, needed in (("object", ("CREATE", "UPDATE")), ("oldObject", ("UPDATE", "DELETE"))):
        if operation in needed and not isinstance(request.get(name), dict):
            return f"{operation} needs request.{name}, which is not an object"
    return ""


def _is_exempt(asked: AdmissionRequest[Any], operations: Collection[Operation]) -> bool:
    """Return whether a request skips the short forms.

    Updates of an object that is being deleted do, so that rules added after it was stored cannot prevent the removal of
    its finalizers.
    """
    if asked.operation not in operations:
        return True
    return asked.operation is not Operation.DELETE and asked.is_being_deleted


async def _mutated(webhook: Webhook[Any], asked: AdmissionRequest[Any], calls: Calls) -> dict[str, Any]:
    """Return the response of the defaulters and of the functions that change the object."""
    # A function may return a shallow copy, of which the changed parts are those of the request.
    given, request, warnings = copy_json(asked.object) if webhook.mutating else asked.object, asked, list[str]()
    if webhook.defaulters and not _is_exempt(asked, (Operation.CREATE, Operation.UPDATE)):
        request = await calls.in_thread(partial(_defaulted, webhook, asked))
    for waits, functions in groupby(webhook.mutating, is_coroutine):
        if waits:
            found = await _await_all(webhook, functions, request, calls, warnings)
        else:
            found = await calls.in_thread(partial(_call_all, webhook, list(functions), request, warnings))
        if isinstance(found, Deny):
            return _with_notes(_denial(asked, [found], []), warnings, {})
        request = found
    response = {"allowed": True} if request is asked else _patch(given, request.object)
    return _with_notes(response, warnings, {})


def _patch(given: Manifest | None, changed: Manifest | None) -> dict[str, Any]:
    try:
        operations = list(json_patch(given, changed))
    except RecursionError as error:
        raise WebhookError("the changed object contains itself, or is nested too deeply") from error
    if not operations:
        return {"allowed": True}
    written = _require_json(operations, "the changed object has values that JSON does not have")
    patch = base64.b64encode(written.encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _call_all(
    webhook: Webhook[Any],
    functions: Iterable[Callable[..., Any]],
    request: AdmissionRequest[Any],
    warnings: list[str],
) -> AdmissionRequest[Any] | Deny:
    for function in functions:
        found = _changed(webhook, request, call_function(function, request), name_of(function))
        warnings += warnings_of(request)
        if isinstance(found, Deny):
            return found
        request = found
    return request


async def _await_all(
    webhook: Webhook[Any],
    functions: Iterable[Callable[..., Any]],
    request: AdmissionRequest[Any],
    calls: Calls,
    warnings: list[str],
) -> AdmissionRequest[Any] | Deny:
    for function in functions:
        found = _changed(webhook, request, await await_function(webhook, function, request, calls), name_of(function))
        warnings += warnings_of(request)
        if isinstance(found, Deny):
            return found
        request = found
    return request


def _changed(
    webhook: Webhook[Any], request: AdmissionRequest[Any], made: Any, name: str
) -> AdmissionRequest[Any] | Deny:
    """Return the request with the object that a function has returned."""
    if made is None:
        return request
    if isinstance(made, Deny):
        return made
    given = request.object
    if given is None:
        raise WebhookError(f"{name} returned an object for a {request.operation}, which has none to change")
    if made is given:
        raise WebhookError(f"{name} returned `request.object` itself, which must not be changed: return a copy")
    if isinstance(made, dict):
        is_another = any(made.get(part, given.get(part)) != given.get(part) for part in ("apiVersion", "kind"))
        if is_another or not isinstance(made.get("metadata"), dict):
            raise WebhookError(f"{name} must return the whole object with its kind and metadata, got another one")
        after = made
    elif webhook.model is not None and isinstance(made, webhook.model):
        # A model does not represent an object exactly: it ignores unknown fields, adds its own defaults and formats
        # some values differently. So only the difference between the model before and after is applied to the object.
        # The function may have changed `request.new` itself, so the state before it is read again.
        before = _written(AdmissionRequest(request.raw, webhook.model).new)
        after = merge_changes(given, before, _written(made))
    else:
        model = webhook.model.__name__ if webhook.model is not None else "the object"
        raise WebhookError(f"{name} must return {model}, a manifest, Deny or None, got {type_name(made)}")
    return AdmissionRequest({**request.raw, "object": after}, request.model)


def _defaulted(webhook: Webhook[Any], asked: AdmissionRequest[Any]) -> AdmissionRequest[Any]:
    """Run the defaulters; an object that the model cannot read is rejected later, by the validation."""
    try:
        model = AdmissionRequest(asked.raw, asked.model).new
    except UnreadableError:
        return asked
    before = _written(model)
    after = merge_changes(asked.object, before, _written(reduce(_run_defaulter, webhook.defaulters, model)))
    return asked if after is asked.object else AdmissionRequest({**asked.raw, "object": after}, asked.model)


def _run_defaulter(model: T, defaulter: Callable[[T], T | None]) -> T:
    made = call_function(defaulter, model)
    if made is not None and type(made) is not type(model):
        raise WebhookError(f"{name_of(defaulter)} must return {type_name(model)} or None, got {type_name(made)}")
    return model if made is None else made


@dataclass(slots=True)
class _Findings:
    """What the functions of a validation have found."""

    denials: list[Deny] = field(default_factory=list)
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def rejects(self) -> bool:
        return bool(self.denials or self.errors)

    def add(self, name: str, found: Any, allowed: tuple[type, ...]) -> None:
        """Add what a function has found: one finding, an iterable of findings, or None."""
        findings = [found] if isinstance(found, allowed) else found if found is not None else ()
        for finding in findings if isinstance(findings, Iterable) else [findings]:
            if not isinstance(finding, allowed):
                names = [one.__name__ for one in allowed]
                raise WebhookError(
                    f"{name} must return {', '.join(names[:-1])} or {names[-1]}, got {type_name(finding)}"
                )
            if isinstance(finding, Deny):
                self.denials.append(finding)
            elif isinstance(finding, FieldError):
                self.errors.append(finding)
            elif isinstance(finding, Warn):
                self.warnings.append(finding.text)
            elif (
                isinstance(finding, AuditAnnotation)
                and self.annotations.setdefault(finding.key, finding.value) != finding.value
            ):
                raise WebhookError(f'{name} gives a second value to the audit annotation "{finding.key}"')


async def _validated(webhook: Webhook[Any], asked: AdmissionRequest[Any], calls: Calls) -> dict[str, Any]:
    """Return the response of the validators and of the functions that check the request."""
    findings = _Findings()
    plain = [one for one in webhook.validating if not is_coroutine(one)]
    # Without functions, the model itself is the validation.
    reads = bool(webhook.validators) or (not webhook.validating and webhook.model is not None)
    short = reads and not _is_exempt(asked, webhook.match.operations)
    if short or plain:
        await calls.in_thread(partial(_find, webhook, asked, plain if not short else [_check, *plain], findings))
    for function in filter(is_coroutine, () if findings.rejects else webhook.validating):
        made = await await_function(webhook, function, asked, calls)
        if made is not None and not isinstance(made, (list, tuple, *_FULL)):
            # To iterate over anything else would run code of the author without a time limit.
            names = ", ".join(one.__name__ for one in _FULL)
            raise WebhookError(
                f"{name_of(function)} must return None, a list, or one of {names}, got {type_name(made)}"
            )
        findings.add(name_of(function), made, _FULL)
    found = _denial(asked, findings.denials, findings.errors) if findings.rejects else {"allowed": True}
    return _with_notes(found, [*findings.warnings, *warnings_of(asked)], findings.annotations)


def _find(
    webhook: Webhook[Any], asked: AdmissionRequest[Any], functions: Iterable[Callable[..., Any]], findings: _Findings
) -> None:
    for function in functions:
        if function is not _check:
            findings.add(name_of(function), call_function(all_of, function, asked), _FULL)
            continue
        _check(webhook, asked, findings)
        if findings.rejects:
            return


def _check(webhook: Webhook[Any], asked: AdmissionRequest[Any], findings: _Findings) -> None:
    """Read the object, and call the validators."""
    try:
        new, old = asked.new, asked.old
    except UnreadableError as error:
        findings.errors += error.errors
        return
    for validator in webhook.validators:
        found = call_function(all_of, validator, new, old, asked.operation)
        if found is None:
            raise WebhookError(f"{name_of(validator)} must return FieldError or Warn, got None")
        findings.add(name_of(validator), found, _SHORT)


_SHORT: Final = (FieldError, Warn)
_FULL: Final = (Deny, FieldError, Warn, AuditAnnotation)


def _with_notes(response: Mapping[str, Any], warnings: Sequence[str], annotations: Mapping[str, str]) -> dict[str, Any]:
    return {
        **response,
        **({"warnings": [*dict.fromkeys(warnings)]} if warnings else {}),
        **({"auditAnnotations": dict(annotations)} if annotations else {}),
    }


def _unreadable(asked: AdmissionRequest[Any], error: UnreadableError) -> dict[str, Any]:
    """Return the response to a request whose object a function of the full forms cannot read.

    An object that is being deleted is not held by it: its finalizers could not be removed otherwise.
    """
    if asked.operation is Operation.UPDATE and asked.is_being_deleted:
        fields = ", ".join(finding.path or "the object" for finding in error.errors)
        return {"allowed": True, "warnings": [f"the object cannot be read, so it was not checked: {fields}"]}
    return _denial(asked, [], error.errors)


def _denial(asked: AdmissionRequest[Any], denials: Sequence[Deny], errors: Sequence[FieldError]) -> dict[str, Any]:
    """Return a rejection; that of invalid fields is in the format of Go's `apierrors.NewInvalid`."""
    kind: Mapping[str, Any] = asked.raw["kind"]
    group, name = str(kind.get("group") or ""), str(kind.get("kind") or "")
    causes = [*(cause for each in denials for cause in each.status_causes), *(error.to_cause() for error in errors)]
    details = {
        "name": asked.name,
        "group": group,
        "kind": name,
        "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes],
    }
    texts = [each.message for each in denials]
    if errors:
        texts.append(invalid_message(asked.name, errors, kind=name, group=group))
    code, reason = (denials[0].code, denials[0].reason) if denials else (422, "Invalid")
    return _rejection(code, reason, "; ".join(dict.fromkeys(texts)), details if causes else None)


def _written(model: Any) -> Manifest:
    if isinstance(model, dict):
        return cast("Manifest", copy_json(model))
    try:
        return write_model(model)
    except ManifestError as error:
        fields = ", ".join(problem.path or "the object" for problem in error.problems)
        raise WebhookError(f"a defaulter set values of the wrong type: {fields}") from error
