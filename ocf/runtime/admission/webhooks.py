"""Declaration of the webhooks of an operator: defaulters and validators of a kind, and conversions of its versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ocf.cluster import Cluster
from ocf.errors import BuildError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf.runtime.admission.match import Operation
from ocf.runtime.crds import VersionedResource
from ocf.runtime.crds.versions import resource_of, resource_version

__all__ = [
    "AdmissionRequest",
    "AsyncValidator",
    "Defaulter",
    "Step",
    "Validator",
    "Warn",
    "Webhook",
    "Webhooks",
]

T = TypeVar("T")
U = TypeVar("U", bound="BaseModel")

_SHORTEST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(seconds=30)  # the maximum of the API


class Step(StrEnum):
    """Step of admission: mutation with defaults first, then validation."""

    DEFAULT = "default"
    VALIDATE = "validate"


@dataclass(frozen=True, slots=True)
class Warn:
    """A warning of a validator, which does not reject the object; `kubectl` shows it.

    Args:
        text: One sentence, preferably of at most 120 characters.
    """

    text: str


Defaulter: TypeAlias = Callable[[T], T | None]
"""Sets default values: changes the given object and returns None, or returns a new one."""

Validator: TypeAlias = Callable[[T, T | None, Operation], Iterable[FieldError | Warn]]
"""Returns all errors and warnings of an object, given the new object, the old one and the operation."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request, as a validator gets it that is a coroutine function.

    Args:
        operation: The operation.
        dry_run: Whether the object will not be stored.
        cluster: The cluster, to look at other objects. In an operator it reads from a cache of the process, whether it
            leads or not, which lists and watches a kind from the first read on.
    """

    operation: Operation
    dry_run: bool
    cluster: Cluster


AsyncValidator: TypeAlias = Callable[[T, T | None, AdmissionRequest], Awaitable[Iterable[FieldError | Warn]]]
"""A coroutine function that returns errors and warnings which depend on other objects."""


@dataclass(frozen=True)
class Webhook(Generic[T]):
    """The admission webhook of a kind.

    `Webhook.of` reads the kind from its CustomResourceDefinition.

    An object that the model cannot read is rejected with every invalid field, also without any validator. So the
    validation of the pydantic model applies to all clients that write such an object.

    Args:
        group: Group of the kind.
        version: Version in which the functions get the object; the API server converts it.
        plural: Plural name of the resource.
        model: The model of the whole object; None passes manifests to the functions.
        defaulters: Functions that set default values, called in this order.
        validators: Functions that return errors and warnings; all are called. Those that are coroutine functions get an
            `AdmissionRequest` in place of the operation, and are called for what the others accept.
        deletes: Whether the validators are also called for deletes, with the stored object as both arguments.
    """

    group: str
    version: str
    kind: str
    plural: str
    model: type[T] | None = None
    defaulters: Sequence[Defaulter[T]] = ()
    validators: Sequence[Validator[T] | AsyncValidator[T]] = ()
    deletes: bool = False

    @staticmethod
    def of(
        model: type[U],
        definition: Manifest | VersionedResource | None = None,
        *,
        version: str = "",
        defaulters: Sequence[Defaulter[U]] = (),
        validators: Sequence[Validator[U] | AsyncValidator[U]] = (),
        deletes: bool = False,
    ) -> Webhook[U]:
        """Return the webhook of a custom resource.

        Args:
            model: The whole object: a `CustomResource`, or the model of one version of the definition.
            definition: The CustomResourceDefinition, or the resource with its versions; None for that of the
                `CustomResource`.
            version: The version of the model; empty for the storage version of a definition, or for the version of a
                resource that has the model.
            defaulters: Functions that set default values.
            validators: Functions that return errors and warnings, and coroutine functions.
            deletes: Whether the validators are also called for deletes.

        Raises:
            BuildError: If there is no such version, it has another model, or the model has no definition.

        Example:
            >>> from ocf.runtime.crds import CamelModel, CustomResource
            >>> class QuotaSpec(CamelModel):
            ...     limit: int = 1
            >>> class Quota(CustomResource[QuotaSpec], group="example.com", version="v1"):
            ...     '''A limit.'''
            >>> Webhook.of(Quota).path(Step.VALIDATE)
            '/validate/example.com/quotas'
        """
        found = resource_version(resource_of(model) if definition is None else definition, model, version)
        return Webhook(*found, model, defaulters, validators, deletes)

    def name(self, step: Step) -> str:
        """Return the webhook's name, which error messages show: `validate.shops.example.com`."""
        return ".".join(filter(None, [step, self.plural, self.group or "core.k8s.io"]))

    def path(self, step: Step) -> str:
        """Return the webhook's path on the server: `/validate/example.com/shops`."""
        return f"/{step}/{self.group or 'core'}/{self.plural}"

    @property
    def reads_cluster(self) -> bool:
        """Whether a validator is a coroutine function."""
        return any(map(iscoroutinefunction, self.validators))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the webhook: only validation without defaulters."""
        return (Step.DEFAULT, Step.VALIDATE) if self.defaulters else (Step.VALIDATE,)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of an operator.

    Args:
        name: Name of their configurations in the cluster.
        webhooks: One for each kind.
        timeout: How long the API server waits for a response of an admission webhook, 1 to 30 seconds. It always waits
            30 seconds for a conversion.
        conversions: Resources with several versions, whose objects are converted by a conversion webhook.

    Raises:
        BuildError: If a kind has two webhooks, there is no webhook, a defaulter is a coroutine, the timeout is out of
            bounds, or a resource has two conversion webhooks or only one version.
    """

    name: str
    webhooks: Sequence[Webhook[Any]] = ()
    timeout: timedelta = timedelta(seconds=10)
    conversions: Sequence[VersionedResource] = ()

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise BuildError(problems)

    def _problems(self) -> Iterator[str]:
        kinds = [(webhook.group, webhook.plural) for webhook in self.webhooks]
        if not self.name:
            yield "webhooks need a name, which is the name of their configurations"
        if not kinds and not self.conversions:
            yield f"webhooks {self.name}: expected at least one webhook, got none"
        for group, plural in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
            # The API server converts objects of other versions, so it would call both.
            yield f"webhooks {self.name}: {plural}.{group} has two webhooks, expected one for all its versions"
        converted = [resource.name for resource in self.conversions]
        for name in sorted({name for name in converted if converted.count(name) > 1}):
            yield f"webhooks {self.name}: {name} has two conversion webhooks, expected one"
        for resource in self.conversions:
            if not resource.has_conversions:
                yield f"webhooks {self.name}: {resource.name} has one version, so it needs no conversion webhook"
        yield from self._function_problems()
        if not _SHORTEST <= self.timeout <= _LONGEST:
            seconds = self.timeout.total_seconds()
            yield f"webhooks {self.name}: the timeout must be between 1 and 30 seconds, got {seconds:g}"

    def _function_problems(self) -> Iterator[str]:
        for each in self.webhooks:
            for function in filter(iscoroutinefunction, each.defaulters):
                name = getattr(function, "__qualname__", "a function")
                yield f"webhooks {self.name}: {name} is a coroutine; defaulters are plain functions"
            for function in filter(isasyncgenfunction, each.validators):
                name = getattr(function, "__qualname__", "a function")
                yield f"webhooks {self.name}: {name} yields; a coroutine function returns what it has found"
