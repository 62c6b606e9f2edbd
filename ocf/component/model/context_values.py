"""Values of a reconcile or a process, which the functions of an operator pass to each other under typed keys."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar, overload

from ocf.errors import ConfigError

__all__ = ["ContextKey", "ContextValues"]

T = TypeVar("T")
D = TypeVar("D")


class ContextKey(Generic[T]):
    """A key of `ReconcileContext.values`, with the type of its value; two keys are equal only if they are one object.

    Args:
        name: Name of the value in messages, `old-primary`.

    Example:
        >>> ContextKey[int]("visitors")
        ContextKey('visitors')
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __repr__(self) -> str:
        return f"ContextKey({self.name!r})"


class ContextValues:
    """The values of one reconcile, or of a process.

    Args:
        process: Those of the process, which are found where there is no own value; None for none.

    Example:
        >>> visitors = ContextKey[int]("visitors")
        >>> values = ContextValues()
        >>> values.get(visitors), values.get(visitors, 0), visitors in values
        (None, 0, False)
        >>> values[visitors] = 3
        >>> values[visitors] + 1
        4
    """

    def __init__(self, process: ContextValues | None = None) -> None:
        self._values: dict[ContextKey[Any], Any] = {}
        self._process = process

    def inherit(self, process: ContextValues) -> None:
        """Find here, too, what the lifespan of the operator has set."""
        self._process = process

    def __setitem__(self, key: ContextKey[T], value: T) -> None:
        """Set a value for the rest of the reconcile; a key that is something else is a `ConfigError`."""
        if not isinstance(key, ContextKey):
            raise ConfigError(f"a key of `context.values` must be a ContextKey, got {key!r}")
        self._values[key] = value

    def __getitem__(self, key: ContextKey[T]) -> T:
        """Return a value; one that was set neither in this reconcile nor by the lifespan is a `ConfigError`."""
        if key in self._values:
            value: T = self._values[key]
            return value
        if self._process is not None and key in self._process:
            return self._process[key]
        raise ConfigError(
            f"{key!r} was not set in this reconcile, nor by the lifespan of its operator, which `ocf preview`, "
            "`ocf diff` and `ocf manifests` do not open: use `context.values.get` where it may be missing"
        )

    def __contains__(self, key: ContextKey[Any]) -> bool:
        """Return whether a value was set in this reconcile, or by the lifespan; None counts."""
        return key in self._values or (self._process is not None and key in self._process)

    @overload
    def get(self, key: ContextKey[T]) -> T | None: ...

    @overload
    def get(self, key: ContextKey[T], default: D) -> T | D: ...

    def get(self, key: ContextKey[Any], default: object = None) -> object:
        """Return a value, or the default if it was set neither in this reconcile nor by the lifespan."""
        if key in self._values or self._process is None:
            return self._values.get(key, default)
        return self._process.get(key, default)
