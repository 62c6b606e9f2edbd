"""Write into docs/testing/embedded-cluster.md what it refuses: one row for each case that is marked so.

The markers are read from the source, as those of promises are. A case fails where the cluster does not refuse in the
very words of its marker, so the page cannot claim what is not so.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "testing" / "embedded-cluster.md"
SUITE: Final = ROOT / "tests" / "cluster" / "conformance"

BEGIN: Final = "<!-- Written by scripts/generate/refusals.py: begin -->"
END: Final = "<!-- Written by scripts/generate/refusals.py: end -->"


def refusals(suite: Path) -> Iterator[tuple[str, str]]:
    """Yield what is refused, and what to do instead, case by case.

    Raises:
        ValueError: If a marker is not two plain texts, so that it cannot be read without running it.
    """
    for file in sorted(suite.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.refused":
                yield _read(node, file)


def _read(call: ast.Call, file: Path) -> tuple[str, str]:
    try:
        what, instead = map(ast.literal_eval, call.args)
    except ValueError as error:
        problem = f'{file.name}, line {call.lineno}: a marker is refused("what", "what to do instead"), as literals'
        raise ValueError(problem) from error
    return what, instead


def written(page: str, suite: Path = SUITE) -> str:
    """Return the page with the list anew.

    Args:
        page: The page, with one line at which the list begins and one at which it ends.
        suite: The folder of the cases.

    Raises:
        ValueError: If a marker cannot be read, or the page does not have these lines.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r}, between which the list is written")
    rows = [f"| {what} | {instead} |" for what, instead in dict.fromkeys(refusals(suite))]
    return "\n".join([before + BEGIN, "", "| it cannot | so |", "| --- | --- |", *rows, "", END + after])


def main() -> int:
    """Write the list."""
    try:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
