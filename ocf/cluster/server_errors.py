"""Errors of the API server that have to be read: client errors reported as 500, ending namespaces, and quoted values.

An apply that does not match the schema, and a strategic merge patch that contradicts itself, are answered with 500 and
no reason. A retry does not help, so these answers are recognized by the beginning of their message: nothing else
identifies them. The same holds for an object that is too large for etcd.

An impersonation that is refused names the request, and not the user, since Kubernetes 1.36.

A create in a namespace that is being deleted is answered with 403, and with a cause that nothing else has.

A rejection of an object quotes the values that it rejects, and a webhook or a policy may quote any value. If one may be
that of a Secret, only the field and the kind of the problem are kept.
"""

import re
from typing import Final

from ocf.cluster.impersonation import Impersonation
from ocf.errors import ApiError, BadRequestError, ForbiddenError, InvalidError, StatusCause

__all__ = ["as_client_error", "as_impersonation_error", "is_definition_ending", "is_namespace_ending", "without_values"]

_INTERNAL: Final = 500
_DEFINITION_ENDING: Final = "not allowed while custom resource definition is terminating"
_BEGINNINGS: Final = (
    "failed to create typed patch object (",
    "failed to create typed live object (",
    "failed to convert new object (",
    "failed to create manager for existing fields",
    "The order in patch list:",
    "unknown patch type: ",
    "list element types are not identical",
    "lists of lists are not supported",
    "cannot merge lists without merge key",
    "merging lists cannot yet be specified in the patch",
    "map: map[",
)
# The limits of etcd and of its client; above 3 MiB, the API server answers with 413.
_TOO_LARGE: Final = (
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
)


def as_client_error(error: ApiError) -> ApiError:
    """Return a client error in place of a 500 that was caused by the request; a retry does not help.

    Returns:
        For such a 500, an `InvalidError` with the same code and message, its problems in order, or a `BadRequestError`
        with the reason `RequestEntityTooLarge`; every other error unchanged.

    Example:
        >>> from ocf.errors import api_error
        >>> text = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.colour: ..."
        >>> type(as_client_error(api_error(text, code=500))).__name__
        'InvalidError'
    """
    if error.code == _INTERNAL and not error.reason and error.message.startswith(_BEGINNINGS):
        message = _in_order(error.message)
        return InvalidError(message, code=error.code, causes=error.causes, retry_after=error.retry_after)
    if error.code == _INTERNAL and not error.reason and error.message.startswith(_TOO_LARGE):
        reason = "RequestEntityTooLarge"
        return BadRequestError(error.message, code=error.code, reason=reason, retry_after=error.retry_after)
    return error


def _in_order(message: str) -> str:
    """Return a message with the problems of an object in order: a map of Go gives them, in another order each time.

    It may leave some of them out, those beside or below a field that it does not know.
    """
    head, lists, problems = message.partition("errors:\n")
    return f"{head}{lists}{chr(10).join(sorted(problems.splitlines()))}" if lists else message


# With the feature gate ConstrainedImpersonation (https://kep.k8s.io/5284), the API server asks first for a right to act
# as the user in this one way, and answers with that question, although it has asked for the verb impersonate as well.
_CONSTRAINED: Final = re.compile(r': (User "(?:[^"\\]|\\.)*" cannot )impersonate-on:\S+ ')


def as_impersonation_error(error: ApiError, user: Impersonation | None) -> ApiError:
    """Return the refusal of an impersonation with the right that is missing, as API servers before 1.36 word it.

    Args:
        user: The user as whom the request was made; None for the user who authenticates.

    Returns:
        For such a refusal a `ForbiddenError` that names the user; every other error unchanged.

    Example:
        >>> refused = ForbiddenError(
        ...     'pods is forbidden: User "op" cannot impersonate-on:user-info:list resource "pods" in API group "" at'
        ...     ' the cluster scope'
        ... )
        >>> as_impersonation_error(refused, Impersonation("jane")).message
        'users "jane" is forbidden: User "op" cannot impersonate resource "users" in API group "" at the cluster scope'
    """
    found = _CONSTRAINED.search(error.message) if isinstance(error, ForbiddenError) and user is not None else None
    if found is None or user is None:
        return error
    account, plural = user.account, "serviceaccounts" if user.account else "users"
    where = f'in the namespace "{account.namespace}"' if account else "at the cluster scope"
    name = account.name if account else user.user
    text = f'{plural} "{name}" is forbidden: {found[1]}impersonate resource "{plural}" in API group "" {where}'
    attributes = [*(f'group "{group}"' for group in user.groups), *(["the uid"] if user.uid else []), *user.extra]
    if attributes:
        # The answer does not say which of them is the reason.
        text = f"{text}, or not with {', '.join(attributes)}"
    return ForbiddenError(text, code=error.code, reason=error.reason)


def is_namespace_ending(error: BaseException | None) -> bool:
    """Return whether an error, its cause or all errors of a group are that a namespace is being deleted.

    Example:
        >>> from ocf.errors import ForbiddenError
        >>> ending = ForbiddenError("forbidden", causes=[StatusCause("NamespaceTerminating", "it ends", "")])
        >>> is_namespace_ending(ending), is_namespace_ending(ForbiddenError("forbidden"))
        (True, False)
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_namespace_ending, error.exceptions))
    while error is not None and not isinstance(error, ApiError):
        error = error.__cause__
    return error is not None and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def is_definition_ending(error: BaseException | None) -> bool:
    """Return whether an error is that the definition of a kind is being deleted, after its objects.

    Only its text differs from that of a missing right.

    Example:
        >>> from ocf.errors import ForbiddenError
        >>> is_definition_ending(ForbiddenError("create not allowed while custom resource definition is terminating"))
        True
    """
    return isinstance(error, ApiError) and error.message.endswith(_DEFINITION_ENDING)


# Texts of the types of field errors, k8s.io/apimachinery/pkg/util/validation/field, by the reason of the cause.
_PROBLEMS: Final = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
}
_WITHHELD: Final = "the values are not shown, because they may come from a Secret"
# Who denied a request by admission; their own text follows, with whatever status they chose.
_DENIED: Final = re.compile(
    r"""^(?:[^\s"]+ "[^"]*" is forbidden: )?"""
    r"""(?:admission webhook "[^"]*"|ValidatingAdmissionPolicy '[^']*' with binding '[^']*') denied (?:the )?request"""
)
# The object and the field of an apply that does not match the schema.
_UNTYPED: Final = re.compile(r"^(failed to [a-z ]+) \([^()]*\): (\.[^\s:\[]+)")


def without_values(error: ApiError) -> ApiError:
    """Return an error without the values of the object that the API server rejects.

    Returns:
        An error of the same class, with the fields and what kind of problem each has; the same error if it can quote no
        value, such as a conflict or an outage.

    Example:
        >>> causes = [StatusCause("FieldValueInvalid", 'Invalid value: "hunter2": must be lower', "spec.user")]
        >>> str(without_values(InvalidError('Shop "a" is invalid: spec.user: ...', code=422, causes=causes)))
        'spec.user: Invalid value (the values are not shown, because they may come from a Secret)'
    """
    denied = _DENIED.match(error.message)
    if denied is None and not isinstance(error, InvalidError | BadRequestError):
        return error
    causes = [StatusCause(one.reason, _PROBLEMS.get(one.reason, one.reason), one.field) for one in error.causes]
    # The API server orders them by chance, and a message that changes each time would be written each time.
    named = {f"{one.field}: {one.message}" for one in causes if one.field}
    fields = "; ".join(sorted(named, key=lambda text: (text.startswith("<nil>"), text)))
    untyped = _UNTYPED.match(error.message)
    what = f"{untyped[1]}: {untyped[2]}" if untyped else f"{error.reason or 'rejected'} (HTTP {error.code})"
    text = ": ".join(filter(None, (denied[0] if denied else "", fields))) or what
    return type(error)(
        f"{text} ({_WITHHELD})",
        code=error.code,
        reason=error.reason,
        causes=causes,
        retry_after=error.retry_after,
        subject=error.subject,
    )
