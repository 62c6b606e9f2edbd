"""The cluster behind the server: what a request goes through, and what the server itself has to know.

Every verb goes through `front`, which is the embedded cluster or anything around it that is a `Cluster`: a wrapper that
injects faults, counts, or delays. What only concerns HTTP (which kinds there are, whether an object is still there
after its delete) is read off the embedded cluster itself, past the front and its log.

How strictly a write is checked, and who hears its warnings, differs from request to request, and no verb of `Cluster`
says it. So what a wrapper is put around is not the cluster itself, but what stands for it in the request at hand.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from ocf.cluster.protocol import Cluster
from ocf.embedded.api.write_options import FieldValidation
from ocf.embedded.cluster import EmbeddedCluster
from ocf.embedded.http.resource_catalog import Catalog, Served, builtin_kinds, custom_kind
from ocf.embedded.registry.registry import Registry
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import ApiResource

__all__ = ["Backend", "Wrap"]

Wrap: TypeAlias = Callable[[Cluster], Cluster]
"""Puts a wrapper around a cluster."""

_CHECKED: Final[ContextVar[tuple[EmbeddedCluster, EmbeddedCluster] | None]] = ContextVar("checked", default=None)


class _Inner:
    """Stands for a cluster, as the request at hand wants to be treated by it."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        checked = _CHECKED.get()
        found = checked[1] if checked is not None and checked[0] is self._cluster else self._cluster
        return getattr(found, name)


@dataclass(slots=True)
class Backend:
    """A cluster, and what stands in front of it.

    Args:
        cluster: Where the objects are.
        front: What requests go through; may be replaced at any time.
    """

    cluster: EmbeddedCluster
    front: Cluster = field(init=False)
    _custom: list[ApiResource] = field(default_factory=list, init=False, repr=False)
    _catalog: Catalog | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.wrap(None)

    def wrap(self, wrap: Wrap | None) -> Cluster:
        """Put another wrapper around the cluster, in the place of the one before.

        Args:
            wrap: Gets the cluster; None for no wrapper.

        Returns:
            What requests go through from now on.
        """
        inner = cast("Cluster", _Inner(self.cluster))
        self.front = inner if wrap is None else wrap(inner)
        return self.front

    @contextmanager
    def checking(
        self, validation: FieldValidation, warn: Callable[[str], None], duplicates: Iterable[str]
    ) -> Iterator[None]:
        """Treat writes inside the block as a request wants it; arguments as of `EmbeddedCluster.checking`."""
        view = self.cluster.checking(validation, warn=warn, duplicates=duplicates)
        token = _CHECKED.set((self.cluster, view))
        try:
            yield
        finally:
            _CHECKED.reset(token)

    @property
    def core(self) -> Registry:
        """The state of the cluster."""
        return self.cluster._core  # noqa: SLF001 (this room is a part of the embedded cluster)

    @property
    def version(self) -> int:
        """The version of the cluster as a whole."""
        return self.core.store.version

    def catalog(self) -> Catalog:
        """Return what is served now."""
        custom = self.core.custom_kinds()
        if self._catalog is None or custom != self._custom:
            self._custom = custom
            self._catalog = Catalog((*filter(self._serves, builtin_kinds()), *map(custom_kind, custom)))
        return self._catalog

    def _serves(self, kind: Served) -> bool:
        if not kind.is_stored:
            return True
        try:
            self.core.resource(kind.api_version, kind.kind)
        except ApiError:
            return False
        return True

    def stored(self, kind: Served, namespace: str, name: str) -> Manifest | None:
        """Return an object without a request; it must not be changed."""
        key = ObjectKey(kind.api_version, kind.kind, name, namespace)
        try:
            return self.core.find(self.core.resource(kind.api_version, kind.kind), key)
        except ApiError:
            return None
