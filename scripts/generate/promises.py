"""Write docs/project/promises.md: each promise to users, and the tests that prove it.

Promises are declared once, in tests/promises.toml; tests name them by the marker `promise`. The markers are read from
the source, so that the page needs no run of the tests, and no test can be left out of it by the way it is run.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "project" / "promises.md"

INTRODUCTION: Final = """\
# Promises

Each promise of `ocf`, and the test that proves it. Most of these run an operator of six resources on the embedded
cluster, in virtual time, and inject faults at every request. They compare the final state with that of a run without
faults, and the objects that were created and deleted on the way; in sync, the operator must write nothing. You can use
[the same tools](../testing/testing.md).

This page is generated from the tests: a promise without a test, or a test of an unknown promise, fails them.
What is not promised is in [limits](limits.md).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A test that proves a promise.

    Args:
        promise: Name of the promise.
        file: The test's file, from the root of the repository.
        test: The test, within its file.
        runs: What it does how often, for people; empty where that says nothing.
    """

    promise: str
    file: str
    test: str
    runs: str = ""


def promises(table: Path) -> dict[str, dict[str, str]]:
    """Return the promises: heading, name, sentence."""
    headings: dict[str, dict[str, str]] = tomllib.loads(table.read_text(encoding="utf-8"))
    return headings


def proofs(tests: Path) -> Iterator[Proof]:
    """Yield what the tests prove, file by file.

    Raises:
        ValueError: If a marker is not plain text, so that it cannot be read without running it.
    """
    for file in sorted(tests.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        if "mark.promise(" in source:
            yield from _marked(ast.parse(source), file.relative_to(tests.parent).as_posix(), "")


def _marked(tree: ast.AST, file: str, within: str) -> Iterator[Proof]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = f"{within}{node.name}"
        for call in filter(_is_promise, node.decorator_list):
            yield _proof(call, file, name)
        if isinstance(node, ast.ClassDef):
            yield from _marked(node, file, f"{name}::")


def _is_promise(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise"


def _proof(call: ast.expr, file: str, test: str) -> Proof:
    assert isinstance(call, ast.Call)  # noqa: S101 (`_is_promise` said so)
    try:
        (promise,) = map(ast.literal_eval, call.args)
        runs = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
        return Proof(promise=promise, file=file, test=test, runs=runs.pop("runs", ""), **runs)
    except (ValueError, TypeError) as error:
        raise ValueError(f'{file}, {test}: a marker is promise("name", runs="how often"), in plain text') from error


def page(tests: Path = ROOT / "tests") -> str:
    """Return the page.

    Args:
        tests: The folder of the tests, with `promises.toml` in it.

    Raises:
        ValueError: If a promise has no test, or a test names an unknown promise; lists all of them.
    """
    made, found = promises(tests / "promises.toml"), list(proofs(tests))
    names = [name for heading in made.values() for name in heading]
    problems = [
        *(
            f'{proof.file}, {proof.test}: no promise is called "{proof.promise}"'
            for proof in found
            if proof.promise not in names
        ),
        *(f'no test proves the promise "{name}"' for name in names if all(proof.promise != name for proof in found)),
        *(f'two promises are called "{name}"' for name in dict.fromkeys(names) if names.count(name) > 1),
    ]
    if problems:
        raise ValueError("\n".join(problems))
    return "\n".join([INTRODUCTION, *(_section(title, heading, found) for title, heading in made.items())])


def _section(title: str, heading: dict[str, str], found: list[Proof]) -> str:
    lines = [f"## {title}", "", "| promise | proved by |", "| --- | --- |"]
    for name, sentence in heading.items():
        cells = [_cell(proof) for proof in found if proof.promise == name]
        lines.append(f"| {sentence} | {'<br>'.join(cells)} |")
    return "\n".join([*lines, ""])


def _cell(proof: Proof) -> str:
    rule = proof.test.rpartition("::")[2].removeprefix("test_").replace("_", " ")
    return f"[{rule}](../../{proof.file})" + (f": {proof.runs}" if proof.runs else "")


def main() -> int:
    """Write the page."""
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
