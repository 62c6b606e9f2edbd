"""The versions of objects that passed through a cluster, so that a read can show an older one."""

from collections import deque

from ocf.objects import Manifest, ObjectKey, copy_json, get_field

__all__ = ["ObjectHistory"]


class ObjectHistory:
    """Remembers objects as they were.

    Args:
        depth: How many versions ago an object can be asked for.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._versions: dict[ObjectKey, deque[Manifest | None]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether anything can be asked for at all."""
        return self._depth > 0

    def learn(self, key: ObjectKey, seen: Manifest | None) -> None:
        """Note the newest version of an object, unless it is known.

        Args:
            key: The object.
            seen: The object; None while there is none.
        """
        versions = self._versions.setdefault(key, deque(maxlen=self._depth + 1))
        if not versions or _version(versions[-1]) != _version(seen):
            versions.append(copy_json(seen))

    def ago(self, key: ObjectKey, versions: int) -> Manifest | None:
        """Return an object as it was.

        Args:
            key: An object that was learnt.
            versions: How many versions ago; where fewer are known, the oldest.

        Returns:
            A copy; None if there was none then.
        """
        known = self._versions[key]
        found: Manifest | None = copy_json(known[max(0, len(known) - 1 - versions)])
        return found


def _version(manifest: Manifest | None) -> str | None:
    return None if manifest is None else get_field(manifest, ("metadata", "resourceVersion"))
