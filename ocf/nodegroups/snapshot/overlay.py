"""Immutable map whose changed copies share what did not change."""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Final, Generic, TypeVar

__all__ = ["Overlay"]

Value = TypeVar("Value")
_GONE: Final = object()


class Overlay(Mapping[str, Value], Generic[Value]):
    """An immutable map. A changed copy costs at most the square root of its size, on average.

    Args:
        base: The entries. The map keeps a reference, and the caller must not change them any more.

    Example:
        >>> one = Overlay({"a": 1, "b": 2})
        >>> two = one.set("c", 3).remove("a")
        >>> dict(one), dict(two), len(two)
        ({'a': 1, 'b': 2}, {'b': 2, 'c': 3}, 2)
    """

    __slots__ = ("_base", "_changes", "_length")

    def __init__(self, base: Mapping[str, Value] | None = None) -> None:
        self._base: Mapping[str, Value] = {} if base is None else base
        self._changes: dict[str, object] = {}
        self._length = len(self._base)

    def __getitem__(self, key: str) -> Value:
        found = self._changes.get(key, self._base.get(key, _GONE))
        if found is _GONE:
            raise KeyError(key)
        return found  # type: ignore[return-value]  # changes hold values or the mark of a removed key

    def __iter__(self) -> Iterator[str]:
        for key in self._base:
            if self._changes.get(key) is not _GONE:
                yield key
        for key, value in self._changes.items():
            if key not in self._base and value is not _GONE:
                yield key

    def __len__(self) -> int:
        return self._length

    def values(self) -> ValuesView[Value]:
        """Return the values; a map without changes has those of its base, without a search for each key."""
        return super().values() if self._changes else self._base.values()

    def items(self) -> ItemsView[str, Value]:
        """Return the entries, as fast."""
        return super().items() if self._changes else self._base.items()

    def set(self, key: str, value: Value) -> "Overlay[Value]":
        """Return a copy with one entry added or replaced."""
        return self._changed(key, value, self._length + (key not in self))

    def remove(self, key: str) -> "Overlay[Value]":
        """Return a copy without one entry; the same map if there is none."""
        return self._changed(key, _GONE, self._length - 1) if key in self else self

    def _changed(self, key: str, value: object, length: int) -> "Overlay[Value]":
        changes = {**self._changes, key: value}
        made: Overlay[Value] = Overlay.__new__(Overlay)
        made._base, made._changes, made._length = self._base, changes, length
        # Every copy repeats the changes, and merging repeats the base: the square root balances both.
        if len(changes) ** 2 > len(self._base):
            made._base, made._changes = dict(made), {}
        return made
