"""Whether an apply would change anything: the quiet rule.

An apply can be left out exactly when it would change nothing, and the live object says so itself: our entry in its
`managedFields` lists the fields we applied last, and a field of ours that somebody else changed is no longer listed
there. So the object we are about to apply is compared with that entry and with the live values, side by side.
`fieldsV1` describes its own structure (`ocf.objects.managed_fields`), which is why no schema is needed here.

Values are equal as JSON; quantities as quantities; and a value that the server is known to store differently from how
it is sent equals the stored one (`ocf.cluster.ApplyCache`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ocf.component.status.results import Drift
from ocf.concepts import Why
from ocf.errors import QuantityError
from ocf.objects import FieldPath, Manifest, Quantity, format_path
from ocf.objects.managed_fields import ManagedFields, key_label, read_key

if TYPE_CHECKING:
    from ocf.cluster import Rewrites

__all__ = ["find_drift"]

# What the API server never lists in managedFields: it identifies the object.
_IDENTITY_FIELDS: Final = frozenset({"apiVersion", "kind"})
_IDENTITY_METADATA: Final = frozenset({"name", "namespace"})
_ABSENT: Final = object()


def find_drift(
    wanted: Manifest,
    live: Manifest,
    *,
    manager: str,
    rewrites: Rewrites,
    is_quantity: Callable[[FieldPath], bool],
) -> list[Drift]:
    """Find what an apply would change.

    Args:
        wanted: What would be applied.
        live: The live object.
        manager: Our field manager.
        rewrites: Values that the server is known to store differently from how they are sent.
        is_quantity: Tells whether a field holds a quantity.

    Returns:
        One difference per field; none means that the apply can be left out.
    """
    fields = ManagedFields.of(live).owned_by(manager)
    declared = _declared(wanted)
    if fields is None:
        # The server keeps no entry for a manager that owns nothing, so it is not missed where nothing is declared.
        return [Drift("", Why.NOT_OWNED)] if declared else []
    comparison = _Comparison(rewrites, is_quantity)
    comparison.compare(declared, live, fields, ())
    return comparison.found


def _declared(wanted: Manifest) -> Manifest:
    metadata = {key: value for key, value in wanted["metadata"].items() if key not in _IDENTITY_METADATA}
    declared = {key: value for key, value in wanted.items() if key not in _IDENTITY_FIELDS and key != "metadata"}
    return declared | {"metadata": metadata} if metadata else declared


class _Comparison:
    """Walks what is wanted, what is live, and what we own, side by side."""

    def __init__(self, rewrites: Rewrites, is_quantity: Callable[[FieldPath], bool]) -> None:
        self._rewrites = rewrites
        self._is_quantity = is_quantity
        self.found: list[Drift] = []

    def compare(self, wanted: Any, live: Any, fields: Manifest, path: FieldPath) -> None:
        match _structure(fields):
            case "f:" if isinstance(wanted, dict):
                self._map(wanted, live, fields, path)
            case "k:" if isinstance(wanted, list):
                self._keyed_list(wanted, live, fields, path)
            case "v:" if isinstance(wanted, list):
                self._set(wanted, live, fields, path)
            case _:
                if not self._equal(wanted, live, path):
                    self._report(path, Why.CHANGED, wanted, live)

    def _map(self, wanted: Manifest, live: Any, fields: Manifest, path: FieldPath) -> None:
        for key, value in wanted.items():
            owned = fields.get("f:" + key)
            there = live.get(key, _ABSENT) if isinstance(live, dict) else _ABSENT
            if owned is None or there is _ABSENT:
                self._report((*path, key), Why.NOT_OWNED, value, None if there is _ABSENT else there)
            elif owned or value != there or type(value) is not type(there):
                self.compare(value, there, owned, (*path, key))
        for field in fields:
            if field[2:] not in wanted and field != ".":
                self._report((*path, field[2:]), Why.NO_LONGER_DECLARED)

    def _keyed_list(self, wanted: list[Any], live: Any, fields: Manifest, path: FieldPath) -> None:
        unmatched = {field: read_key(field) for field in fields if field != "."}
        places: list[int] = []
        for position, item in enumerate(wanted):
            field = _matching(item, unmatched)
            place = _place_of(unmatched[field], live) if field is not None else None
            if field is None or place is None:
                self._report((*path, position), Why.NOT_OWNED, item)
                continue
            del unmatched[field]
            places.append(place)
            self.compare(item, live[place], fields[field], (*path, position))
        for key in unmatched.values():
            self._report((*path, key_label(key)), Why.NO_LONGER_DECLARED)
        if places != sorted(places):
            self._report(path, Why.REORDERED, list(range(len(places))), places)

    def _set(self, wanted: list[Any], live: Any, fields: Manifest, path: FieldPath) -> None:
        owned = [read_key(field) for field in fields if field != "."]
        for value in wanted:
            if value not in owned or value not in (live or []):
                self._report((*path, str(value)), Why.NOT_OWNED, value)
        for value in owned:
            if value not in wanted:
                self._report((*path, str(value)), Why.NO_LONGER_DECLARED)

    def _report(self, path: FieldPath, why: Why, sent: Any = None, stored: Any = None) -> None:
        """Note a difference, unless it is how the server is known to answer what we send."""
        name = format_path(path)
        if self._rewrites.get(name) != (sent, stored):
            self.found.append(Drift(name, why, sent, stored))

    def _equal(self, wanted: Any, live: Any, path: FieldPath) -> bool:
        if isinstance(wanted, dict) and isinstance(live, dict):
            return wanted.keys() == live.keys() and all(
                self._equal(value, live[key], (*path, key)) for key, value in wanted.items()
            )
        if isinstance(wanted, list) and isinstance(live, list):
            pairs = enumerate(zip(wanted, live, strict=False))
            return len(wanted) == len(live) and all(
                self._equal(value, there, (*path, position)) for position, (value, there) in pairs
            )
        if isinstance(wanted, bool) or isinstance(live, bool):
            return wanted is live
        if wanted == live:
            return True
        if isinstance(wanted, str) and isinstance(live, str):
            return self._is_quantity(path) and _same_quantity(wanted, live)
        return False


def _structure(fields: Manifest) -> str:
    """Tell how a part of `fieldsV1` goes on: by fields, keyed entries or values; empty at a leaf."""
    for field in fields:
        if field != ".":
            return field[:2]
    return ""


def _matching(item: Any, candidates: dict[str, Any]) -> str | None:
    """Find the owned entry that an item of ours is: its keys are equal, or left to the server's default."""
    if not isinstance(item, dict):
        return None
    fitting = [
        field
        for field, key in candidates.items()
        if all(item.get(name, _ABSENT) in (value, _ABSENT) for name, value in key.items())
    ]
    # An item that spells a key out fits fewer entries; prefer the entry with which it shares the most keys.
    return max(fitting, key=lambda field: len(candidates[field].keys() & item.keys()), default=None)


def _place_of(key: Manifest, live: Any) -> int | None:
    for place, item in enumerate(live or []):
        if isinstance(item, dict) and all(item.get(name) == value for name, value in key.items()):
            return place
    return None


def _same_quantity(wanted: str, live: str) -> bool:
    try:
        return Quantity.parse(wanted) == Quantity.parse(live)
    except QuantityError:
        return False
