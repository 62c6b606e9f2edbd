"""The function `format` of texts, `'%d of %s'.format([self.count, self.name])`."""

import re
from collections.abc import Sequence
from typing import Any, Final

from ocf.embedded.cel.conversions import shown
from ocf.embedded.cel.types import ANY, BOOL, INT, STRING, Kind
from ocf.embedded.cel.unsupported import lacking

__all__ = ["checked_format", "formatted"]

_CLAUSE: Final = re.compile(r"%([sd%])")
_TAKEN: Final = {"s": (STRING, BOOL, INT), "d": (INT,)}


def checked_format(text: Any, kinds: Sequence[Kind] | None) -> None:
    """Refuse what is formatted in a way that is not known here.

    Args:
        text: What is formatted; anything but a text if that is not written out.
        kinds: Types of what is put in; None if these are not written out.
    """
    clauses = [clause for clause in _CLAUSE.findall(text) if clause != "%"] if isinstance(text, str) else []
    plain = isinstance(text, str) and "%" not in _CLAUSE.sub("", text)
    if kinds is None or not plain or len(clauses) != len(kinds):
        raise lacking("format with other than %s and %d, and a list that is written out,")
    for clause, kind in zip(clauses, kinds, strict=True):
        if kind == ANY or kind not in _TAKEN[clause]:
            raise lacking(f"format with %{clause} for {kind}")


def formatted(text: str, values: list[Any]) -> str:
    """Put values into a text."""
    rest = iter(values)
    return _CLAUSE.sub(lambda found: "%" if found[1] == "%" else shown(next(rest)), text)
