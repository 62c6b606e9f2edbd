"""Entries of ConfigMaps and Secrets whose values are generated once, and then are those of the object."""

from __future__ import annotations

import secrets
import string
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from ocf.errors import HandlerError
from ocf.primitives.kind import Kind, function_problems

__all__ = ["GeneratedEntries", "Source", "Sources", "password"]

Source: TypeAlias = Callable[[], str | bytes]
"""Returns a new value."""

Sources: TypeAlias = Callable[[], Sequence[str | bytes]]
"""Returns new values that belong together."""

_LETTERS: Final = string.ascii_letters + string.digits
# Of 62 letters and digits: 190 bits.
_LENGTH: Final = 32


def password() -> str:
    """Return 32 random letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


@dataclass(frozen=True, slots=True)
class GeneratedEntries:
    """The generated entries of one object.

    Args:
        sources: The function that returns a new value by its key, or several ones by their keys.
        encoded: Whether values are sent in base64, as those of a Secret.
    """

    sources: Mapping[tuple[str, ...], Source | Sources] = field(default_factory=dict)
    encoded: bool = False

    def having(self, keys: tuple[str, ...], source: Source | Sources) -> GeneratedEntries:
        """Return these entries with others, in place of all that are generated together with one of them."""
        kept = {each: made for each, made in self.sources.items() if not {*each} & {*keys}}
        # A copy of the builder shares what it does not replace.
        return replace(self, sources={**kept, keys: source})

    def problems(self, kind: Kind[Any, Any]) -> Iterator[str]:
        """Yield why the entries cannot be generated."""
        for keys, source in self.sources.items():
            given: tuple[object, ...] = (*keys, source)
            if not keys or not all(isinstance(key, str) for key in given[:-1]) or given[-1] is None:
                yield "with_generated requires the key of an entry, or a tuple of keys, and a function"
                continue
            if len({*keys}) < len(keys):
                yield f"with_generated requires different keys, got {', '.join(keys)}"
            yield from function_problems(f"the source of {_named(keys)}", source)
            for key in keys:
                yield from (f"{error.path}: {error.message}" for error in kind.validate({"data": {key: ""}}))

    def by_path(self) -> dict[tuple[str, ...], Callable[[], dict[tuple[str, ...], str]]]:
        """Return the functions that return new values as they are sent, by field."""
        made = {keys: partial(self._values, keys, source) for keys, source in self.sources.items()}
        return {("data", key): values for keys, values in made.items() for key in keys}

    def _values(self, keys: tuple[str, ...], source: Source | Sources) -> dict[tuple[str, ...], str]:
        values: object = source() if len(keys) > 1 else (source(),)
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or len(values) != len(keys):
            seen = (
                f"{len(values)}" if isinstance(values, list | tuple) else f"an object of type {type(values).__name__}"
            )
            raise HandlerError(f"the source of {_named(keys)} must return {len(keys)} values, got {seen}")
        return {("data", key): self._value(key, value) for key, value in zip(keys, values, strict=True)}

    def _value(self, key: str, value: object) -> str:
        if not isinstance(value, str | bytes):
            raise HandlerError(
                f'the source of entry "{key}" must return a text or bytes, not of type {type(value).__name__}'
            )
        if not value:
            raise HandlerError(f'the source of entry "{key}" must not return an empty value')
        if self.encoded:
            return b64encode(value.encode() if isinstance(value, str) else value).decode()
        return value if isinstance(value, str) else value.decode()


def _named(keys: tuple[str, ...]) -> str:
    shown = ", ".join(f'"{key}"' for key in keys)
    return f"entry {shown}" if len(keys) == 1 else f"entries {shown}"
