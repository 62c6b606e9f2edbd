"""Settings of sharding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ocf.errors import ConfigError

__all__ = ["Sharding"]

_MOST: Final = 1024
_FIELDS: Final = ("uid", "namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How the replicas of an operator divide its owners.

    All replicas need the same settings: those with other settings wait until none with the former ones is left, and so
    does a replica without sharding that has the same lease.

    Args:
        by: What the owners are divided by: the hash of their uid, which divides any owners evenly, or that of their
            namespace, so that all owners of a namespace are in one replica.
        slots: The number of parts into which the owners are divided, up to 1024. Each is a Lease, and a replica holds
            several: with ten times as many slots as replicas, their shares differ by a tenth at most.

    Raises:
        ConfigError: If a setting is out of range.

    Example:
        >>> Sharding(by="namespace", slots=32)
        Sharding(by='namespace', slots=32)
    """

    by: Literal["uid", "namespace"] = "uid"
    slots: int = 64

    def __post_init__(self) -> None:
        if self.by not in _FIELDS:
            raise ConfigError(f"sharding: `by` must be one of {', '.join(_FIELDS)}, got {self.by!r:.60}")
        if not 1 <= self.slots <= _MOST:
            raise ConfigError(f"sharding: `slots` must be from 1 to {_MOST}, got {self.slots!r:.60}")
