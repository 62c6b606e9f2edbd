"""Build of the playground: `make playground`, or `python -m scripts.generate.playground --output FOLDER` to publish it.

The result is a folder with everything that the page needs, in the cache, named after its sources; a folder that exists
is complete. Pyodide has the version and hash of `docs/playground/package-lock.json`. The Python packages are those of
the environment, which `requirements/test.lock` pins, and ocf itself; only pydantic-core is compiled, so that its wheel
for Pyodide is downloaded, with the version and hashes of that file.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, Final

import yaml

from ocf.autoscaling.explain.html_page import COLOURS, STYLE
from ocf.simulation.report.page import report_part
from ocf.testing.envtest.versions import cache_folder

__all__ = ["BuildError", "build", "built_folder", "bundled", "pinned"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "playground"
LOCK: Final = ROOT / "requirements" / "test.lock"
SIGN: Final = ROOT / "docs" / "site" / "sign.svg"
SOURCES: Final = (Path(__file__), LOCK, SIGN)
OURS: Final = (
    "autoscaling",
    "errors.py",
    "lazy_exports.py",
    "lazy_types",
    "nodegroups",
    "objects",
    "schema",
    "simulation",
    "__init__.py",
)
PURE: Final = (
    "annotated-types",
    "pydantic",
    "PyYAML",
    "typing-extensions",
    "typing-inspection",
    "tzdata",
)
LEFT_OUT: Final = ("pydantic/v1/", "pydantic/mypy.py", "pydantic/_hypothesis_plugin.py")
COMPILED: Final = "pydantic-core"
RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
BUNDLE: Final = "ocf.zip"
_DIGITS: Final = 12
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The playground cannot be built."""


def _own_files() -> Iterator[Path]:
    for name in OURS:
        path = ROOT / "ocf" / name
        yield from (path,) if path.is_file() else sorted(path.rglob("*"))


def built_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the current sources, which exists if it is built.

    Args:
        environ: The environment variables.
    """
    page = (path for path in sorted(PAGE.iterdir()) if path.is_file())
    digest = sha256()
    for path in (*SOURCES, *page, *_own_files()):
        if path.suffix != ".pyc" and path.is_file():
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return cache_folder(environ).with_name("playground") / digest.hexdigest()[:_DIGITS]


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """Build the folder of the current sources if it is missing, and remove those of other sources.

    Args:
        environ: The environment variables.

    Returns:
        The folder.

    Raises:
        BuildError: If a program is missing, or fails.
    """
    folder = built_folder(environ)
    if folder.exists():
        return folder
    missing = [name for name in ("npm", "node") if not shutil.which(name)]
    if missing:
        raise BuildError(f"the playground needs {' and '.join(missing)}: install Node.js 18 or newer")
    folder.parent.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        _Build(Path(scratch)).run().rename(folder)
    return folder


class _Build:
    """One build, in a folder that is removed afterwards."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._made = scratch / "playground"

    def run(self) -> Path:
        """Return the complete folder."""
        self._made.mkdir()
        info = self._runtime()
        wheel = self._wheel(info)
        self._write_sources()
        for path in PAGE.glob("*.*"):
            if path.suffix in {".css", ".html", ".js"}:
                shutil.copy(path, self._made)
        shutil.copy(SIGN, self._made)
        examples = yaml.safe_load((PAGE / "examples.yaml").read_text(encoding="utf-8"))
        (self._made / "examples.json").write_text(json.dumps(examples), encoding="utf-8")
        (self._made / "report.css").write_text(COLOURS + report_part("charts.css") + STYLE, encoding="utf-8")
        (self._made / "charts.js").write_text(report_part("charts.js"), encoding="utf-8")
        self._write_lock(info, wheel)
        self._call(["node", str(PAGE / "compile.mjs"), str(self._made), BUNDLE])
        self._write_lock(info, wheel)
        fetched = [*RUNTIME[2:], wheel, BUNDLE, "pyodide-lock.json"]
        sizes = {name: (self._made / name).stat().st_size for name in fetched}
        (self._made / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
        return self._made

    def _runtime(self) -> Mapping[str, str]:
        """Install Pyodide; return what it says about its Python."""
        packages = self._scratch / "npm"
        packages.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PAGE / name, packages)
        self._call(["npm", "ci", "--prefix", str(packages), "--no-audit", "--no-fund", "--silent"])
        pyodide = packages / "node_modules" / "pyodide"
        for name in RUNTIME:
            shutil.copyfile(pyodide / name, self._made / name)
        info: Mapping[str, str] = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))["info"]
        return info

    def _wheel(self, info: Mapping[str, str]) -> str:
        """Download the compiled package; return the name of its wheel."""
        requirements = self._scratch / "requirements.txt"
        requirements.write_text(pinned(), encoding="utf-8")
        python = ".".join(info["python"].split(".")[:2])
        platform = f"pyemscripten_{info['abi_version']}_{info['arch']}"
        chosen = ["--platform", platform, "--python-version", python, "--abi", f"cp{python.replace('.', '')}"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--implementation", "cp", "--require-hashes", "--dest", str(self._made)]
        self._call([*command, *chosen, "--requirement", str(requirements)])
        [wheel] = self._made.glob("*.whl")
        return wheel.name

    def _write_sources(self) -> None:
        """Write the modules in Python into one archive."""
        with zipfile.ZipFile(self._made / BUNDLE, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, path in sorted(bundled()):
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())

    def _write_lock(self, info: Mapping[str, str], wheel: str) -> None:
        """Write the packages of the folder, with the hashes that Pyodide checks."""
        packages = {
            COMPILED: self._package(COMPILED, version(COMPILED), wheel, "pydantic_core"),
            "ocf": self._package("ocf", "0", BUNDLE, "ocf", depends=[COMPILED]),
        }
        text = json.dumps({"info": info, "packages": packages}, indent=1)
        (self._made / "pyodide-lock.json").write_text(text, encoding="utf-8")

    def _package(self, name: str, number: str, file: str, module: str, *, depends: Sequence[str] = ()) -> Any:
        return {
            "name": name,
            "version": number,
            "file_name": file,
            "sha256": sha256((self._made / file).read_bytes()).hexdigest(),
            "install_dir": "site",
            "package_type": "package",
            "imports": [module],
            "depends": list(depends),
            "unvendored_tests": False,
        }

    def _call(self, command: Sequence[str]) -> None:
        # To a file, since Node.js ends before it has written what does not fit into a pipe: it shows the source line of
        # an error ahead of the error, and modules of Pyodide are one line.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=False)  # noqa: S603 (our own)
            if done.returncode:
                output.seek(0)
                lines = "\n".join(line[:200] for line in output.read().splitlines()[-30:])
                raise BuildError(f"{' '.join(command[:4])} failed:\n{lines}")


def pinned() -> str:
    """Return the requirement of the compiled package, with the hashes of its files, as pip reads it.

    Raises:
        BuildError: If another version is installed: pydantic works with one version only.
    """
    text = LOCK.read_text(encoding="utf-8")
    [found] = re.findall(rf"^({COMPILED}==[^ ]*) .*\n((?:    --hash=.*\n)*)", text, re.MULTILINE)
    if found[0] != f"{COMPILED}=={version(COMPILED)}":
        raise BuildError(f"{COMPILED} {version(COMPILED)} is installed, and {LOCK.name} has {found[0]}")
    return f"{found[0]} \\\n{found[1]}"


def bundled() -> Iterator[tuple[str, Path]]:
    """Yield the files of the archive, each with its name in it."""
    for name in PURE:
        for file in distribution(name).files or ():
            text = file.as_posix()
            wanted = file.suffix == ".py" or text.startswith("tzdata/zoneinfo/")
            if wanted and not text.startswith(LEFT_OUT) and not {"..", "__pycache__"} & {*file.parts}:
                yield text, Path(str(file.locate()))
    for path in _own_files():
        if path.suffix in {".css", ".js", ".json", ".py"}:
            yield path.relative_to(ROOT).as_posix(), path


def main() -> int:
    """Build the folder, and print how to serve it."""
    parser = argparse.ArgumentParser(description="Build the playground.")
    parser.add_argument("--output", type=Path, help="folder to copy it to, which must not exist")
    output = parser.parse_args().output
    if output is not None and output.exists():
        print(f"--output: {output} exists", file=sys.stderr)
        return 1
    if not built_folder().exists():
        print("Building the playground (once, about a minute)", flush=True)
    try:
        folder = build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if output is not None:
        folder = Path(shutil.copytree(folder, output))
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder}: {size / 1e6:.1f} MB. To open it, run\n")
    print(f"    python -m http.server --bind 127.0.0.1 --directory {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
