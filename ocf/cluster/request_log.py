"""Log of the requests to a cluster, for tests that count reads and writes."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ocf.cluster.protocol import Subresource

__all__ = ["Request", "RequestLog", "Verb"]


class Verb(StrEnum):
    """The verb of a request."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    APPLY = "apply"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"

    @property
    def is_read(self) -> bool:
        """Whether the verb never changes an object."""
        return self in _READS


_READS: Final = frozenset({Verb.GET, Verb.LIST, Verb.WATCH})


@dataclass(frozen=True, slots=True)
class Request:
    """One request, without its payload.

    Args:
        api_version: Group and version of the kind.
        namespace: Namespace; empty for all, or for cluster-scoped objects.
        name: Name of the object; empty for lists and watches.
        subresource: The subresource; None for the object itself.
        field_manager: The field manager of a write; empty for reads.
        dry_run: Whether it was a dry run.
        changed: Whether it changed an object.
        code: 200, or the HTTP status of its error.
        user: The user as whom it was made with `Cluster.acting_as`; empty for the user of the cluster itself.
    """

    verb: Verb
    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    field_manager: str = ""
    dry_run: bool = False
    changed: bool = False
    code: int = 200
    user: str = ""


@dataclass(slots=True)
class RequestLog:
    """The requests of a cluster, oldest first.

    Args:
        limit: The maximum number of requests that are kept; the counters include dropped ones.

    Example:
        >>> log = RequestLog()
        >>> log.record(Request(Verb.GET, "v1", "ConfigMap", "shop", "settings"))
        >>> log.reads, log.writes, [request.name for request in log]
        (1, 0, ['settings'])
    """

    limit: int = 10_000
    reads: int = field(default=0, init=False)
    writes: int = field(default=0, init=False)
    changes: int = field(default=0, init=False)
    _kept: deque[Request] = field(default_factory=deque, init=False, repr=False)

    def __iter__(self) -> Iterator[Request]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return self.reads + self.writes

    def record(self, request: Request) -> None:
        """Add a request."""
        if request.verb.is_read:
            self.reads += 1
        else:
            self.writes += 1
        self.changes += request.changed
        self._kept.append(request)
        if len(self._kept) > self.limit:
            self._kept.popleft()

    def of(self, *verbs: Verb) -> tuple[Request, ...]:
        """Return the kept requests that have one of the verbs."""
        return tuple(request for request in self._kept if request.verb in verbs)

    def clear(self) -> None:
        """Drop all requests and reset the counters."""
        self.reads = self.writes = self.changes = 0
        self._kept.clear()
