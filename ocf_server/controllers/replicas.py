"""Numbers of pods: percentages, and names that are derived from hashes.

Sources: k8s.io/apimachinery/pkg/util/intstr and k8s.io/apimachinery/pkg/util/rand of Kubernetes 1.36.
"""

import json
import zlib
from typing import Any, Final

__all__ = ["resolve_fenceposts", "scaled_value", "template_hash"]

# Without vowels, 0, 1 and 3, so that names hardly contain bad words.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return an absolute number for a number or a percentage.

    Args:
        value: The number, or a percentage such as `25%`; None means 0.
        round_up: Whether a fraction is rounded up.

    Example:
        >>> [scaled_value("25%", 5, round_up=up) for up in (True, False)], scaled_value(3, 5, round_up=True)
        ([2, 1], 3)
    """
    if not isinstance(value, str):
        return value or 0
    product = int(value.removesuffix("%")) * total
    return -(-product // 100) if round_up else product // 100


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Return the numbers of pods that a rolling update may add and miss; not both are 0.

    Args:
        surge: `maxSurge`.
        unavailable: `maxUnavailable`.
    """
    added = scaled_value(surge, replicas, round_up=True)
    missing = scaled_value(unavailable, replicas, round_up=False)
    # Percentages of a few replicas may both be rounded to 0, and nothing would ever be replaced.
    return (added, missing) if added or missing else (0, 1)


def template_hash(template: Any, collisions: int | None) -> str:
    """Return a hash of a template, for names and labels.

    The real controllers hash Go's dump of the template. This hash has the same letters but another value.

    Args:
        collisions: `status.collisionCount` of the owner.

    Example:
        >>> template_hash({"spec": {}}, None) == template_hash({"spec": {}}, None)
        True
    """
    text = json.dumps([template, collisions or 0], sort_keys=True)
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(zlib.crc32(text.encode())))
