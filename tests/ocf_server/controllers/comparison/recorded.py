"""Recorded states of the real controllers."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.ocf_server.controllers.comparison.states import State

__all__ = ["FILE", "load", "save"]

FILE: Final = Path(__file__).parent / "states.jsonl.gz"


def load() -> Mapping[str, Sequence[State]]:
    """Return the states after each step, by scenario."""
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    return {found["scenario"]: found["states"] for found in map(json.loads, lines)}


def save(states: Mapping[str, Sequence[State]]) -> None:
    """Write states.

    Args:
        states: The states after each step, by scenario.
    """
    lines = [json.dumps({"scenario": name, "states": states[name]}, sort_keys=True) for name in sorted(states)]
    FILE.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
