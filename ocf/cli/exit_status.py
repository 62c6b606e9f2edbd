"""Exit statuses of the commands: the only place where they are defined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BROKEN_PIPE", "FAILED", "FOUND", "FOUND_BY", "INTERRUPTED", "MEANINGS", "SUCCESS"]

SUCCESS: Final = 0
FOUND: Final = 1
FAILED: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

MEANINGS: Final[Mapping[int, str]] = {
    SUCCESS: "success",
    FOUND: "the command ran, and found what it looks for",
    FAILED: "an error: invalid options, a file that cannot be read, invalid input, an unreachable cluster",
    INTERRUPTED: "interrupted with Ctrl-C (128 and the number of SIGINT); 0 for a command that runs until then",
    BROKEN_PIPE: "the program that reads the output has ended before (128 and the number of SIGPIPE)",
}
"""The meaning of each exit status; that of `FOUND` depends on the command."""

FOUND_BY: Final[Mapping[str, str]] = {
    "validate": "the API server would reject an object, or --lint has found a problem of the severity --fail-on",
    "default": "the API server would reject an object",
    "simulate": "an expression of --fail-if holds",
    "tune": "no settings meet the requirements",
    "nodegroups": "with try: a pod does not run at the end",
    "explain": "with --watch: the owner is not ready in time, has failed for good, or was deleted",
    "diff": "the next reconcile would change something, or would stop early",
    "manifests": "with --check: a file is not current",
}
"""The meaning of `FOUND` for each command that has it; no other command exits with it."""
