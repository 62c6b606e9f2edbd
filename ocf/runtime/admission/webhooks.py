"""What an operator declares of its kinds: how objects are defaulted, and what they are held to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf.runtime.crds.versions import version_of

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Defaulter", "Operation", "Step", "Validator", "Warn", "Webhook", "Webhooks"]

T = TypeVar("T")
U = TypeVar("U", bound="BaseModel")

_SHORTEST: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(seconds=30)  # an API server waits no longer


class Operation(StrEnum):
    """What happens to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Step(StrEnum):
    """What a webhook is asked for: first the defaults, then the verdict."""

    DEFAULT = "default"
    VALIDATE = "validate"


@dataclass(frozen=True, slots=True)
class Warn:
    """What a validator has to say of an object that it lets pass; `kubectl` shows it.

    Args:
        text: One sentence, best of at most 120 characters.
    """

    text: str


Defaulter: TypeAlias = Callable[[T], T | None]
"""Fills in what an object leaves out: changes what it is given, or returns another one."""

Validator: TypeAlias = Callable[[T, T | None, Operation], Iterable[FieldError | Warn]]
"""Says what is wrong with an object, all at once, given the object, the one before and what happens."""


@dataclass(frozen=True, slots=True)
class Webhook(Generic[T]):
    """How objects of a kind are admitted.

    The kind comes from its definition with `Webhook.of`.

    An object that the model cannot read is refused, with every field that is wrong, also without any validator. So
    what pydantic validates in Python is asked of whoever writes an object.

    Args:
        group: Group of the kind.
        version: The version in which the functions see the object; the API server converts it.
        kind: The kind.
        plural: What its resource is called.
        model: The model of the whole object; None gives the functions manifests.
        defaulters: Functions that fill in what is left out, in this order.
        validators: Functions that say what is wrong; all are asked.
        deletes: Whether the validators are asked of deletes, too: with the stored object as the new and the old one.
    """

    group: str
    version: str
    kind: str
    plural: str
    model: type[T] | None = None
    defaulters: Sequence[Defaulter[T]] = ()
    validators: Sequence[Validator[T]] = ()
    deletes: bool = False

    @staticmethod
    def of(
        definition: Manifest,
        model: type[U],
        *,
        version: str = "",
        defaulters: Sequence[Defaulter[U]] = (),
        validators: Sequence[Validator[U]] = (),
        deletes: bool = False,
    ) -> Webhook[U]:
        """Declare how objects of a custom resource are admitted.

        Args:
            definition: The CustomResourceDefinition, as `ocf.runtime.crds.crd` writes it.
            model: The model of one version: the whole object.
            version: Which version that is; empty for the one that is stored.
            defaulters: Functions that fill in what is left out.
            validators: Functions that say what is wrong.
            deletes: Whether the validators are asked of deletes, too.

        Raises:
            BuildError: If the definition has no such version.

        Example:
            >>> from pydantic import BaseModel
            >>> from ocf.runtime.crds import CRDVersion, crd
            >>> class Quota(BaseModel):
            ...     limit: int = 1
            >>> Webhook.of(crd("example.com", CRDVersion("v1", Quota)), Quota).path(Step.VALIDATE)
            '/validate/example.com/quotas'
        """
        spec = definition["spec"]
        return Webhook(
            spec["group"],
            version_of(definition, version),
            spec["names"]["kind"],
            spec["names"]["plural"],
            model,
            defaulters,
            validators,
            deletes,
        )

    def name(self, step: Step) -> str:
        """Return the name by which refusals call the webhook: `validate.shops.example.com`."""
        return ".".join(filter(None, [step, self.plural, self.group or "core.k8s.io"]))

    def path(self, step: Step) -> str:
        """Return where the webhook is on its server: `/validate/example.com/shops`."""
        return f"/{step}/{self.group or 'core'}/{self.plural}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """What the webhook is asked for; without defaulters only the verdict."""
        return (Step.DEFAULT, Step.VALIDATE) if self.defaulters else (Step.VALIDATE,)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of an operator.

    Args:
        name: What their configurations are called in the cluster.
        webhooks: One for each kind.
        timeout: How long the API server waits for an answer, 1 to 30 seconds.

    Raises:
        BuildError: If a kind is there twice, nothing is, a function is a coroutine, or the timeout is out of bounds.
    """

    name: str
    webhooks: Sequence[Webhook[Any]]
    timeout: timedelta = timedelta(seconds=10)
    _places: dict[str, tuple[Webhook[Any], Step]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {webhook.path(step): (webhook, step) for webhook in self.webhooks for step in webhook.steps}
        object.__setattr__(self, "_places", places)
        if problems := list(self._problems()):
            raise BuildError(problems)

    def _problems(self) -> Iterator[str]:
        kinds = [(webhook.group, webhook.plural) for webhook in self.webhooks]
        if not self.name:
            yield "webhooks need a name, which their configurations have in the cluster"
        if not kinds:
            yield f"webhooks {self.name}: there is none, give at least one"
        for group, plural in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
            # The API server converts objects of other versions, and would ask both.
            yield f"webhooks {self.name}: two webhooks for {plural}.{group}, which needs one for all its versions"
        for function in (one for each in self.webhooks for one in (*each.defaulters, *each.validators)):
            if iscoroutinefunction(function):
                name = getattr(function, "__qualname__", "a function")
                yield f"webhooks {self.name}: {name} is a coroutine; defaulters and validators are plain functions"
        if not _SHORTEST <= self.timeout <= _LONGEST:
            seconds = self.timeout.total_seconds()
            yield f"webhooks {self.name}: the timeout is between 1 and 30 seconds, got {seconds:g}"

    def at(self, path: str) -> tuple[Webhook[Any], Step] | None:
        """Return who answers at a path of the server, and what it is asked for there; None for nobody."""
        return self._places.get(path)
