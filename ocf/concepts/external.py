"""External resources: what a component manages outside of the cluster, and the client of the system that holds it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from ocf.concepts.data import AuthorCode, Data
from ocf.concepts.resource import DataRead
from ocf.concepts.status import AliveStatus, GuardStatus, StatusReport
from ocf.errors import HandlerError
from ocf.lazy_types.signatures import required_parameters
from ocf.objects import Manifest, ObjectKey

__all__ = ["GROUP", "Client", "ExternalResource", "Identity", "form_of", "values_of"]

DesiredT = TypeVar("DesiredT")
ObservedT = TypeVar("ObservedT")

GROUP: Final = "external"
"""What the key of an external resource has in place of an API version."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a call of a client is about.

    Args:
        name: Name of the resource, as it was declared.
        key: Idempotency key: a UUID that is the same in each call for one resource of one owner at one target, also
            after a restart. Store it with the resource (a tag, a label), or send it with the call that creates.
        target: The target; empty if only one was declared.
        id: What the system has named the resource, from `Client.id_of`; empty until that is known.
    """

    name: str
    key: str
    target: str = ""
    id: str = ""


class Client(ABC, Generic[DesiredT, ObservedT]):
    """Reads, applies and deletes the resources of one kind in an external system.

    Desired and observed values are pydantic models, dataclasses or dicts. A call may be repeated, because its answer
    may be lost: each must lead to the same state when it is sent again.

    A call that fails raises an error: a `TimeoutError`, a `ConnectionError`, an `ocf.errors.ProviderUnavailableError`
    or an HTTP status of 429 or from 500 on means that the target does not answer now, and no resource calls it for a
    while. Any other error is one of this resource alone. Texts of errors of `ocf` are shown to users, of others only
    the type.

    Attributes:
        kind: Kind of the resources, `Bucket`; a part of their identity, so it must not change.
        time_limit: How long a call may take.
        resync: Period after which a resource that is in sync is read again.
        max_calls: How many calls to one target may be under way at once.
        visible_after: How long a resource that was created may be missing in what is read. Zero for a system that
            always shows it at once.
    """

    kind: str
    time_limit: timedelta = timedelta(seconds=10)
    resync: timedelta = timedelta(minutes=10)
    max_calls: int = 8
    visible_after: timedelta = timedelta(0)

    @abstractmethod
    async def read(self, identity: Identity) -> ObservedT | None:
        """Return the resource as it is; None if it does not exist.

        It finds the resource also while `identity.id` is empty, by name or key: the answer that had the id may be lost.
        """

    @abstractmethod
    async def apply(self, identity: Identity, desired: DesiredT, observed: ObservedT | None) -> ObservedT:
        """Create the resource if `observed` is None, or change it; return it as it is then."""

    @abstractmethod
    async def delete(self, identity: Identity) -> None:
        """Delete the resource, or a part of it; called until `read` returns None. One that is gone is a success."""

    def id_of(self, observed: ObservedT) -> str:
        """Return what the system has named the resource; empty if that is the declared name."""
        del observed
        return ""

    def key_of(self, observed: ObservedT) -> str:
        """Return the key that is stored with the resource; empty if the system stores none.

        With it, a resource of another owner is recognized, and one of which the record was lost.
        """
        del observed
        return ""

    def status(self, observed: ObservedT) -> StatusReport[AliveStatus]:
        """Return the status of a resource that is in sync; while it is not healthy, it is read more often."""
        del observed
        return StatusReport(AliveStatus.HEALTHY)

    def differences(self, desired: DesiredT, observed: ObservedT) -> Sequence[str]:
        """Return the fields that have to be changed, `labels.team`.

        By default each value that the desired state sets, and that the observed one has a field for, is compared: maps
        key by key, lists as a whole. What the system adds or defaults is no difference.
        """
        return tuple(_differences(desired, observed, ()))


@dataclass(frozen=True, eq=False)
class ExternalResource(Generic[DesiredT, ObservedT]):
    """An external resource of a component; see `ocf.primitives.external.Builder`.

    Args:
        name: Its name in the system.
        desired: The desired state, or what returns it in each reconcile.
        suspended: The desired state while the component is suspended; None leaves the resource as it is.
        targets: The targets at which it is, each with a registration of its own; None for one without a name.
        target: The target of this registration.
        guard: Whether it may be reconciled now; one that requires an argument gets the target.
    """

    client: Client[DesiredT, ObservedT]
    name: str
    desired: DesiredT | Callable[[], DesiredT]
    suspended: DesiredT | Callable[[], DesiredT] | None = None
    targets: tuple[str, ...] | None = None
    target: str = ""
    guard: Callable[..., StatusReport[GuardStatus]] | None = None
    extractions: tuple[tuple[Data[Any], Callable[[ObservedT], Any]], ...] = ()
    reads: tuple[DataRead, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """A key that no object of a cluster has."""
        return ObjectKey(GROUP, self.client.kind, f"{self.name}@{self.target}" if self.target else self.name)

    @property
    def identity(self) -> str:
        """The key as text, `external/Bucket/corner`, with several targets `external/Dashboard/corner@eu`."""
        return str(self.key)

    def is_same(self, other: ExternalResource[Any, Any]) -> bool:
        """Return whether another one is the same resource, maybe at another target."""
        return (self.client.kind, self.name, self.targets) == (other.client.kind, other.name, other.targets)

    def at_each_target(self) -> Sequence[ExternalResource[DesiredT, ObservedT]]:
        """Return the resource once for each of its targets."""
        return [self] if self.targets is None else [replace(self, target=target) for target in self.targets]

    @property
    def consumed_data(self) -> tuple[DataRead, ...]:
        """The cells it reads, in order of declaration."""
        return self.reads

    @property
    def produced_data(self) -> tuple[Data[Any], ...]:
        """The cells it fills, each once, in order of declaration."""
        return tuple(dict.fromkeys(cell for cell, _ in self.extractions))

    @property
    def has_guard(self) -> bool:
        """Whether more than its required data decides when the resource may be reconciled."""
        return self.guard is not None

    def guard_status(self) -> StatusReport[GuardStatus]:
        """Return whether the resource may be reconciled now: it needs all its required data, then its guard decides."""
        missing = [f'"{read.cell.name}"' for read in self.reads if not (read.optional or read.cell.is_set)]
        if missing:
            return StatusReport(GuardStatus.BLOCKED, f"waiting for data {', '.join(missing)}")
        if self.guard is None:
            return StatusReport(GuardStatus.UNBLOCKED)
        code = AuthorCode(self.identity)
        with code.raising(lambda error: HandlerError(f"guard: {code.error_text(error)}")):
            report: object = self.guard(self.target) if required_parameters(self.guard) else self.guard()
        if not isinstance(report, StatusReport) or report.status not in tuple(GuardStatus):
            raise HandlerError(f"guard must return a StatusReport of a GuardStatus, got {type(report).__name__}")
        return report

    def desired_state(self, *, suspended: bool = False) -> DesiredT:
        """Return the desired state; an error of the author's function is a `HandlerError`."""
        given: Any = self.suspended if suspended else self.desired
        if not callable(given):
            state: DesiredT = given
            return state
        code = AuthorCode(self.identity)
        with code.raising(lambda error: HandlerError(f"desired state: {code.error_text(error)}")):
            returned: Any = given()
        if returned is None or inspect.iscoroutine(returned):
            raise HandlerError(f"desired state: the function must return one, got {type(returned).__name__}")
        made: DesiredT = returned
        return made

    def extract_data(self, observed: Any) -> None:
        """Fill the cells from what was observed; the values may be credentials, so they count as those of a Secret."""
        for cell, extract in self.extractions:
            try:
                value = extract(observed)
            except Exception as error:
                raise HandlerError(f'extract data "{cell.name}": {type(error).__name__}') from error
            cell.put(value, from_secret=True)

    def render(self, *, suspended: bool = False, ignore_fields: object = ()) -> Manifest:
        """Return what is desired in the form of an object, for previews: secret values of pydantic are hidden."""
        del ignore_fields
        return form_of(self.identity, self.desired_state(suspended=suspended))


def form_of(identity: str, state: object) -> Manifest:
    """Return a state of an external resource in the form of an object, to show it.

    Example:
        >>> form_of("external/Bucket/corner", {"size": 3})
        {'apiVersion': 'external', 'kind': 'Bucket', 'metadata': {'name': 'corner'}, 'spec': {'size': 3}}
    """
    api_version, kind, name = identity.split("/", 2)
    dump = getattr(state, "model_dump", None)
    spec = dump(mode="json", exclude_none=True) if dump is not None else _shown(values_of(state))
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def values_of(state: object) -> Any:
    """Return the values of a model, a dataclass or a map, without those that are None; anything else as it is.

    Example:
        >>> values_of({"size": 3, "motto": None, "tags": [{"name": "a"}]})
        {'size': 3, 'tags': [{'name': 'a'}]}
    """
    found = _fields(state)
    if found is not None:
        return {key: values_of(value) for key, value in found.items() if value is not None}
    if isinstance(state, list | tuple):
        return [values_of(value) for value in state]
    return state


def _fields(state: object) -> Mapping[Any, Any] | None:
    """Return the fields of a model, a dataclass or a map; None for any other value."""
    names = getattr(type(state), "model_fields", None)
    if names is None and is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state)]
    if names is not None:
        return {name: getattr(state, name) for name in names}
    return state if isinstance(state, Mapping) else None


def _differences(desired: object, observed: object, path: tuple[str, ...]) -> Iterator[str]:
    wanted, found = _fields(desired), _fields(observed)
    if wanted is None or found is None:
        if values_of(desired) != values_of(observed):
            yield ".".join(path)
        return
    for key, value in wanted.items():
        # What a model has no field for cannot be observed, such as a password.
        if value is not None and (key in found or isinstance(observed, Mapping)):
            yield from _differences(value, found.get(key), (*path, str(key)))


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
