"""External resources: what a component manages outside of the cluster, such as a bucket, a database role, a dashboard.

The author writes a `Client` that reads, applies and deletes resources of one kind; a `Builder` declares one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.concepts.external import Client, ExternalResource, Identity
from ocf.concepts.resource import ObjectDefaults
from ocf.errors import BuildError
from ocf.primitives.builder import DataReader

__all__ = ["Builder", "Client", "Identity", "Record"]

DesiredT = TypeVar("DesiredT")
ObservedT = TypeVar("ObservedT")
ValueT = TypeVar("ValueT")


class Record(BaseModel):
    """What an owner's status records of an external resource, before it is created and until it is gone.

    The model of the status needs a field `external: dict[str, Record] = {}`. Components write it; read it to show what
    exists, and do not change it.

    Attributes:
        operator: The operator that manages it.
        component: The component that manages it.
        kind: Kind of its client.
        name: Its name, as it was declared.
        target: Its target, if several were declared.
        key: Its idempotency key.
        id: What the system has named it.
        applied: Digest of the desired state that was applied last.
        sent: When the last call that creates it was sent, if the client has a `visible_after`.
    """

    model_config = ConfigDict(frozen=True)

    operator: str = ""
    component: str = ""
    kind: str = ""
    name: str = ""
    target: str = ""
    key: str = ""
    id: str = ""
    applied: str = ""
    sent: str = ""


class Builder(DataReader, Generic[DesiredT, ObservedT]):
    """Builds an external resource, for `with_resource` of a component.

    Args:
        client: Reads, applies and deletes it.
        name: Its name in the system. Owners of different namespaces may have the same name, so it should contain both.
        desired: Its desired state, or a function that returns it in each reconcile, for one that depends on data cells.

    Example:
        >>> class Buckets(Client[dict[str, int], dict[str, int]]):
        ...     kind = "Bucket"
        ...     made: dict[str, dict[str, int]] = {}
        ...     async def read(self, identity: Identity) -> dict[str, int] | None:
        ...         return self.made.get(identity.name)
        ...     async def apply(self, identity, desired, observed):
        ...         self.made[identity.name] = desired
        ...         return desired
        ...     async def delete(self, identity: Identity) -> None:
        ...         self.made.pop(identity.name, None)
        >>> Builder(Buckets(), name="town-corner", desired={"size": 3}).build().identity
        'external/Bucket/town-corner'
    """

    def __init__(
        self,
        client: Client[DesiredT, ObservedT],
        *,
        name: str,
        desired: DesiredT | Callable[[], DesiredT],
    ) -> None:
        self._client = client
        self._name = name
        self._desired = desired
        self._suspended: DesiredT | Callable[[], DesiredT] | None = None
        self._targets: tuple[str, ...] | None = None
        self._guard: Callable[..., StatusReport[GuardStatus]] | None = None
        self._extractions: list[tuple[Data[Any], Callable[[ObservedT], Any]]] = []
        self._reads = []

    def with_targets(self, *targets: str) -> Self:
        """Set the targets at which the resource is, such as the instances that match a selector.

        Each has its own record, outcome, limits and backoff; one that fails or hangs holds up neither another nor a
        worker. The resource is deleted at a target that leaves. Without this method there is one target.

        Args:
            targets: Names of the targets, which `Identity.target` has; none at all is allowed.
        """
        self._targets = tuple(dict.fromkeys(targets))
        return self

    def with_suspension(self, desired: DesiredT | Callable[[], DesiredT]) -> Self:
        """Set the desired state while the component is suspended; by default the resource stays as it is.

        Args:
            desired: The state, or a function that returns it.
        """
        self._suspended = desired
        return self

    def with_guard(
        self, guard: Callable[[], StatusReport[GuardStatus]] | Callable[[str], StatusReport[GuardStatus]] | None
    ) -> Self:
        """Set the guard, which can block the resource and all resources registered after it.

        Args:
            guard: Called once all required data is extracted; None clears it. With an argument it is called for each
                target, and blocks the resource at that target alone.
        """
        self._guard = guard
        return self

    def extract_into(self, cell: Data[ValueT], extract: Callable[[ObservedT], ValueT]) -> Self:
        """Declare that the resource fills a data cell, such as a connection string for a Secret.

        Args:
            extract: Called with the resource as it was observed; its result is treated as a secret.
        """
        self._extractions.append((cell, extract))
        return self

    def with_defaults(self, defaults: ObjectDefaults) -> Self:
        """Return the builder: an external resource takes neither name nor labels from its owner."""
        del defaults
        return self

    def build(self) -> ExternalResource[DesiredT, ObservedT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        problems = list(self._problems())
        if problems:
            raise BuildError(problems)
        return ExternalResource(
            client=self._client,
            name=self._name,
            desired=self._desired,
            suspended=self._suspended,
            targets=self._targets,
            guard=self._guard,
            extractions=tuple(self._extractions),
            reads=tuple(self._reads),
        )

    def _problems(self) -> Iterator[str]:
        if not isinstance(self._client, Client):
            yield f"the client of an external resource must be a Client, got {type(self._client).__name__}"
            return
        yield from _client_problems(self._client)
        yield from (f"external resource: {problem}" for problem in _name_problems("name", self._name))
        for target in self._targets or ():
            yield from (f'external resource "{self._name}": {problem}' for problem in _name_problems("target", target))
        if self._desired is None:
            yield f'external resource "{self._name}": the desired state cannot be None'
        if self._extractions and len(self._targets or ()) > 1:
            yield (
                f'external resource "{self._name}" fills data from several targets, of which only one can have the '
                "value: register one resource for each target"
            )


def _client_problems(client: Client[Any, Any]) -> Iterator[str]:
    name = type(client).__name__
    kind: object = getattr(client, "kind", None)
    if not isinstance(kind, str) or not kind.isalnum():
        yield f'{name}.kind must be a word such as "Bucket", got {kind!r:.60}'
    for option in ("time_limit", "resync"):
        value: object = getattr(client, option)
        if not isinstance(value, timedelta) or value <= timedelta(0):
            yield f"{name}.{option} must be a positive timedelta, got {value!r:.60}"
    visible: object = client.visible_after
    if not isinstance(visible, timedelta) or visible < timedelta(0):
        yield f"{name}.visible_after must be a timedelta of zero or more, got {visible!r:.60}"
    most: object = client.max_calls
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        yield f"{name}.max_calls must be an integer of at least 1, got {most!r:.60}"


def _name_problems(what: str, name: object) -> Sequence[str]:
    if not isinstance(name, str) or not name or not name.isprintable():
        return [f"{what} must be a text that can be printed, and not empty, got {name!r:.60}"]
    return []
