"""Record the types that the API server's type checker gives drawn expressions, or its errors, and compare ours.

    python -m scripts.record.expression_types          # needs Go, which downloads the module

All are compared; the first ones are recorded for the tests in `tests/ocf_server/cel/recorded/types.jsonl.gz`.
"""

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts.record.kstatus import go
from scripts.record.structural import MODULE
from tests.ocf_server.cel.drawn import SCHEMA, expressions
from tests.ocf_server.cel.test_types import FILE, is_same, ours

PROGRAM: Final = Path(__file__).parents[1] / "oracles" / "expressions" / "main.go"
DRAWN: Final = 30_000
RECORDED: Final = 3000


def main() -> int:
    """Compare, and record; return the exit status."""
    texts = list(dict.fromkeys(expressions(DRAWN)))
    lines = "".join(f"{json.dumps(each)}\n" for each in (SCHEMA, *texts))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PROGRAM, folder)
        for command in (["mod", "init", "record"], ["get", MODULE], ["mod", "tidy"]):
            go(folder, *command)
        answers = [json.loads(line) for line in go(folder, "run", ".", text=lines).decode().splitlines()]
    # Where the checker of Go itself fails, it gives no answer.
    found = [{"expression": text, "real": real} for text, real in zip(texts, answers, strict=True) if real]
    differing = [case for case in found if not is_same(str(case["expression"]), case["real"])]
    for case in differing[:20]:
        print(case["expression"], case["real"], ours(str(case["expression"])), sep="\n", end="\n\n")
    written = "".join(f"{json.dumps(case, separators=(',', ':'))}\n" for case in found[:RECORDED])
    FILE.write_bytes(gzip.compress(written.encode(), mtime=0))
    print(f"{len(found)} expressions, {len(differing)} with differences; {RECORDED} recorded")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
