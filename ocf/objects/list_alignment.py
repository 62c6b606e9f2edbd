"""Alignment of lists: matches the entries of two versions of a list.

Kubernetes stores named entries in plain lists. If they were compared by position, inserting a container at the front
would mark all others as changed. So entries are matched by the key that their list has in the API, if all have one;
otherwise by content, like the lines of a text diff. An entry whose key changed but whose other values are mostly the
same counts as renamed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias

__all__ = ["aligned", "entry_labels"]

_Key: TypeAlias = "dict[str, Any] | None"
_KeyOf: TypeAlias = Callable[[dict[str, Any]], _Key]

# An entry with a new key counts as renamed if at least this fraction of its other values is the same.
_RENAMED: Final = 0.5


def _by(*fields: str) -> _KeyOf:
    def key(entry: dict[str, Any]) -> _Key:
        found = {field: entry[field] for field in fields if isinstance(entry.get(field), str | int)}
        # Only the first field is required: the others, a protocol for example, have defaults.
        return found if fields[0] in found else None

    return key


def _by_type(entry: dict[str, Any]) -> _Key:
    """Return the key of an entry with a `type` and a field of that name, such as a metric of an autoscaler."""
    kind = entry.get("type")
    part = entry.get(kind[:1].lower() + kind[1:]) if isinstance(kind, str) else None
    if not isinstance(part, dict):
        return None
    metric = part.get("metric")
    named = {
        "name": part.get("name"),
        **(metric if isinstance(metric, dict) else {}),
        "container": part.get("container"),
    }
    return {"type": kind} | {field: value for field, value in named.items() if isinstance(value, str)}


# The keys of the lists of the API, the more specific ones first: an owner reference also has a name.
_KEYS: Final[Sequence[_KeyOf]] = (
    _by("uid"),
    _by("name"),
    _by("mountPath"),
    _by("devicePath"),
    _by("containerPort", "protocol"),
    _by("port", "protocol"),
    _by("topologyKey", "whenUnsatisfiable"),
    _by("ip"),
    _by("host"),
    _by_type,
)


def aligned(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    """Match the entries of a list with those of its previous version.

    Args:
        before: The previous list, JSON values.
        after: The current list.

    Returns:
        For each entry of `after` its position in `before`; None for a new entry. All positions are different.

    Example:
        >>> aligned([{"name": "app"}, {"name": "proxy"}], [{"name": "init"}, {"name": "app"}])
        [None, 0]
        >>> aligned([{"name": "app", "image": "app:1"}], [{"name": "web", "image": "app:1"}])
        [0]
        >>> aligned(["--a", "--b"], ["--new", "--a", "--b"])
        [None, 0, 1]
    """
    key_of = _key_of([*before, *after])
    if key_of is None:
        return _by_content(before, after)
    places = _with_ordinals([key_of(entry) for entry in before])
    found = [places.pop(key, None) for key in _with_ordinals([key_of(entry) for entry in after])]
    return _renamed(before, after, found, list(places.values()))


def entry_labels(entries: Sequence[Any]) -> list[str]:
    """Return labels of the entries of a list, made from their keys.

    Args:
        entries: JSON values.

    Returns:
        A label for each entry: its key, or its position if the entries do not have a key.

    Example:
        >>> entry_labels([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}])
        ['containerPort=80,protocol=TCP', 'containerPort=81']
        >>> entry_labels(["--a"])
        ['0']
    """
    key_of = _key_of(entries)
    if key_of is None:
        return [str(position) for position in range(len(entries))]
    keys = [key_of(entry) or {} for entry in entries]
    return [",".join(f"{field}={value}" for field, value in key.items()) for key in keys]


def _key_of(entries: Sequence[Any]) -> _KeyOf | None:
    """Return the first key that every entry has."""
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        return None
    return next((key for key in _KEYS if all(key(entry) for entry in entries)), None)


def _with_ordinals(keys: Sequence[_Key]) -> dict[Hashable, int]:
    """Return the position of each key with its ordinal, which distinguishes equal keys."""
    seen: dict[str, int] = defaultdict(int)
    places: dict[Hashable, int] = {}
    for position, key in enumerate(keys):
        text = _text(key)
        places[text, seen[text]] = position
        seen[text] += 1
    return places


def _renamed(
    before: Sequence[Any], after: Sequence[Any], found: list[int | None], waiting: list[int]
) -> list[int | None]:
    """Match new entries with removed ones that are mostly the same."""
    for position, place in enumerate(found):
        if place is not None or not waiting:
            continue
        nearest = max(waiting, key=lambda old: _likeness(before[old], after[position]))
        if _likeness(before[nearest], after[position]) >= _RENAMED:
            found[position] = nearest
            waiting.remove(nearest)
    return found


def _likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the fraction of values that two entries have in common, without their keys."""
    key_of = _key_of([one, other])
    keys = key_of(one) if key_of else None
    left, right = ({(k, _text(v)) for k, v in entry.items() if k not in (keys or ())} for entry in (one, other))
    return len(left & right) / max(len(left), len(right), 1)


def _by_content(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    found: list[int | None] = [None] * len(after)
    matcher = SequenceMatcher(
        None, [_text(entry) for entry in before], [_text(entry) for entry in after], autojunk=False
    )
    for _, first, last, start, end in matcher.get_opcodes():
        # In a replaced range, each entry is matched with the one at the same position.
        for old, new in zip(range(first, last), range(start, end), strict=False):
            found[new] = old
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
