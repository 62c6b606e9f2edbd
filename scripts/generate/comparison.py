"""Write the tables of docs/project/comparison.md: `python -m scripts.generate.comparison`; `--measure`: requests, too.

Lines of code are counted in the files of `examples/comparison` and their tests, without blank lines, comments and
docstrings; generated files are counted apart. Requests are measured on an embedded API server over HTTP, which takes
about five minutes and needs the program that `make clients` builds.
"""

import argparse
import ast
import asyncio
import io
import re
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.cluster import Request, Verb
from ocf.cluster.request_log import RequestLog
from ocf.testing import fake_workload_controllers
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.examples.comparison.checks import Site
from tests.examples.comparison.programs import PROGRAMS, Program, running

__all__ = ["Lines", "code_lines", "lines_table", "main", "replaced"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "project" / "comparison.md"
OPERATORS: Final = ROOT / "examples" / "comparison"
TESTS: Final = ROOT / "tests" / "examples" / "comparison"
HEADINGS: Final = {"ocf_operator": "ocf", "kopf_operator": "bare kopf", "controller_runtime": "controller-runtime"}
_GENERATED: Final = ("zz_generated", "config/crd")
_SITES: Final = 10
_SETTLING_SECONDS: Final = 20
_AT_REST_SECONDS: Final = 60
_SUFFIXES: Final = {".py", ".go", ".yaml"}


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of code of one operator.

    Args:
        operator: Of the operator itself, in its language.
        definition: Of the CustomResourceDefinition, where it is written by hand.
        tests: Of its tests.
        generated: Of files that a generator writes.
    """

    operator: int = 0
    definition: int = 0
    tests: int = 0
    generated: int = 0

    @property
    def written(self) -> int:
        """All lines that are written by hand."""
        return self.operator + self.definition + self.tests


def code_lines(text: str, suffix: str) -> int:
    r"""Return the number of lines with code.

    Args:
        text: The content of a file.
        suffix: The suffix of its name: `.py`, `.go` or `.yaml`.

    Returns:
        The lines that are neither blank nor comments nor docstrings.

    Example:
        >>> code_lines("# the first\n\nONE = 1  # one\n", ".py")
        1
    """
    if suffix == ".py":
        return len(_python_lines(text))
    comment = "//" if suffix == ".go" else "#"
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))


def _python_lines(text: str) -> set[int]:
    passed = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in passed:
            lines.update(range(token.start[0], token.end[0] + 1))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return lines


def count(name: str) -> Lines:
    """Return the lines of one operator.

    Args:
        name: The name of its folder.
    """
    found: Counter[str] = Counter()
    for path in (OPERATORS / name).rglob("*"):
        if path.suffix in _SUFFIXES:
            found[_part(path)] += code_lines(path.read_text(encoding="utf-8"), path.suffix)
    tests = TESTS / f"test_{name}.py"
    if not found["tests"]:
        found["tests"] = code_lines(tests.read_text(encoding="utf-8"), tests.suffix)
    return Lines(**found)


def _part(path: Path) -> str:
    if any(mark in path.as_posix() for mark in _GENERATED):
        return "generated"
    if path.suffix == ".yaml":
        return "definition"
    return "tests" if path.stem.endswith("_test") else "operator"


def table(rows: Mapping[str, Iterable[object]]) -> str:
    """Return a table with one column for each operator."""
    titles = list(HEADINGS.values())
    lines = [["", *titles], ["---", *["--:"] * len(titles)]]
    lines += [[name, *map(str, cells)] for name, cells in rows.items()]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def lines_table() -> str:
    """Return the table of lines, counted now."""
    counted = [count(name) for name in HEADINGS]
    rows: dict[str, list[object]] = {
        "operator": [each.operator for each in counted],
        "CustomResourceDefinition, written by hand": [each.definition for each in counted],
        "tests": [each.tests for each in counted],
        "**all that is written**": [f"**{each.written}**" for each in counted],
        "generated files in the repository": [each.generated for each in counted],
    }
    return table(rows)


# --- Requests, measured. ---


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one operator with its sites.

    Args:
        created: From the creation of the sites until all are ready.
        at_rest: During a minute afterwards.
        restarted: Of a new process that finds everything in sync.
    """

    created: list[Request]
    at_rest: list[Request]
    restarted: list[Request]


def _without_watches(requests: Iterable[Request]) -> list[Request]:
    return [each for each in requests if each.verb not in {Verb.WATCH, Verb.LIST}]


async def measure(program: Program) -> Requests:
    """Measure the requests of one operator.

    Args:
        program: The operator.
    """
    cluster = EmbeddedCluster(namespaces=[f"web-{number}" for number in range(_SITES)])
    others = copy(cluster)  # the user and the built-in controllers, whose requests are not counted
    others.requests = RequestLog()
    definition = program.load_definition()
    await cluster.create(definition, field_manager="user")
    sites = [Site(others, definition["spec"]["group"], f"web-{number}") for number in range(_SITES)]
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        async with serving(cluster) as server, fake_workload_controllers(others):
            write_kubeconfig(server.kubeconfig(), kubeconfig)

            async def during(seconds: float) -> list[Request]:
                cluster.requests.clear()
                await asyncio.sleep(seconds)
                return _without_watches(cluster.requests)

            async with running(program, kubeconfig):
                await asyncio.sleep(_SETTLING_SECONDS)
                cluster.requests.clear()
                for site in sites:
                    await site.create()
                for site in sites:
                    await site.until_reason("Healthy")
                await asyncio.sleep(_SETTLING_SECONDS)
                created = _without_watches(cluster.requests)
                at_rest = await during(_AT_REST_SECONDS)
            async with running(program, kubeconfig):
                restarted = await during(_SETTLING_SECONDS)
    return Requests(created, at_rest, restarted)


def requests_table(measured: Iterable[Requests]) -> str:
    """Return the table of requests."""
    each = list(measured)

    def reads(requests: list[Request]) -> int:
        return sum(request.verb.is_read for request in requests)

    def writes(requests: list[Request]) -> int:
        return sum(not request.verb.is_read for request in requests)

    def changes(requests: list[Request]) -> int:
        return sum(request.changed for request in requests)

    rows: dict[str, list[object]] = {}
    for title, part in (
        (f"{_SITES} new sites, until all are ready", [one.created for one in each]),
        ("one minute at rest", [one.at_rest for one in each]),
        ("a restart, with everything in sync", [one.restarted for one in each]),
    ):
        rows[f"{title}: reads"] = [reads(found) for found in part]
        rows[f"{title}: writes"] = [writes(found) for found in part]
        rows[f"{title}: of these, writes that change something"] = [changes(found) for found in part]
    return table(rows)


# --- The page. ---


def replaced(page: str, name: str, content: str) -> str:
    """Return the page with a table replaced.

    Args:
        page: The page.
        name: The name in the comments around the table.
        content: The new table.

    Raises:
        ValueError: If the page does not have the comments exactly once.
    """
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    result, number = pattern.subn(lambda _: f"{begin}\n\n{content}\n\n{end}", page)
    if number != 1:
        raise ValueError(f"{PAGE.name} must have {begin} and {end} once, found {number}")
    return result


async def _measured() -> list[Requests]:
    return [await measure(program) for program in PROGRAMS]


def main() -> int:
    """Write the page."""
    options = argparse.ArgumentParser(description="Write the tables of docs/project/comparison.md.")
    options.add_argument("--measure", action="store_true", help="measure the requests, too")
    tables = {"lines": lines_table()}
    if options.parse_args().measure:
        tables["requests"] = requests_table(asyncio.run(_measured()))
    page = PAGE.read_text(encoding="utf-8")
    for name, content in tables.items():
        page = replaced(page, name, content)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
