"""Objects of one kind, ordered by namespace and name.

The order is kept with every write, so that a page of a list costs what it contains, however many objects precede it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import TypeAlias

from ocf.objects import Manifest

__all__ = ["Listing", "ObjectTable", "Place"]

Place: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """Objects of one kind, by namespace and name; each change takes the time of a binary search."""

    _objects: dict[Place, Manifest] = field(default_factory=dict)
    _places: list[Place] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def clone(self) -> "ObjectTable":
        """Return an independent table of the same objects."""
        return ObjectTable(self._objects.copy(), self._places.copy())

    def get(self, place: Place) -> Manifest | None:
        """Return the object at a place, or None."""
        return self._objects.get(place)

    def put(self, place: Place, manifest: Manifest) -> None:
        """Add or replace an object."""
        if place not in self._objects:
            insort(self._places, place)
        self._objects[place] = manifest

    def remove(self, place: Place) -> Manifest:
        """Remove and return an object, which must exist."""
        found = self._objects.pop(place)
        del self._places[bisect_left(self._places, place)]
        return found

    def listing(
        self, namespace: str = "", after: Place | None = None, earlier: Mapping[Place, Manifest | None] | None = None
    ) -> "Listing":
        """Return the objects in order.

        Args:
            namespace: The namespace; empty for all.
            after: The place after which the listing starts; None for the first.
            earlier: Objects to list instead of the present ones, by place; None means that there was none.

        Returns:
            The objects; to be read before the next change of the table.
        """
        bounds = _Bounds(namespace, after)
        shown = {place: item for place, item in (earlier or {}).items() if bounds.contains(place)}
        return Listing(self._objects, self._places, bounds.start(self._places), bounds.stop(self._places), shown)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The part of an ordered list of places that a listing covers."""

    namespace: str
    after: Place | None

    def start(self, places: list[Place]) -> int:
        first = bisect_left(places, (self.namespace,)) if self.namespace else 0
        return first if self.after is None else max(first, bisect_right(places, self.after))

    def stop(self, places: list[Place]) -> int:
        # No string is between a namespace and the same with the lowest character appended.
        end = bisect_left(places, (f"{self.namespace}\0",)) if self.namespace else len(places)
        return max(end, self.start(places))

    def contains(self, place: Place) -> bool:
        return (not self.namespace or place[0] == self.namespace) and (self.after is None or place > self.after)


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects of one kind in order, in a namespace, after a place, and possibly as they were earlier."""

    _objects: Mapping[Place, Manifest]
    _places: list[Place]
    _start: int
    _stop: int
    _earlier: Mapping[Place, Manifest | None]

    def __len__(self) -> int:
        """Return the number of objects, without walking through them."""
        replaced = sum(place in self._objects for place in self._earlier)
        return self._stop - self._start - replaced + sum(item is not None for item in self._earlier.values())

    def __iter__(self) -> Iterator[Manifest]:
        """Yield the objects."""
        if not self._earlier:
            # No tuple for each object: many of them would start a collection of garbage, which walks the whole store.
            return map(self._objects.__getitem__, self._present())
        return (manifest for _, manifest in self.items())

    def items(self) -> Iterator[tuple[Place, Manifest]]:
        """Yield place and object."""
        kept = ((place, self._objects[place]) for place in self._present() if place not in self._earlier)
        past = sorted((place, item) for place, item in self._earlier.items() if item is not None)
        return merge(kept, past, key=lambda pair: pair[0]) if past else kept

    def _present(self) -> Iterator[Place]:
        # islice would walk through what precedes the start.
        return map(self._places.__getitem__, range(self._start, self._stop))
