"""CustomResourceDefinitions of other projects, recorded by `scripts/record/foreign_kinds.py` from their Go modules."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.objects import Manifest
from ocf.scaffold import foreign_kinds
from ocf.scaffold.foreign_kind import ForeignKind

__all__ = ["PAGE", "RECORDED", "TABLE", "Case", "cases", "definitions", "table"]

RECORDED: Final = Path(__file__).parent / "recorded" / "definitions.jsonl.gz"
PAGE: Final = Path(__file__).parents[3] / "docs" / "start" / "new.md"
TABLE: Final = "| project | module | kinds |\n| --- | --- | --- |\n"
"""Head of the table of definitions in the page."""


class Case(NamedTuple):
    """A definition, with objects of its kind.

    Args:
        project: Name of the project.
        module: Go module.
        version: Version of the module.
        kind: The kind, of the version of the definition that was recorded.
        samples: Objects that the module has as examples, which the API server would accept.
    """

    project: str
    module: str
    version: str
    kind: ForeignKind
    samples: tuple[Manifest, ...]

    def __str__(self) -> str:
        return f"{self.kind.kind.lower()}.{self.kind.group}"


@cache
def _lines() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines())


@cache
def cases() -> tuple[Case, ...]:
    """Return the recorded definitions."""
    return tuple(
        Case(line["project"], line["module"], line["version"], kind, tuple(line["samples"]))
        for line, (_, kind) in zip(_lines(), definitions(), strict=True)
    )


def definitions() -> tuple[tuple[Manifest, ForeignKind], ...]:
    """Return the manifests of the recorded definitions, with their kinds."""
    return tuple((line["definition"], foreign_kinds([line["definition"]])[0]) for line in _lines())


def table() -> str:
    """Return the table of the page: a row for each project and module."""
    rows: dict[str, list[str]] = {}
    for case in cases():
        name = f"{case.kind.kind} of {case.kind.api_version}"
        rows.setdefault(f"| {case.project} | `{case.module}` {case.version} |", []).append(name)
    return TABLE + "".join(f"{row} {', '.join(kinds)} |\n" for row, kinds in rows.items())
