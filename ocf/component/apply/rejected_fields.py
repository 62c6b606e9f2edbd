"""Fields that a rejection is about, as places in the live object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.owned_paths import ABSENT, OwnedPath, value_at

__all__ = ["field_steps", "places"]

_STEPS: Final = re.compile(r"\[[^\]]*\]|[^.\[]+")


def field_steps(field: str) -> list[str]:
    """Return the parts of a field as a cause names it, with positions in brackets.

    Example:
        >>> field_steps("spec.containers[1].image")
        ['spec', 'containers', '[1]', 'image']
    """
    return _STEPS.findall(field)


def places(live: Any, owned: Manifest, steps: Sequence[str], above: OwnedPath = ()) -> Iterator[OwnedPath]:
    """Yield the places of a field, in every entry of the lists on the way.

    A cause has the positions of the entries in the rejected object, which may be others in the live one.

    Args:
        owned: The `fieldsV1` of all field managers.
        steps: The field, from `field_steps`.
    """
    if not steps:
        yield above
    elif steps[0].startswith("["):
        for key in owned:
            item = value_at(live, (key,)) if key.startswith("k:") else ABSENT
            if item is not ABSENT:
                yield from places(item, owned[key], steps[1:], (*above, key))
    elif isinstance(live, Mapping) and steps[0] in live:
        step = f"f:{steps[0]}"
        yield from places(live[steps[0]], owned.get(step) or {}, steps[1:], (*above, step))
