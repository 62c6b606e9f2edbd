"""Shards of a kind: objects by the hash of their uid or namespace, as API servers divide lists and watches.

An API server with the feature gate `ShardedListAndWatch` takes the parameter `shardSelector` in lists and watches:
`shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`, several joined by `||`. A list that it
has divided has `metadata.shardInfo`; any other API server ignores the parameter.

Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5866-server-side-sharded-list-and-watch
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from ocf.objects.manifest import Manifest

__all__ = ["HASHES", "SHARD_FIELDS", "HashRange", "ShardSelector", "consecutive", "shard_hash", "slot_of"]

HASHES: Final = 1 << 64
"""Number of hashes."""
# FNV-1a with 64 bits, https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = HASHES - 1

SHARD_FIELDS: Final = ("object.metadata.uid", "object.metadata.namespace")
"""The fields whose hash an API server can select by."""


def shard_hash(value: str) -> int:
    """Return the hash of a uid or a namespace, as the API server computes it (FNV-1a with 64 bits).

    Example:
        >>> f"{shard_hash('default'):#018x}"
        '0xebada5168620c5fe'
    """
    found = _OFFSET
    for byte in value.encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found


def slot_of(value: str, slots: int) -> int:
    """Return the slot of a uid or a namespace, where so many slots divide the hashes evenly."""
    return shard_hash(value) * slots >> 64


class HashRange(NamedTuple):
    """Hashes from a start up to, but without, an end."""

    start: int
    end: int

    @classmethod
    def of_slots(cls, slots: Iterable[int], total: int) -> "tuple[HashRange, ...]":
        """Return the ranges of the hashes of some of `total` slots; adjacent ones are one range.

        Example:
            >>> [f"{start:x} {end:x}" for start, end in HashRange.of_slots([0, 1, 3], 4)]
            ['0 8000000000000000', 'c000000000000000 10000000000000000']
        """
        runs = consecutive(slots)
        return tuple(cls(-(-first * HASHES // total), -(-(last + 1) * HASHES // total)) for first, last in runs)


def consecutive(slots: Iterable[int]) -> list[tuple[int, int]]:
    """Return the runs of slots that follow each other, each as its first and its last slot.

    Example:
        >>> consecutive([7, 1, 0, 3, 2])
        [(0, 3), (7, 7)]
    """
    # Slots of one run have the same distance to their place in the sorted list.
    groups = groupby(enumerate(sorted({*slots})), key=lambda pair: pair[1] - pair[0])
    runs = [[slot for _, slot in group] for _, group in groups]
    return [(run[0], run[-1]) for run in runs]


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """A selector of objects by ranges of the hash of one field.

    Args:
        field: One of `SHARD_FIELDS`.
        ranges: The ranges; none selects nothing, which no text says.

    Example:
        >>> selector = ShardSelector("object.metadata.namespace", HashRange.of_slots([0], 2))
        >>> print(selector)
        shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')
        >>> [name for name in ("alpha", "beta", "gamma") if selector.matches({"metadata": {"namespace": name}})]
        ['beta', 'gamma']
    """

    field: str
    ranges: tuple[HashRange, ...]

    def matches(self, manifest: Manifest) -> bool:
        """Return whether an object is selected; an object without the field has the hash of an empty text."""
        metadata: Mapping[str, Any] = manifest.get("metadata") or {}
        found = shard_hash(str(metadata.get(self.field.rpartition(".")[2]) or ""))
        return any(start <= found < end for start, end in self.ranges)

    def __str__(self) -> str:
        """Return the text that an API server accepts."""
        return " || ".join(f"shardRange({self.field}, '{start:#018x}', '{end:#018x}')" for start, end in self.ranges)
