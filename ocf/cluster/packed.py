"""Objects as a cache holds them, for readers that need the content of few of them.

A list unpacks every object. A wrapper whose list passes objects on as they are passes these on as well; through any
other one, and without a cache, the objects have to be listed.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from ocf.cluster.protocol import Cluster
from ocf.objects import Manifest

__all__ = ["PackedList", "PackedObject", "list_packed"]


class PackedObject(Protocol):
    """One version of an object, whose content is not read yet."""

    @property
    def uid(self) -> str:
        """Its uid; empty if the cluster does not assign one."""
        ...

    @property
    def version(self) -> str:
        """Its resource version; empty if the cluster does not assign one."""
        ...

    def unpack(self) -> Manifest:
        """Return the object, as a copy for the caller."""
        ...


PackedList: TypeAlias = Mapping[tuple[str, str], PackedObject]
"""Objects by namespace and name, in no particular order."""


@runtime_checkable
class _ListsPacked(Protocol):
    """A cache, or a wrapper of one."""

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None: ...


async def list_packed(cluster: Cluster, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
    """Return the objects that `cluster.list` would return now; None if they have to be listed.

    Args:
        namespace: Only objects of this namespace; empty for all namespaces.

    Raises:
        ApiError: As by `cluster.list`.
    """
    if isinstance(cluster, _ListsPacked):
        return await cluster.list_packed(api_version, kind, namespace)
    return None
