"""Record what kstatus computes from states of built-in kinds, into the table that the tests compare with.

The module comes through the Go module proxy; `go` must be on the path. The states are written by hand in the table; the
recording fills in the verdicts.

    python scripts/record/kstatus.py
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

PROGRAM: Final = Path(__file__).parents[1] / "oracles" / "kstatus" / "main.go"
TABLE: Final = Path(__file__).parents[2] / "tests" / "primitives" / "recorded" / "kstatus.json"
MODULE: Final = "sigs.k8s.io/cli-utils@v0.37.2"


def go(folder: str, *command: str, text: str = "") -> bytes:
    """Run Go in a folder, and return its output."""
    done = subprocess.run(["go", *command], cwd=folder, check=True, capture_output=True, input=text.encode())  # noqa: S603, S607 (Go of this machine)
    return done.stdout


def main() -> None:
    """Run kstatus on every state of the table."""
    states = json.loads(TABLE.read_text(encoding="utf-8"))["states"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PROGRAM, folder)
        for command in (["mod", "init", "record"], ["get", MODULE], ["mod", "tidy"]):
            go(folder, *command)
        verdicts = json.loads(go(folder, "run", ".", text=json.dumps([state["object"] for state in states])))
    recorded = [{**state, "kstatus": verdict} for state, verdict in zip(states, verdicts, strict=True)]
    TABLE.write_text(json.dumps({"module": MODULE, "states": recorded}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
