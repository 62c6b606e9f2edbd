"""Every error `ocf` raises on purpose.

Callers decide on the class, never on the message::

    OcfError
    ├── ConfigError               wrong code, manifest or setting; retrying cannot help
    │   ├── BuildError            a builder refuses; carries every problem it found
    │   ├── ManifestError         an object cannot be read or written; names the fields
    │   ├── QuantityError         a text is no quantity
    │   ├── ConstraintError       a text is no version constraint
    │   ├── FeatureGateError      a gate cannot answer, most often for a version that cannot be parsed
    │   ├── MutationError         an edit failed; names resource, mutation and category
    │   └── HandlerError          a handler failed or answered outside its vocabulary
    ├── NotReadyError             expected and temporary; retried without a stack trace
    │   ├── DataNotExtractedError a cell was read before its producer ran
    │   └── LeaseLostError        the lease of a leader was lost; wait for the next one
    ├── ReconcileError            a pass stopped; names component, resource and step
    ├── QueueClosedError          a work queue was closed, and hands out nothing any more
    └── ApiError                  the cluster refused a request; carries the Status it sent
        ├── BadRequestError       400  the request could not be decoded
        ├── ForbiddenError        401, 403
        ├── NotFoundError         404
        ├── AlreadyExistsError    409  on create
        ├── ConflictError         409  stale resourceVersion, precondition, or fields of another manager
        ├── ExpiredError          410  a watch or a list has to start over
        ├── InvalidError          422  refused by validation; the causes name the fields; 500 for a bad apply
        ├── TooManyRequestsError  429  carries the seconds to wait
        └── ServerError           5xx, or no answer at all

Errors of the HTTP library never cross the cluster's boundary; they become `__cause__`. A message names the object and
the field, the value seen and the value allowed, and never a secret: values under `data` and `stringData` are left
out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "BuildError",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "DataNotExtractedError",
    "ExpiredError",
    "FeatureGateError",
    "FieldProblem",
    "ForbiddenError",
    "HandlerError",
    "InvalidError",
    "LeaseLostError",
    "ManifestError",
    "MutationError",
    "NotFoundError",
    "NotReadyError",
    "OcfError",
    "QuantityError",
    "QueueClosedError",
    "ReconcileError",
    "ServerError",
    "StatusCause",
    "TooManyRequestsError",
    "api_error",
]


class OcfError(Exception):
    """Base of every error that `ocf` raises on purpose."""


class ConfigError(OcfError):
    """Wrong code, manifest or setting: it stays wrong until somebody changes it."""


class BuildError(ConfigError):
    r"""A builder refuses what it was given.

    Args:
        problems: Every problem found, each a full sentence; at least one.

    Example:
        >>> str(BuildError(["object name cannot be empty", "object namespace cannot be empty"]))
        'object name cannot be empty\nobject namespace cannot be empty'
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field of an object and what is wrong with it.

    Args:
        path: The field as users write it, `spec.metrics[0].type`; empty for the object itself.
        detail: What is wrong, the value seen and the value allowed.
    """

    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


class ManifestError(ConfigError):
    """An object cannot be read or written.

    Args:
        subject: What was read, for example `HorizontalPodAutoscaler shop/backend`.
        problems: The fields that are wrong, at least one.

    Example:
        >>> str(ManifestError("Deployment shop/web", [FieldProblem("spec.replica", "unknown field")]))
        'Deployment shop/web: spec.replica: unknown field'
    """

    def __init__(self, subject: str, problems: Iterable[FieldProblem]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        super().__init__(f"{subject}: " + "; ".join(map(str, self.problems)))


class QuantityError(ConfigError, ValueError):
    """A text is no quantity in the sense of the Kubernetes API."""


class ConstraintError(ConfigError, ValueError):
    """A text is no version constraint."""


class FeatureGateError(ConfigError):
    """A feature gate cannot answer."""


class MutationError(ConfigError):
    """A mutation, or one of its edits, failed; nothing of it was kept.

    Args:
        resource: Identity of the resource.
        mutation: Name of the mutation; `suspension` for the suspension edit.
        problem: What happened, in one sentence that ends in the cause.
        category: The category of the failing edit, for example `edit_hpa_spec`; empty while recording.

    The cause is `__cause__`.
    """

    def __init__(self, resource: str, mutation: str, problem: str, *, category: str = "") -> None:
        self.resource = resource
        self.mutation = mutation
        self.category = category
        self.problem = problem
        super().__init__(f"{resource}: {problem}")


class HandlerError(ConfigError):
    """A handler raised, or answered with something outside its vocabulary."""


class NotReadyError(OcfError):
    """Something is not there yet; expected and temporary."""


class DataNotExtractedError(NotReadyError):
    """A data cell was read before its producer ran in this pass.

    Args:
        name: The cell's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'data "{name}": data not extracted')


class LeaseLostError(NotReadyError):
    """A leader lost its lease, and with it the right to work; another process may lead by now.

    Args:
        lease: The lease, `namespace/name`.
        identity: Who lost it.
        problem: How it was lost.

    Example:
        >>> str(LeaseLostError("operators/shops", "one", "two holds it"))
        'the lease operators/shops of one is lost: two holds it'
    """

    def __init__(self, lease: str, identity: str, problem: str) -> None:
        self.lease = lease
        self.identity = identity
        super().__init__(f"the lease {lease} of {identity} is lost: {problem}")


class ReconcileError(OcfError):
    """A reconcile pass stopped.

    Args:
        component: Name of the component.
        problem: What failed, naming the resource, and why.
        resource: Identity of the resource; empty where none is to blame.

    The cause is `__cause__`.
    """

    def __init__(self, component: str, problem: str, *, resource: str = "") -> None:
        self.component = component
        self.resource = resource
        self.problem = problem
        super().__init__(f'component "{component}": {problem}')


class QueueClosedError(OcfError):
    """A work queue was closed, and hands out nothing any more."""


_CONFLICTING_MANAGER: Final = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r'\\(["\\])')


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One cause of a refused request, as the API server words it.

    Args:
        reason: Machine-readable, for example `FieldValueInvalid` or `FieldManagerConflict`.
        message: For a person; of a `FieldManagerConflict` it names the other manager.
        field: The field, for example `.spec.replicas`.

    Example:
        >>> StatusCause("FieldManagerConflict", 'conflict with "kubectl" using v1', ".spec.replicas").manager
        'kubectl'
    """

    reason: str
    message: str
    field: str = ""

    @property
    def manager(self) -> str:
        """Field manager that owns the field, for a `FieldManagerConflict`; empty for other causes.

        The API server names it only in the message, quoted as Go quotes a string.
        """
        named = _CONFLICTING_MANAGER.match(self.message) if self.reason == "FieldManagerConflict" else None
        return _ESCAPED.sub(r"\1", named[1]) if named else ""


class ApiError(OcfError):
    """The cluster refused or failed a request.

    Args:
        message: The server's message.
        code: HTTP status; 0 when no answer arrived.
        reason: The `reason` of the Status, for example `NotFound`.
        causes: The causes of the Status.
        retry_after: Seconds the server asks to wait, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: Iterable[StatusCause] = (),
        retry_after: float | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = tuple(causes)
        self.retry_after = retry_after
        super().__init__(message)


class BadRequestError(ApiError):
    """The request could not be decoded (400 and the other 4xx without a class of their own)."""


class ForbiddenError(ApiError):
    """The caller may not do that (401, 403)."""


class NotFoundError(ApiError):
    """The object, or its kind, does not exist (404)."""


class AlreadyExistsError(ApiError):
    """An object of that name exists (409, `AlreadyExists`)."""


class ConflictError(ApiError):
    """Somebody else was faster, or owns the fields (409)."""


class ExpiredError(ApiError):
    """The resource version or the continue token is too old (410)."""


class InvalidError(ApiError):
    """Refused by validation (422; 500 where a server has no better word for it); the causes name the fields."""


class TooManyRequestsError(ApiError):
    """The server asks to slow down (429)."""


class ServerError(ApiError):
    """The server failed (5xx), or no answer arrived: the write may or may not have happened."""


_FIRST_SERVER_CODE: Final = 500
_CLASS_OF_CODE: Final[dict[int, type[ApiError]]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def api_error(
    message: str,
    *,
    code: int = 0,
    reason: str = "",
    causes: Iterable[StatusCause] = (),
    retry_after: float | None = None,
) -> ApiError:
    r"""Build the `ApiError` whose class fits an HTTP status and a Status reason.

    Args:
        message: The server's message.
        code: HTTP status; 0 when no answer arrived.
        reason: The `reason` of the Status.
        causes: The causes of the Status.
        retry_after: Seconds the server asks to wait, or None.

    Returns:
        An error to be raised; the arguments are its attributes.

    Example:
        >>> type(api_error("deployments.apps 'web' not found", code=404, reason="NotFound")).__name__
        'NotFoundError'
    """
    if reason == "AlreadyExists":
        kind: type[ApiError] = AlreadyExistsError
    elif code == 0 or code >= _FIRST_SERVER_CODE:
        kind = ServerError
    else:
        kind = _CLASS_OF_CODE.get(code, BadRequestError)
    return kind(message, code=code, reason=reason, causes=causes, retry_after=retry_after)
