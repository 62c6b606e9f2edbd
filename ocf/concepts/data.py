"""Data cells: values that one resource produces and later resources read.

A cell is a key, not a container. Its value belongs to a reconcile and is stored in a context variable, so concurrent
reconciles never see each other's values, and no value survives a reconcile. Outside a reconcile a cell is "not
extracted".

A value that comes from a Secret may be quoted by an error of any function that has read it. So a reconcile knows which
cells hold such values, and counts how often one of them was read; `AuthorCode` names errors accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ocf.errors import ConfigError, DataNotExtractedError, OcfError

__all__ = ["AuthorCode", "Data", "data_scope", "mark_derived"]

ValueT = TypeVar("ValueT")


class _Scope(NamedTuple):
    """The cells of one reconcile.

    Attributes:
        values: The extracted values.
        secret: The cells whose values come from a Secret.
        secret_reads: Those of them that were read, once per read.
    """

    values: dict[Data[Any], Any]
    secret: set[Data[Any]]
    secret_reads: list[Data[Any]]


_OF_SECRET: Final = "v1/Secret/"  # noqa: S105 (a kind)
_WITHHELD: Final = "text withheld, since it may quote a Secret; the traceback is in the log at level DEBUG"
_scope: Final[ContextVar[_Scope | None]] = ContextVar("ocf_data", default=None)


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
        scope = _scope.get()
        return scope is not None and self in scope.values

    def get(self) -> ValueT | None:
        """Return the value, or None if no value was extracted; `is_set` distinguishes an extracted None."""
        return self.require() if self.is_set else None

    def require(self) -> ValueT:
        """Return the value.

        Raises:
            DataNotExtractedError: If no value was extracted in this reconcile.
        """
        scope = _scope.get()
        if scope is None or self not in scope.values:
            raise DataNotExtractedError(self.name)
        if self in scope.secret:
            scope.secret_reads.append(self)
        value: ValueT = scope.values[self]
        return value

    def put(self, value: ValueT, *, from_secret: bool = False) -> None:
        """Store the value for the rest of the reconcile.

        Args:
            value: The extracted value.
            from_secret: Whether it comes from a Secret. Errors of an author's function that reads it are shown without
                their texts.

        Raises:
            ConfigError: Outside a reconcile and outside `seeded`.
        """
        scope = _scope.get()
        if scope is None:
            hint = "outside a reconcile, seed the cell: `with cell.seeded(value):`"
            raise ConfigError(f'data "{self.name}": the value cannot be stored without a reconcile; {hint}')
        scope.values[self] = value
        if from_secret:
            scope.secret.add(self)

    @contextmanager
    def seeded(self, value: ValueT) -> Iterator[None]:
        """Set the value of the cell inside a `with` block, for tests and previews.

        Args:
            value: Value of the cell inside the block.
        """
        scope = _scope.get() or _Scope({}, set(), [])
        token = _scope.set(scope._replace(values={**scope.values, self: value}))
        try:
            yield
        finally:
            _scope.reset(token)


@contextmanager
def data_scope() -> Iterator[None]:
    """Open the scope of one reconcile: all cells start as not extracted, and their values end with the block."""
    token = _scope.set(_Scope({}, set(), []))
    try:
        yield
    finally:
        _scope.reset(token)


def mark_derived(filled: Iterable[Data[Any]], read: Collection[Data[Any]]) -> None:
    """Record that values come from a Secret if the object that they were extracted from was made of such values.

    Args:
        filled: The cells that were filled from the object.
        read: The cells that were read to make it.
    """
    scope = _scope.get()
    if scope is not None and not scope.secret.isdisjoint(read):
        scope.secret.update(filled)


class AuthorCode:
    """An author's functions that run for a resource from now on: what they have read, and how their errors are named.

    Example:
        >>> password = Data[str]("password")
        >>> with data_scope():
        ...     password.put("hunter2", from_secret=True)
        ...     code = AuthorCode("v1/ConfigMap/shop/settings")
        ...     print(code.error_text(ValueError("invalid literal for int(): 'many'")))
        ...     _ = password.require()
        ...     print(code.error_text(ValueError("invalid literal for int(): 'hunter2'")))
        ValueError: invalid literal for int(): 'many'
        ValueError (text withheld, since it may quote a Secret; the traceback is in the log at level DEBUG)
        >>> AuthorCode("v1/Secret/shop/login").error_text(ValueError("invalid literal for int(): 'hunter2'"))
        'ValueError'
    """

    __slots__ = ("_identity", "_since")

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._since = _secret_reads()

    @property
    def has_read_secret(self) -> bool:
        """Whether one of them has read a value of a Secret from a data cell."""
        return _secret_reads() > self._since

    @property
    def knows_secret(self) -> bool:
        """Whether one of them may know a value of a Secret: from a data cell, or because the resource is one."""
        return self._identity.startswith(_OF_SECRET) or self.has_read_secret

    def error_text(self, error: BaseException) -> str:
        """Return the type and the text of an error, without the text if it may quote a value of a Secret."""
        kind = type(error).__name__
        if self._identity.startswith(_OF_SECRET) or not str(error):
            return kind
        return f"{kind} ({_WITHHELD})" if self.has_read_secret else f"{kind}: {error}"

    @contextmanager
    def raising(
        self, failed: Callable[[Exception], OcfError], *, unchanged: type[OcfError] | tuple[()] = ()
    ) -> Iterator[None]:
        """Raise an error of ours in place of each that an author's function raises in the block."""
        try:
            yield
        except unchanged:
            raise
        except Exception as error:
            raise failed(error) from error


def _secret_reads() -> int:
    scope = _scope.get()
    return 0 if scope is None else len(scope.secret_reads)
