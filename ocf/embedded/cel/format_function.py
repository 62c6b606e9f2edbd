"""The string function `format`, `'%d of %s'.format([self.count, self.name])`."""

import re
from collections.abc import Sequence
from typing import Any, Final

from ocf.embedded.cel.conversions import shown
from ocf.embedded.cel.types import ANY, BOOL, INT, STRING, CelType
from ocf.embedded.cel.unsupported import unsupported_feature

__all__ = ["checked_format", "formatted"]

_CLAUSE: Final = re.compile(r"%([sd%])")
_TAKEN: Final = {"s": (STRING, BOOL, INT), "d": (INT,)}


def checked_format(text: Any, kinds: Sequence[CelType] | None) -> None:
    """Check that the embedded cluster supports a call of `format`.

    Args:
        text: The format string; any other type if it is not a literal.
        kinds: Types of the arguments; None if they are not a list literal.

    Raises:
        BadRequestError: If the call uses other clauses than `%s` and `%d`, other types, or no literals.
    """
    clauses = [clause for clause in _CLAUSE.findall(text) if clause != "%"] if isinstance(text, str) else []
    plain = isinstance(text, str) and "%" not in _CLAUSE.sub("", text)
    if kinds is None or not plain or len(clauses) != len(kinds):
        raise unsupported_feature("format with clauses other than %s and %d, or without a list literal,")
    for clause, kind in zip(clauses, kinds, strict=True):
        if kind == ANY or kind not in _TAKEN[clause]:
            raise unsupported_feature(f"format with %{clause} for {kind}")


def formatted(text: str, values: list[Any]) -> str:
    """Return a format string with its clauses replaced by values."""
    rest = iter(values)
    return _CLAUSE.sub(lambda found: "%" if found[1] == "%" else shown(next(rest)), text)
