"""CustomResourceDefinitions of other projects, recorded by `scripts/record_foreign_kinds.py` from their Go modules."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.objects import Manifest
from ocf.scaffold import ForeignKind, foreign_kinds

__all__ = ["PAGE", "RECORDED", "TABLE", "Case", "cases", "table"]

RECORDED: Final = Path(__file__).parent / "recorded" / "definitions.jsonl.gz"
PAGE: Final = Path(__file__).parents[3] / "docs" / "new.md"
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
def cases() -> tuple[Case, ...]:
    """Return the recorded definitions."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    return tuple(
        Case(
            line["project"],
            line["module"],
            line["version"],
            foreign_kinds([line["definition"]])[0],
            tuple(line["samples"]),
        )
        for line in lines
    )


def table() -> str:
    """Return the table of the page: a row for each project and module."""
    rows: dict[str, list[str]] = {}
    for case in cases():
        name = f"{case.kind.kind} of {case.kind.api_version}"
        rows.setdefault(f"| {case.project} | `{case.module}` {case.version} |", []).append(name)
    return TABLE + "".join(f"{row} {', '.join(kinds)} |\n" for row, kinds in rows.items())
