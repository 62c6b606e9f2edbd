"""Type-check the examples of the documentation as strictly as the package: readers copy them.

Every page becomes one module, each line at its place, so a complaint names the line of the page.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def script(page: Path) -> str:
    """Return the examples of a page as one module, every line at its place."""
    lines: list[str] = []
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples():
        first = example.line + example.parsed.line_offset
        lines += [""] * (first - len(lines)) + example.parsed.splitlines()
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the modules, run mypy on them, and return its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        modules = []
        for page in PAGES:
            module = Path(folder) / f"{page.stem.replace('-', '_').lower()}_page.py"
            module.write_text(script(page), encoding="utf-8")
            modules.append(str(module))
        # A plain `dict` is easier to read on a page than one with its parameters.
        command = [sys.executable, "-m", "mypy", "--disable-error-code", "type-arg", *modules]
        return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 (our own)


if __name__ == "__main__":
    sys.exit(main())
