"""CustomResourceDefinitions of other projects, recorded by `scripts/record_foreign_kinds.py` from their Go modules."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.objects import Manifest
from ocf.scaffold import ForeignKind, foreign_kinds

__all__ = ["RECORDED", "Case", "cases"]

RECORDED: Final = Path(__file__).parent / "recorded" / "definitions.jsonl.gz"


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
