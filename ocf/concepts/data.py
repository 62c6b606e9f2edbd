"""Data cells: values that one resource produces and later resources read.

A cell is a key, not a container. Its value belongs to a reconcile and is stored in a context variable, so concurrent
reconciles never see each other's values, and no value survives a reconcile. Outside a reconcile a cell is "not
extracted".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

from ocf.errors import ConfigError, DataNotExtractedError

__all__ = ["Data", "data_scope"]

ValueT = TypeVar("ValueT")

_scope: Final[ContextVar[dict[Data[Any], Any] | None]] = ContextVar("ocf_data", default=None)


class Data(Generic[ValueT]):
    """A named, typed cell.

    Two cells are equal only if they are the same object; the name is only used in messages.

    Args:
        name: Name of the cell, `db-host`.

    Raises:
        ConfigError: If the name is empty.

    Example:
        >>> host = Data[str]("db-host")
        >>> host.is_set
        False
        >>> with host.seeded("db.shop.svc"):
        ...     host.require()
        'db.shop.svc'
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not name:
            raise ConfigError("a data cell needs a name")
        self.name: Final = name

    def __repr__(self) -> str:
        return f"Data({self.name!r})"

    @property
    def is_set(self) -> bool:
        """Whether a value was extracted in this reconcile; empty values and None count."""
        return self in (_scope.get() or {})

    def get(self) -> ValueT | None:
        """Return the value, or None if no value was extracted; `is_set` distinguishes an extracted None."""
        found: ValueT | None = (_scope.get() or {}).get(self)
        return found

    def require(self) -> ValueT:
        """Return the value.

        Raises:
            DataNotExtractedError: If no value was extracted in this reconcile.
        """
        values = _scope.get() or {}
        if self not in values:
            raise DataNotExtractedError(self.name)
        value: ValueT = values[self]
        return value

    def put(self, value: ValueT) -> None:
        """Store the value for the rest of the reconcile.

        Args:
            value: The extracted value.

        Raises:
            ConfigError: Outside a reconcile and outside `seeded`.
        """
        values = _scope.get()
        if values is None:
            hint = "outside a reconcile, seed the cell: `with cell.seeded(value):`"
            raise ConfigError(f'data "{self.name}": the value cannot be stored without a reconcile; {hint}')
        values[self] = value

    @contextmanager
    def seeded(self, value: ValueT) -> Iterator[None]:
        """Set the value of the cell inside a `with` block, for tests and previews.

        Args:
            value: Value of the cell inside the block.
        """
        token = _scope.set({**(_scope.get() or {}), self: value})
        try:
            yield
        finally:
            _scope.reset(token)


@contextmanager
def data_scope() -> Iterator[None]:
    """Open the scope of one reconcile: all cells start as not extracted, and their values end with the block."""
    token = _scope.set({})
    try:
        yield
    finally:
        _scope.reset(token)
