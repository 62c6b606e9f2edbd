"""Type-check the examples of the documentation as strictly as the package: readers copy them.

Every page becomes one module, each line at its place, so a complaint names the line of the page.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT: Final = Path(__file__).parents[1]
TUTORIAL: Final = ROOT / "docs" / "start" / "tutorial.md"
PAGES: Final = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
FILE: Final = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script(page: Path) -> str:
    """Return the examples of a page as one module, every line at its place."""
    lines: list[str] = []
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples():
        first = example.line + example.parsed.line_offset
        lines += [""] * (first - len(lines)) + example.parsed.splitlines()
    return "\n".join(lines) + "\n"


def files(page: Path, folder: Path) -> list[str]:
    """Write the files of the tutorial as its reader has them in the end; return their paths."""
    written = dict(FILE.findall(page.read_text(encoding="utf-8")))
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in written]


def main() -> int:
    """Write the modules, run mypy on them, and return its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        modules = files(TUTORIAL, Path(folder))
        for page in PAGES:
            module = Path(folder) / f"{page.stem.replace('-', '_').lower()}_page.py"
            module.write_text(script(page), encoding="utf-8")
            modules.append(str(module))
        # A plain `dict` is easier to read on a page than one with its parameters.
        command = [sys.executable, "-m", "mypy", "--disable-error-code", "type-arg", *modules]
        return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 (our own)


if __name__ == "__main__":
    sys.exit(main())
