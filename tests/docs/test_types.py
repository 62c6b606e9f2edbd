"""The examples of the documentation are typed as strictly as the package: readers copy them."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def script(page: Path) -> str:
    """Return the examples of a page as one module, every line at its place."""
    lines: list[str] = []
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples():
        first = example.line + example.parsed.line_offset
        lines += [""] * (first - len(lines)) + example.parsed.splitlines()
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy comes with make check")
def test_the_examples_are_typed(tmp_path: Path) -> None:
    for page in PAGES:
        (tmp_path / f"{page.stem.replace('-', '_').lower()}_page.py").write_text(script(page), encoding="utf-8")
    modules = sorted(str(path) for path in tmp_path.glob("*_page.py"))

    command = [sys.executable, "-m", "mypy", "--no-error-summary", *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)  # noqa: S603 (our own)

    found = [line for line in done.stdout.splitlines() if "_page.py" in line]
    # A plain `dict` is easier to read on a page than one with its parameters.
    assert [line for line in found if not line.endswith("[type-arg]")] == []
    assert not done.stderr
