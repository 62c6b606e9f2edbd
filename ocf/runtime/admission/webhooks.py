"""Declaration of the webhooks of an operator: admission webhooks of a kind, and conversions of its versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, signature
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from ocf.cluster import Cluster
from ocf.errors import BuildError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf.objects.name_validation import dns_label
from ocf.objects.selectors import LabelSelector
from ocf.runtime.admission.match import Match, Operation
from ocf.runtime.admission.requests import OBJECT_SUBRESOURCES, AdmissionRequest, Deny, Finding, Warn
from ocf.runtime.crds import VersionedResource
from ocf.runtime.crds.versions import resource_version, served_by_model
from ocf.runtime.running_function import name_of
from ocf.schema.builtin import builtin_resource, is_builtin_group

__all__ = [
    "OWN_OBJECTS",
    "Defaulter",
    "Mutating",
    "Step",
    "Validating",
    "Validator",
    "Webhook",
    "Webhooks",
    "is_coroutine",
    "timeout_problems",
]

T = TypeVar("T")
U = TypeVar("U", bound="BaseModel")

OWN_OBJECTS: Final = "not-of-the-webhook-server"
"""Name of the match condition that leaves out what the process writes itself."""

_SHORTEST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(seconds=30)  # the maximum of the API


class Step(StrEnum):
    """Step of admission: mutation with defaults first, then validation."""

    DEFAULT = "default"
    VALIDATE = "validate"


Defaulter: TypeAlias = Callable[[T], T | None]
"""Sets default values: changes the given object and returns None, or returns a new one."""

Validator: TypeAlias = Callable[[T, T | None, Operation], Iterable[FieldError | Warn]]
"""Returns all errors and warnings of an object, given the new object, the old one and the operation."""

_Changed: TypeAlias = T | Manifest | Deny | None
_Found: TypeAlias = Finding | Iterable[Finding] | None

Mutating: TypeAlias = (
    Callable[[AdmissionRequest[T]], _Changed[T] | Awaitable[_Changed[T]]]
    | Callable[[AdmissionRequest[T], Cluster], Awaitable[_Changed[T]]]
)
"""Returns the changed object, as the model or as a manifest, None for no change, or a `Deny`."""

Validating: TypeAlias = (
    Callable[[AdmissionRequest[T]], _Found | Awaitable[_Found]]
    | Callable[[AdmissionRequest[T], Cluster], Awaitable[_Found]]
)
"""Returns what it finds: `Deny`, `FieldError`, `Warn` and `AuditAnnotation`, one or several, or None."""


@dataclass(frozen=True)
class Webhook(Generic[T]):
    """An admission webhook of a kind.

    `Webhook.of` reads the kind from its model.

    The short forms `defaulters` and `validators` are plain functions of the object. They are not called for an object
    that is being deleted, and only validators are called for a delete. An object that the model cannot read is rejected
    with every invalid field before validators are called, also if there is no function at all. So the validation of the
    pydantic model applies to all clients that write such an object.

    The full forms `mutating` and `validating` get the request, with the user, and decide on every request that the
    webhook matches. Plain functions run in threads, coroutine functions in the event loop of the process; these may
    take the cluster as a second parameter: that of the operator, which reads from a cache.

    Args:
        group: Group of the kind; empty for the core group.
        version: Version in which the functions get the object; the API server converts it.
        plural: Plural name of the resource.
        model: The model of the whole object; None passes manifests to the functions.
        defaulters: Functions that set default values, called in this order.
        validators: Functions that return errors and warnings; all are called.
        mutating: Functions of the request that change the object or reject the request, called after the defaulters, in
            this order; each gets the object as the one before has left it.
        validating: Functions of the request that reject it or find something, called for what the validators accept;
            coroutine functions for what plain functions accept.
        name: Distinguishes several webhooks of a kind, a DNS label; it is a part of their names and paths.
        match: For which requests it is called.
        failure_policy: Whether the API server rejects a request (`"Fail"`) or proceeds (`"Ignore"`) if the webhook
            cannot be called in time. With `"Ignore"`, a request whose function fails is allowed with a warning.
        timeout: How long the API server waits for it, 1 to 30 seconds; None for the time of all webhooks.
        reinvoke: Whether it is called again if another webhook has changed the object after it.
        side_effects: Whether it changes something else than the object. A handler must not do so on a dry run.

    Raises:
        BuildError: If a function has other parameters, or an option is not allowed.
    """

    group: str
    version: str
    kind: str
    plural: str
    model: type[T] | None = None
    defaulters: Sequence[Defaulter[T]] = ()
    validators: Sequence[Validator[T]] = ()
    mutating: Sequence[Mutating[T]] = field(default=(), kw_only=True)
    validating: Sequence[Validating[T]] = field(default=(), kw_only=True)
    name: str = field(default="", kw_only=True)
    match: Match = field(default_factory=Match, kw_only=True)
    failure_policy: Literal["Fail", "Ignore"] = field(default="Fail", kw_only=True)
    timeout: timedelta | None = field(default=None, kw_only=True)
    reinvoke: bool = field(default=False, kw_only=True)
    side_effects: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        where = f"the webhook of {self.kind}" + (f' "{self.name}"' if self.name else "")
        if problems := [f"{where}: {problem}" for problem in self._problems()]:
            raise BuildError(problems)

    @staticmethod
    def of(  # noqa: PLR0913 (each is a part of the declaration)
        model: type[U],
        definition: Manifest | VersionedResource | None = None,
        *,
        version: str = "",
        defaulters: Sequence[Defaulter[U]] = (),
        validators: Sequence[Validator[U]] = (),
        mutating: Sequence[Mutating[U]] = (),
        validating: Sequence[Validating[U]] = (),
        name: str = "",
        match: Match | None = None,
        failure_policy: Literal["Fail", "Ignore"] = "Fail",
        timeout: timedelta | None = None,
        reinvoke: bool = False,
        side_effects: bool = False,
    ) -> Webhook[U]:
        """Return a webhook of a custom resource, or of a built-in kind.

        Args:
            model: The whole object: a `CustomResource`, the model of one version of the definition, or a model of the
                Kubernetes client, such as `V1Pod`, or a class derived from it.
            definition: The CustomResourceDefinition, or the resource with its versions; None for that of the
                `CustomResource`, and for built-in kinds.
            version: The version of the model; empty for the storage version of a definition, or for the version of a
                resource that has the model.
            defaulters: See `Webhook`, as for all that follow.

        Raises:
            BuildError: If there is no such version, it has another model, the model has no definition, or `Webhook`
                rejects an option.

        Example:
            >>> from kubernetes.client import V1Pod
            >>> def restricted(request: AdmissionRequest[V1Pod]) -> Deny | None:
            ...     images = [one.image or "" for one in request.new.spec.containers]
            ...     if all(image.startswith("registry.example.com/") for image in images):
            ...         return None
            ...     return Deny(f"{request.user.username} may use images of registry.example.com only")
            >>> Webhook.of(V1Pod, validating=[restricted], name="registry").path(Step.VALIDATE)
            '/validate/core/pods/registry'
        """
        found = served_by_model(model, version) if definition is None else resource_version(definition, model, version)
        return Webhook(
            *found,
            model,
            defaulters,
            validators,
            mutating=mutating,
            validating=validating,
            name=name,
            match=match or Match(),
            failure_policy=failure_policy,
            timeout=timeout,
            reinvoke=reinvoke,
            side_effects=side_effects,
        )

    def qualified_name(self, step: Step) -> str:
        """Return the webhook's full name, which error messages show: `validate.shops.example.com`."""
        return ".".join(filter(None, [step, self.name, self.plural, self.group or "core.k8s.io"]))

    def path(self, step: Step) -> str:
        """Return the webhook's path on the server: `/validate/example.com/shops`."""
        return "/".join(["", str(step), self.group or "core", self.plural, *filter(None, [self.name])])

    def handlers(self, step: Step) -> Sequence[Callable[..., Any]]:
        """Return the functions of the full form of a step."""
        return self.mutating if step is Step.DEFAULT else self.validating

    @property
    def reads_cluster(self) -> bool:
        """Whether a function gets the cluster."""
        return bool(self._takers)

    def takes_cluster(self, function: Callable[..., Any]) -> bool:
        """Return whether a function of the full forms takes the cluster beside the request."""
        return any(function is one for one in self._takers)

    @cached_property
    def _takers(self) -> tuple[Callable[..., Any], ...]:
        # Reading a signature takes as long as all else that a request needs before its function is called.
        handlers: tuple[Callable[..., Any], ...] = (*self.mutating, *self.validating)
        return tuple(one for one in handlers if _parameters(one) == 2)  # noqa: PLR2004 (request and cluster)

    @property
    def is_builtin(self) -> bool:
        """Whether its kind is built in."""
        return is_builtin_group(self.group)

    @property
    def is_cluster_scoped(self) -> bool:
        """Whether its kind is built in, and its objects have no namespace."""
        found = builtin_resource(self.group, self.version, self.kind)
        return found is not None and not found.namespaced

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the webhook: only validation without functions that change the object."""
        found = []
        if self.defaulters or self.mutating:
            found.append(Step.DEFAULT)
        # Without any function of the full forms, the model itself is the validation.
        if self.validators or self.validating or not self.mutating:
            found.append(Step.VALIDATE)
        return tuple(found)

    def operations(self, step: Step) -> list[Operation]:
        """Return the operations for which the webhook is called in a step."""
        if step is Step.DEFAULT and not self.mutating:
            return [one for one in self.match.operations if one in _WRITES]
        return list(self.match.operations)

    def _problems(self) -> Iterator[str]:
        yield from self._function_problems()
        if self.name and (problems := dns_label(self.name)):
            yield f'the name must be a DNS label such as sidecar, got "{self.name}": {"; ".join(problems)}'
        for part in ("group", "version", "kind", "plural"):
            if "*" in getattr(self, part):
                yield f'{part} must be that of one kind, got "{getattr(self, part)}": a policy can be for all kinds'
        if self.failure_policy not in ("Fail", "Ignore"):
            yield f'failure_policy must be "Fail" or "Ignore", got {self.failure_policy!r}'
        if OWN_OBJECTS in self.match.conditions:
            yield f'the condition "{OWN_OBJECTS}" is set by ocf: choose another name'
        if self.timeout is not None:
            yield from timeout_problems(self.timeout)
        if self.reinvoke and Step.DEFAULT not in self.steps:
            yield "reinvoke needs defaulters or `mutating`: a webhook that only validates is called once"
        parts = sorted({*self.match.subresources} - OBJECT_SUBRESOURCES)
        if parts and (self.defaulters or self.validators):
            yield (
                f"defaulters and validators get whole objects, which {self.plural}/{parts[0]} does not have: use "
                "`mutating` and `validating`, and read `request.object`"
            )
        if parts and not LabelSelector.of(self.match.objects).matches({}):
            yield (
                f"the selector `objects` never matches {self.plural}/{parts[0]}, whose objects have no labels: "
                "leave it out, or select namespaces"
            )
        yield from (
            f"no function is called at the step {step}: defaulters are called for CREATE and UPDATE only"
            for step in self.steps
            if not self.operations(step)
        )

    def _function_problems(self) -> Iterator[str]:
        for option, functions in (("defaulters", self.defaulters), ("validators", self.validators)):
            full = "mutating" if option == "defaulters" else "validating"
            for function in filter(is_coroutine, functions):
                yield (
                    f"{name_of(function)} is a coroutine function, and {option} are plain functions: make it a "
                    f"function of (request) or (request, cluster) in `{full}`"
                )
        handler: Callable[..., Any]
        for handler in (*self.mutating, *self.validating):
            name, count = name_of(handler), _parameters(handler)
            if isasyncgenfunction(handler):
                yield f"{name} yields; a coroutine function returns what it has found"
            elif not count:
                seen = f"({', '.join(signature(handler).parameters)})"
                yield f"{name} must take one or two parameters, (request) or (request, cluster), got {seen}"
            elif count == 2 and not is_coroutine(handler):  # noqa: PLR2004 (request and cluster)
                yield (
                    f"{name} is a plain function and takes the cluster, whose reads are awaited: make it a coroutine "
                    "function (async def), or take (request) only"
                )


_WRITES: Final = (Operation.CREATE, Operation.UPDATE)


def is_coroutine(function: Callable[..., Any]) -> bool:
    """Return whether calling a function, or an object with `__call__`, returns a coroutine."""
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _parameters(function: Callable[..., Any]) -> int:
    """Return whether a function is called with one or two parameters, by those without a default; 0 for neither."""
    found = signature(function)
    needed = found.replace(parameters=[one for one in found.parameters.values() if one.default is Parameter.empty])
    for shown in (needed, found):
        for count in (1, 2):
            with suppress(TypeError):
                shown.bind(*range(count))
                return count
    return 0


def timeout_problems(timeout: timedelta) -> Iterator[str]:
    """Yield why the API server does not wait so long."""
    if not _SHORTEST <= timeout <= _LONGEST:
        yield f"the timeout must be between 1 and 30 seconds, got {timeout.total_seconds():g}"
    elif timeout % _SHORTEST:
        yield f"the timeout must be a whole number of seconds, got {timeout.total_seconds():g}"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of an operator.

    Args:
        name: Name of their configurations in the cluster.
        webhooks: The admission webhooks; several of a kind need different names.
        timeout: How long the API server waits for a response of an admission webhook that has no time of its own, 1 to
            30 seconds. It always waits 30 seconds for a conversion.
        conversions: Resources with several versions, whose objects are converted by a conversion webhook.

    Raises:
        BuildError: If two webhooks of a kind have the same name, there is no webhook, the timeout is out of bounds, or
            a resource has two conversion webhooks or only one version.
    """

    name: str
    webhooks: Sequence[Webhook[Any]] = ()
    timeout: timedelta = timedelta(seconds=10)
    conversions: Sequence[VersionedResource] = ()

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise BuildError(problems)

    def _problems(self) -> Iterator[str]:
        found = [(webhook.group, webhook.plural, webhook.name) for webhook in self.webhooks]
        if not self.name:
            yield "webhooks need a name, which is the name of their configurations"
        if not found and not self.conversions:
            yield f"webhooks {self.name}: expected at least one webhook, got none"
        for group, plural, name in sorted({one for one in found if found.count(one) > 1}):
            # The API server converts objects of other versions, so versions do not distinguish them.
            which = f'named "{name}"' if name else "without a name"
            yield (
                f"webhooks {self.name}: {plural}.{group or 'core'} has two webhooks {which}; several of a kind need "
                'different names, such as name="sidecar"'
            )
        converted = [resource.name for resource in self.conversions]
        for name in sorted({name for name in converted if converted.count(name) > 1}):
            yield f"webhooks {self.name}: {name} has two conversion webhooks, expected one"
        for resource in self.conversions:
            if not resource.has_conversions:
                yield f"webhooks {self.name}: {resource.name} has one version, so it needs no conversion webhook"
        yield from (f"webhooks {self.name}: {problem}" for problem in timeout_problems(self.timeout))

    def timeout_of(self, webhook: Webhook[Any]) -> timedelta:
        """Return how long the API server waits for a webhook."""
        return webhook.timeout if webhook.timeout is not None else self.timeout
