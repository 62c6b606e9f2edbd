"""Record what the API server's own packages make of objects with structural schemas, and compare that with ours.

    python -m scripts.record.structural          # needs Go, which downloads the module

Schemas and objects are drawn. All are compared; the first ones are recorded for the tests in
`tests/ocf_server/apiextensions/recorded/structural.jsonl.gz`: the fields that the schema does not know, the object as
decoded, with defaults, and the problems that validation finds in it.
"""

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ocf.schema.kubernetes import KUBERNETES_VERSION
from scripts.record.kstatus import go
from tests.ocf_server.apiextensions.drawn import Drawn, Json
from tests.ocf_server.apiextensions.test_structural import FILE, ours

PROGRAM: Final = Path(__file__).parents[1] / "oracles" / "structural" / "main.go"
MODULE: Final = f"k8s.io/apiextensions-apiserver@v0.{KUBERNETES_VERSION.partition('.')[2]}"
DRAWN: Final = 5000
RECORDED: Final = 800


def cases() -> Iterator[Json]:
    """Yield schemas with objects; half of the schemas have limits."""
    for seed in range(DRAWN):
        drawn = Drawn(seed, limits=0.5 * (seed % 2))
        schema = drawn.schema()
        yield {"schema": schema, "object": drawn.object(schema)}


def results(text: str) -> list[str]:
    """Return what the program prints for lines with a schema and an object; empty where that is random."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PROGRAM, folder)
        for command in (["mod", "init", "record"], ["get", MODULE], ["mod", "tidy"]):
            go(folder, *command)
        runs = [go(folder, "run", ".", text=text).decode().splitlines() for _ in range(3)]
    # Go has no order of the fields of a map, so one of several errors is reported at random.
    return [first if {*others} == {first} else "" for first, *others in zip(*runs, strict=True)]


def main() -> int:
    """Compare, and record; return the exit status."""
    drawn = [json.dumps(case, separators=(",", ":")) for case in cases()]
    found = [
        {**json.loads(case), "real": json.loads(result)}
        for case, result in zip(drawn, results("".join(f"{case}\n" for case in drawn)), strict=True)
        if result
    ]
    differing = [case for case in found if ours(case) != case["real"]]
    for case in differing[:5]:
        print(json.dumps(case["schema"]), json.dumps(case["object"]), case["real"], ours(case), sep="\n", end="\n\n")
    lines = "".join(f"{json.dumps(case, separators=(',', ':'))}\n" for case in found[:RECORDED])
    FILE.write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(f"{len(found)} schemas, {len(differing)} with differences; {RECORDED} recorded")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
