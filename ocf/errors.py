"""Errors that `ocf` raises.

Callers should distinguish errors by class, never by message::

    OcfError
    ├── ConfigError               wrong code, manifest or setting; retrying cannot help
    │   ├── BuildError            the settings of a builder are invalid; carries all problems
    │   ├── ManifestError         an object cannot be read or written; names the fields
    │   ├── QuantityError         a text is not a quantity
    │   ├── ConstraintError       a text is not a version constraint
    │   ├── FeatureGateError      a gate failed, usually because a version cannot be parsed
    │   ├── MutationError         an edit failed; names resource, mutation and category
    │   └── HandlerError          a handler failed or returned a status outside its vocabulary
    ├── NotReadyError             expected and temporary; retried without a stack trace
    │   ├── RetryError            the author's function asks to be called again later
    │   ├── DataNotExtractedError a cell was read before its producer ran
    │   └── LeaseLostError        a leader lost its lease and must stop
    ├── ReconcileError            a reconcile failed; names component, resource and step
    ├── ProviderError             a provider of machines failed
    │   ├── ProviderUnavailableError  no answer, or a temporary failure; the same call may succeed later
    │   ├── ProviderRefusedError  refused for good: a quota, a plan, a permission, an invalid request
    │   ├── CapacityExhaustedError  no machine of that instance type now; another type may be available
    │   └── MachineNotFoundError  there is no such machine
    └── ApiError                  the API server rejected a request; carries its Status
        ├── BadRequestError       400  the request could not be decoded
        ├── ForbiddenError        401, 403
        ├── NotFoundError         404
        │   └── NoKindMatchError  404  the kind itself is not served
        ├── AlreadyExistsError    409  on create
        ├── ConflictError         409  stale resourceVersion, precondition, or fields of another manager
        ├── ExpiredError          410  a watch or a list has to start again
        ├── InvalidError          422  rejected by validation; the causes name the fields; 500 for an invalid apply
        ├── TooManyRequestsError  429  carries the seconds to wait
        └── ServerError           5xx, or no response at all

Errors of the HTTP library are never raised by a cluster client; they become `__cause__`. A message names the object,
the field, the value seen and the value allowed, and never contains a secret: values under `data` and `stringData` are
omitted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "BuildError",
    "CapacityExhaustedError",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "DataNotExtractedError",
    "ExpiredError",
    "FeatureGateError",
    "ForbiddenError",
    "HandlerError",
    "InvalidError",
    "LeaseLostError",
    "MachineNotFoundError",
    "ManifestError",
    "MutationError",
    "NoKindMatchError",
    "NotFoundError",
    "NotReadyError",
    "OcfError",
    "ProviderError",
    "ProviderRefusedError",
    "ProviderUnavailableError",
    "QuantityError",
    "ReconcileError",
    "RetryError",
    "ServerError",
    "TooManyRequestsError",
    "api_error",
]


class OcfError(Exception):
    """Base class of all errors that `ocf` raises; its text has no addresses of objects."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_addresses(one) if isinstance(one, str) else one for one in args))


def without_addresses(text: str) -> str:
    """Return a text in which the names of objects, as Python writes them, have no addresses.

    Example:
        >>> without_addresses("got <Builder object at 0x7fe486a21a90>")
        'got <Builder object>'
    """
    return re.sub(_ADDRESS, r"\1", text)


class ConfigError(OcfError):
    """Wrong code, manifest or setting; a retry fails until the user fixes it."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The message, or the messages of several problems that each stand in a line of their own."""
        return (str(self),)


class BuildError(ConfigError):
    r"""The settings of a builder are invalid.

    Args:
        problems: All problems, each a full sentence; at least one.

    Example:
        >>> str(BuildError(["object name cannot be empty", "object namespace cannot be empty"]))
        'object name cannot be empty\nobject namespace cannot be empty'
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(map(without_addresses, problems))
        super().__init__("\n".join(self.problems))


class FieldProblem(NamedTuple):
    """A problem with one field of an object.

    Args:
        path: The field in manifest spelling, `spec.metrics[0].type`; empty for the object itself.
        detail: The problem, with the value seen and the value allowed.
    """

    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


class ManifestError(ConfigError):
    """An object cannot be read or written.

    Args:
        subject: The object, for example `HorizontalPodAutoscaler shop/backend`.
        problems: The invalid fields, at least one.

    Example:
        >>> str(ManifestError("Deployment shop/web", [FieldProblem("spec.replica", "unknown field")]))
        'Deployment shop/web: spec.replica: unknown field'
    """

    def __init__(self, subject: str, problems: Iterable[FieldProblem]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        super().__init__(f"{subject}: " + "; ".join(map(str, self.problems)))


class QuantityError(ConfigError, ValueError):
    """A text is not a quantity of the Kubernetes API."""


class ConstraintError(ConfigError, ValueError):
    """A text is not a version constraint."""


class FeatureGateError(ConfigError):
    """A feature gate failed, so it is unknown whether it is open."""


class MutationError(ConfigError):
    """A mutation, or one of its edits, failed; none of its changes are kept.

    Args:
        resource: Identity of the resource.
        mutation: Name of the mutation; `suspension` for the suspension edit.
        problem: The problem, in one sentence that ends with the cause.
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
    """A handler raised, or returned a status outside its vocabulary."""


class NotReadyError(OcfError):
    """Something does not exist yet; expected and temporary."""


class RetryError(NotReadyError):
    """Raised in `components`, `report` or `on_delete` of an operator: end this reconcile, and repeat it later.

    It is not a failure: no condition says `Error`. The reason is an event on the owner, as it is given.

    Args:
        reason: What the owner waits for, a text for users.
        after: The delay, for which no change of another object reconciles the owner; a change of its own spec, labels
            or annotations does at once. None for the operator's backoff.

    Raises:
        ConfigError: If the delay is not positive.

    Example:
        >>> str(RetryError("the licence server is down for maintenance", after=timedelta(minutes=5)))
        'the licence server is down for maintenance'
    """

    def __init__(self, reason: str, *, after: timedelta | None = None) -> None:
        if after is not None and after <= timedelta(0):
            raise ConfigError(f"after must be positive, or None for the operator's backoff, got {after}")
        self.after = after
        super().__init__(reason)


class DataNotExtractedError(NotReadyError):
    """A data cell was read before its producer ran in this reconcile.

    Args:
        name: Name of the cell.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'data "{name}": data not extracted')


class LeaseLostError(NotReadyError):
    """A leader lost its lease and must not write any more; another process may be the leader.

    Args:
        lease: The lease, `namespace/name`.
        identity: Identity of the process that lost it.
        problem: The reason it was lost.

    Example:
        >>> str(LeaseLostError("operators/shops", "one", "two holds it"))
        'the lease operators/shops of one is lost: two holds it'
    """

    def __init__(self, lease: str, identity: str, problem: str) -> None:
        self.lease = lease
        self.identity = identity
        super().__init__(f"the lease {lease} of {identity} is lost: {problem}")


class ReconcileError(OcfError):
    """A reconcile failed; the cause is `__cause__`.

    Args:
        component: Name of the component.
        problem: The failed step, with the resource and the reason.
        resource: Identity of the resource; empty if the failure does not belong to one.
    """

    def __init__(self, component: str, problem: str, *, resource: str = "") -> None:
        self.component = component
        self.resource = resource
        self.problem = problem
        super().__init__(f'component "{component}": {problem}')


class ProviderError(OcfError):
    """A provider of machines failed.

    Args:
        message: The problem, with the machine or instance type and the message of the provider.
        retry_after: Seconds that the provider asks the caller to wait, or None.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ProviderUnavailableError(ProviderError):
    """The provider did not answer, or failed temporarily: what was asked may or may not have been done.

    Args:
        message: The problem, with the machine or instance type and the message of the provider.
        retry_after: Seconds that the provider asks the caller to wait, or None.
        had_no_effect: Whether it is certain that nothing was done, as after HTTP 429. A wait alone does not say so: a
            gateway may answer 503 or 504 with `Retry-After` for a request that goes on behind it.

    Example:
        >>> ProviderUnavailableError("too many requests", retry_after=30, had_no_effect=True).had_no_effect
        True
    """

    def __init__(self, message: str, *, retry_after: float | None = None, had_no_effect: bool = False) -> None:
        self.had_no_effect = had_no_effect
        super().__init__(message, retry_after=retry_after)


class ProviderRefusedError(ProviderError):
    """The provider refused for good: a quota, a plan, a permission, or an invalid request."""


class CapacityExhaustedError(ProviderError):
    """The provider has no machine of that instance type in that zone now; another one may be available."""


class MachineNotFoundError(ProviderError):
    """There is no such machine."""


# Compiled on first use, as every command imports this module.
_CONFLICTING_MANAGER: Final = r'conflict with "((?:[^"\\]|\\.)*)"'
# A value that was cut for a message may have lost its end.
_ADDRESS: Final = r"(<[\w.]+ object) at 0x[0-9a-fA-F]*| at 0x[0-9a-fA-F]+(?=>)"
_ESCAPED: Final = r'\\(["\\])'
_DENIED: Final = (
    r'^(?:\S+ (?:"(?P<name>[^"]*)" )?is forbidden: )User "(?P<user>(?:[^"\\]|\\.)*)" cannot (?P<verb>\S+) resource'
    r' "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)" (?:in the namespace "(?P<namespace>[^"]+)"|at the cluster)'
)
_UNNAMED: Final = frozenset({"create", "list", "watch", "deletecollection"})  # no rule with names allows these


class StatusCause(NamedTuple):
    """One cause of a rejected request, as the API server returned it.

    Args:
        reason: Machine-readable reason, for example `FieldValueInvalid` or `FieldManagerConflict`.
        message: Human-readable message; for a `FieldManagerConflict` it names the other manager.
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

        Only the message of the API server contains it, quoted like a Go string.
        """
        named = re.match(_CONFLICTING_MANAGER, self.message) if self.reason == "FieldManagerConflict" else None
        return re.sub(_ESCAPED, r"\1", named[1]) if named else ""


class ApiError(OcfError):
    """The API server rejected a request, or the request failed.

    Args:
        message: Message of the API server.
        code: HTTP status; 0 without a response.
        reason: The `reason` of the Status, for example `NotFound`.
        causes: The causes of the Status.
        retry_after: Seconds that the API server asks the client to wait, or None.
        subject: The details of the Status that name the object: `name`, `group`, `kind`, `uid`.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: Iterable[StatusCause] = (),
        retry_after: float | None = None,
        subject: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.subject = dict(subject or {})
        super().__init__(message)


class BadRequestError(ApiError):
    """The request could not be decoded (400 and all other 4xx without a separate class)."""


class ForbiddenError(ApiError):
    """The caller is not allowed to do this (401, 403); the text also names the rule that its roles lack."""

    def __str__(self) -> str:
        import json  # commands that ask no API server start without it

        denied = re.match(_DENIED, self.message)
        # A request without credentials needs those, and no role.
        if denied is None or denied["user"] == "system:anonymous":
            return self.message
        rule = {"apiGroups": [denied["group"]], "resources": [denied["resource"]]}
        if denied["name"] and denied["verb"] not in _UNNAMED:
            rule["resourceNames"] = [denied["name"]]
        text = json.dumps({**rule, "verbs": [denied["verb"]]})
        role = f'Role in the namespace "{denied["namespace"]}"' if denied["namespace"] else "ClusterRole"
        return (
            f"{self.message}; allow it with the rule {text} of a {role} that is bound to this user, "
            f"as printed by {_role_command(denied, named='resourceNames' in rule)}"
        )


def _role_command(denied: re.Match[str], *, named: bool) -> str:
    """Return the command that prints the role with the right that a request lacked.

    Args:
        named: Whether the rule is for the name of the object only.
    """
    import shlex

    resource, slash, subresource = denied["resource"].partition("/")
    kind = "role" if denied["namespace"] else "clusterrole"
    words = ["kubectl", "create", kind, "-".join(filter(None, (denied["verb"], resource, subresource)))]
    if denied["namespace"]:
        words.append(f"--namespace={denied['namespace']}")
    group = f".{denied['group']}" if denied["group"] else ""
    words += [f"--verb={denied['verb']}", f"--resource={resource}{group}{slash}{subresource}"]
    if named:
        words.append(f"--resource-name={denied['name']}")
    return shlex.join([*words, "--dry-run=client", "--output=yaml"])


class NotFoundError(ApiError):
    """The object, or its kind, does not exist (404)."""


class NoKindMatchError(NotFoundError):
    """The API server does not serve the kind (404), in that version: its definition or its API server is missing."""


class AlreadyExistsError(ApiError):
    """An object of that name exists (409, `AlreadyExists`)."""


class ConflictError(ApiError):
    """Another client changed the object first, or another manager owns the fields (409)."""


class ExpiredError(ApiError):
    """The resource version or the continue token is too old (410)."""


class InvalidError(ApiError):
    """Rejected by validation (422; 500 for some invalid applies); the causes name the fields."""


class TooManyRequestsError(ApiError):
    """The API server limits the rate of requests (429)."""


class ServerError(ApiError):
    """The API server failed (5xx) or did not respond: a write may or may not have been applied."""


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
    subject: Mapping[str, str] | None = None,
) -> ApiError:
    r"""Return the `ApiError` whose class matches an HTTP status and a Status reason.

    Args:
        message: Message of the API server.
        code: HTTP status; 0 without a response.
        reason: The `reason` of the Status.
        causes: The causes of the Status.
        retry_after: Seconds that the API server asks the client to wait, or None.
        subject: The details of the Status that name the object: `name`, `group`, `kind`, `uid`.

    Returns:
        An error for the caller to raise; the arguments are its attributes.

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
    return kind(message, code=code, reason=reason, causes=causes, retry_after=retry_after, subject=subject)


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, those of groups inside it included; an error that is not a group yields itself."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaf_errors(one)
    else:
        yield error


def failure_text(error: BaseException) -> str:
    """Return the text of a failure for a condition or an event, which more people can read than the log.

    Only the type of an unexpected error is shown, because its text may contain anything, such as the value of a Secret.

    Args:
        error: Any error; the texts of a group are joined.

    Example:
        >>> failure_text(ReconcileError("web", "failed to apply resource v1/ConfigMap/shop/web: forbidden"))
        'failed to apply resource v1/ConfigMap/shop/web: forbidden'
        >>> failure_text(ExceptionGroup("two", [NotFoundError("no such Secret"), KeyError("hunter2")]))
        'no such Secret; unexpected KeyError'
    """
    return "; ".join(dict.fromkeys(map(_failure_text, leaf_errors(error))))


def _failure_text(error: BaseException) -> str:
    if isinstance(error, ReconcileError):
        return without_addresses(error.problem)
    return str(error) if isinstance(error, OcfError) else f"unexpected {type(error).__name__}"
