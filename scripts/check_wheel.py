"""Run the examples of the documentation as a reader of the wheel does: in fresh environments, with only what pages say.

The wheel is built and installed into an empty virtual environment, without a checkout in sight. A page that names an
extra, such as `ocf[cel]`, gets it, and the packages beside it in a command such as `pip install 'ocf[otel]' other`; the
others get nothing but the wheel and its dependencies. Every page runs in a folder of its own; tests run with pytest,
set up as the page about testing says.
"""

import re
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT: Final = Path(__file__).resolve().parents[1]
# Its files import each other; tests/docs/test_tutorial.py runs them.
TUTORIAL: Final = ROOT / "docs" / "start" / "tutorial.md"
PAGES: Final = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
EXTRAS: Final = re.compile(r"ocf\[([a-z]+(?:,[a-z]+)*)\]")
BESIDE: Final = re.compile(r"`pip install 'ocf\[[a-z,]+\]'((?: [a-z][a-z0-9-]+)+)`")
SETTINGS: Final = re.compile(r"^```toml\n(\[tool\.pytest\.ini_options\]\n.*?)^```$", re.MULTILINE | re.DOTALL)
TEST: Final = re.compile(r"^(?:(?:async )?def test_|class Test)", re.MULTILINE)
EXAMPLES: Final = re.compile(r"^(?:from|import) examples\b", re.MULTILINE)
PLUGIN: Final = 'pytest_plugins = ["ocf.testing.plugin"]\n'
HASH: Final = re.compile(r" \\\n *--hash=\S+")


@dataclass(frozen=True)
class Page:
    """A page with examples.

    Args:
        path: The file.
        code: Its Python blocks, in order.
        extras: The extras that it names.
        packages: The packages that it installs beside them.
    """

    path: Path
    code: str
    extras: frozenset[str]
    packages: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> "Page":
        """Read a page."""
        text = path.read_text(encoding="utf-8")
        blocks = Sybil(parsers=[PythonCodeBlockParser()]).parse(path).examples()
        code = "\n\n".join(str(block.parsed) for block in blocks)
        extras = frozenset(extra for names in EXTRAS.findall(text) for extra in names.split(","))
        packages = frozenset(package for names in BESIDE.findall(text) for package in names.split())
        return cls(path, code, extras, packages)


def main() -> int:
    """Run the examples of all pages, or of those that the arguments name; return how many pages failed."""
    named = [ROOT / name for name in sys.argv[1:]]
    pages = [page for page in map(Page.read, named or PAGES) if page.code]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = _environment(folder, frozenset(), frozenset(), base=None)
        environments = {(frozenset[str](), frozenset[str]()): base}
        failed = 0
        for page in pages:
            needed = page.extras, page.packages
            if needed not in environments:
                environments[needed] = _environment(folder, *needed, base=base)
            passed = _runs(page, environments[needed], folder / f"page-{page.path.stem}")
            print(f"{page.path.relative_to(ROOT)}: {'passed' if passed else 'failed'}", flush=True)
            failed += not passed
    print(f"{len(pages) - failed} pages passed, {failed} failed, in {len(environments)} environments")
    return failed


def _environment(folder: Path, extras: frozenset[str], packages: frozenset[str], *, base: Path | None) -> Path:
    """Create a virtual environment with the wheel, extras and packages; return its Python.

    Packages of the base environment are seen, so that only what the extras add is installed.
    """
    name = "-".join(sorted(extras | packages)) or "base"
    home = folder / f"env-{name}"
    venv.create(home)
    python = home / "bin" / "python"
    if base is not None:
        (_packages(python) / "base.pth").write_text(f"{_packages(base)}\n", encoding="utf-8")
    wheel = next((folder / "dist").glob("*.whl"), None) or _build(folder)
    wanted = f"{wheel}[{','.join(sorted(extras))}]" if extras else str(wheel)
    # With the pip of this environment: installing one into each would take as long as what is installed.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    chosen = ["--only-binary", ":all:", "--constraint", str(_constraints(folder))]
    _run([*pip, "install", *chosen, wanted, *sorted(packages)], cwd=folder)
    return python


def _build(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")], cwd=ROOT)
    return next((folder / "dist").glob("*.whl"))


def _constraints(folder: Path) -> Path:
    """Write the locked versions without hashes, which constraints cannot have."""
    path = folder / "constraints.txt"
    path.write_text(HASH.sub("", (ROOT / "requirements" / "test.lock").read_text(encoding="utf-8")), encoding="utf-8")
    return path


def _packages(python: Path) -> Path:
    return next((python.parents[1] / "lib").glob("python3*")) / "site-packages"


def _runs(page: Page, python: Path, folder: Path) -> bool:
    """Run the examples of a page; print what failed."""
    folder.mkdir()
    if EXAMPLES.search(page.code):
        # Such a page says that it is about the examples of a checkout.
        (folder / "examples").symlink_to(ROOT / "examples")
    if TEST.search(page.code):
        (folder / "pyproject.toml").write_text(_pytest_settings(), encoding="utf-8")
        (folder / "conftest.py").write_text(PLUGIN, encoding="utf-8")
        (folder / "test_page.py").write_text(page.code.replace(PLUGIN, ""), encoding="utf-8")
        commands = [["-m", "pytest", "-q", "--ocf-update-goldens"], ["-m", "pytest", "-q", "-W", "error"]]
    else:
        # Imported, so that a program of the page is not started: its section runs it with arguments and beside others.
        (folder / "page.py").write_text(page.code, encoding="utf-8")
        commands = [["-W", "error", "-c", "import page"]]
    for command in commands:
        done = subprocess.run(  # noqa: S603 (our own)
            [str(python), *command], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
            return False
    return True


def _pytest_settings() -> str:
    """Return the settings of pytest that the page about testing shows."""
    found = SETTINGS.search((ROOT / "docs" / "testing" / "testing.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("docs/testing/testing.md shows no [tool.pytest.ini_options]")
    return found[1]


def _run(command: list[str], *, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True)  # noqa: S603 (our own)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
