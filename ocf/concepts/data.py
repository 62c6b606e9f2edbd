"""Data cells: values that one resource produces and later ones read.

A cell is a key, not a container: its value belongs to the reconcile pass and lives in a context variable, so two
passes that run side by side never see each other's values, and nothing survives a pass. Outside a pass a cell is "not
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

    Two cells are the same only if they are the same object; the name is for people.

    Args:
        name: What the cell is called in messages, `db-host`.

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
        """Whether a value was extracted in this pass; an empty value counts."""
        return self in (_scope.get() or {})

    def get(self) -> ValueT | None:
        """Return the value, or None where none was extracted (`is_set` tells a None that was extracted)."""
        found: ValueT | None = (_scope.get() or {}).get(self)
        return found

    def require(self) -> ValueT:
        """Return the value.

        Raises:
            DataNotExtractedError: If none was extracted in this pass.
        """
        values = _scope.get() or {}
        if self not in values:
            raise DataNotExtractedError(self.name)
        value: ValueT = values[self]
        return value

    def put(self, value: ValueT) -> None:
        """Store the value for the rest of the pass.

        Args:
            value: What was extracted.

        Raises:
            ConfigError: Outside a pass and outside `seeded`.
        """
        values = _scope.get()
        if values is None:
            hint = "outside a reconcile, seed the cell: `with cell.seeded(value):`"
            raise ConfigError(f'data "{self.name}": there is no pass to store the value for; {hint}')
        values[self] = value

    @contextmanager
    def seeded(self, value: ValueT) -> Iterator[None]:
        """Give the cell a value for a block of code, as a test or a preview needs it.

        Args:
            value: What the cell holds inside the block.
        """
        token = _scope.set({**(_scope.get() or {}), self: value})
        try:
            yield
        finally:
            _scope.reset(token)


@contextmanager
def data_scope() -> Iterator[None]:
    """Open the scope of one pass: every cell starts as not extracted, and none outlives the block."""
    token = _scope.set({})
    try:
        yield
    finally:
        _scope.reset(token)
