"""History of object versions, so that a stale read can return an older one."""

from collections import deque

from ocf.objects import Manifest, ObjectKey, copy_json, get_field

__all__ = ["ObjectHistory"]


class ObjectHistory:
    """The latest versions of objects.

    Args:
        depth: How many older versions to keep of each object.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._versions: dict[ObjectKey, deque[Manifest | None]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether older versions are kept."""
        return self._depth > 0

    def learn(self, key: ObjectKey, seen: Manifest | None) -> None:
        """Record the live version of an object, unless it is already the newest known one.

        Args:
            key: Key of the object.
            seen: The object; None if it does not exist.
        """
        versions = self._versions.setdefault(key, deque(maxlen=self._depth + 1))
        if not versions or _version(versions[-1]) != _version(seen):
            versions.append(copy_json(seen))

    def ago(self, key: ObjectKey, versions: int) -> Manifest | None:
        """Return an older version of an object.

        Args:
            key: Key of an object that was recorded.
            versions: How many versions older; if fewer are known, the oldest is returned.

        Returns:
            A copy; None if the object did not exist at that version.
        """
        known = self._versions[key]
        found: Manifest | None = copy_json(known[max(0, len(known) - 1 - versions)])
        return found


def _version(manifest: Manifest | None) -> str | None:
    return None if manifest is None else get_field(manifest, ("metadata", "resourceVersion"))
