"""What was asked of a cluster, so that a test can say: this reconcile sent no write."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from ocf.cluster.protocol import Subresource

__all__ = ["Request", "RequestLog", "Verb"]


class Verb(StrEnum):
    """What a request does."""

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
        """Whether it can change nothing."""
        return self in (Verb.GET, Verb.LIST, Verb.WATCH)


@dataclass(frozen=True, slots=True)
class Request:
    """One request; it holds no payload.

    Args:
        verb: What it asked for.
        api_version: Group and version of the kind.
        kind: The kind.
        namespace: Namespace; empty for all, or for cluster-scoped objects.
        name: Name of the object; empty for lists and watches.
        subresource: What it went through.
        field_manager: Who wrote; empty for reads.
        dry_run: Whether it only asked what would happen.
        changed: Whether the cluster is another one after it.
        code: 200, or the status it was refused with.
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


@dataclass(slots=True)
class RequestLog:
    """The requests of a cluster, oldest first.

    Args:
        limit: How many are kept; the counts go on.

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
        """Return the kept requests of some verbs."""
        return tuple(request for request in self._kept if request.verb in verbs)

    def clear(self) -> None:
        """Forget everything and count from zero."""
        self.reads = self.writes = self.changes = 0
        self._kept.clear()
