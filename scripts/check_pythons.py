"""Try the wheel on several versions of Python, each with the lowest and with the newest dependencies.

    make test-pythons                   # those of 3.11 to 3.14 that are installed
    make test-pythons PYTHONS="3.12"    # these; one that is missing is an error

The wheel is built once. `scripts/wheel_smoke.py` tries it in fresh environments: first without extras, then with those
of operators. The lowest versions are those of requirements/lowest.lock, which were resolved for the lowest Python.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = "admission,cel,kopf,new,otel,testing"
SMOKE: Final = ROOT / "scripts" / "wheel_smoke.py"
_PINNED: Final = re.compile(r"^([\w.-]+==[^ \\;]+)", re.MULTILINE)


def main(words: list[str]) -> int:
    """Try the wheel; return how many environments failed."""
    parser = argparse.ArgumentParser(prog="make test-pythons")
    parser.add_argument("pythons", nargs="*", metavar="VERSION", help="such as 3.12; default: those that are installed")
    parser.add_argument("--wheel", type=Path, help="the wheel; default: it is built from this checkout")
    options = parser.parse_args(words)
    found = {version: interpreter(version) for version in options.pythons or PYTHONS}
    missing = [version for version, program in found.items() if program is None]
    if options.pythons and missing:
        print(f"error: Python {', '.join(missing)} is not installed", file=sys.stderr)
        return len(missing)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = options.wheel.resolve() if options.wheel else _built(folder)
        for version, program in found.items():
            for level in ("lowest", "newest") if program is not None else ():
                began = time.monotonic()
                passed = _tried(folder / f"{version}-{level}", str(program), wheel, level)
                seconds = time.monotonic() - began
                print(
                    f"Python {version}, {level} dependencies: {'passed' if passed else 'FAILED'} in {seconds:.0f} s",
                    flush=True,
                )
                failed += not passed
    left_out = f"; not installed: {', '.join(missing)}" if missing else ""
    print(f"{failed} environments failed{left_out}")
    return failed


def interpreter(version: str) -> str | None:
    """Return the program of a version of Python that is installed; None if there is none.

    A program of the name may be one of pyenv that only works where its version is selected, so it is started.

    Args:
        version: The version, 3.12.
    """
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for program in (sys.executable, shutil.which(f"python{version}"), *map(str, pyenv)):
        if program is not None and _version_of(program) == version:
            return program
    return None


def _version_of(program: str) -> str:
    command = [program, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (an interpreter)
    return done.stdout.strip()


def pinned(lock: str) -> Iterator[str]:
    r"""Yield the versions of a lock file, without hashes, as constraints.

    Args:
        lock: The text of the file.

    Example:
        >>> list(pinned("aiohttp==3.14.3 --hash=sha256:0a\nrich==12.5 ; python_version < '3.12'"))
        ['aiohttp==3.14.3', 'rich==12.5']
    """
    yield from _PINNED.findall(lock)


def _built(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own)
    return next((folder / "dist").glob("*.whl"))


def _tried(folder: Path, program: str, wheel: Path, level: str) -> bool:
    """Install the wheel, without and then with extras, and try it each time."""
    python = folder / "env" / "bin" / "python"
    subprocess.run([program, "-m", "venv", str(folder / "env")], check=True)  # noqa: S603 (an interpreter)
    # A checkout that it names would be imported in place of the wheel.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary", ":all:"]
    if level == "lowest":
        constraints = folder / "constraints.txt"
        lock = (ROOT / "requirements" / "lowest.lock").read_text(encoding="utf-8")
        constraints.write_text("\n".join(pinned(lock)), encoding="utf-8")
        install += ["--constraint", str(constraints)]
    for scope, wanted in (("core", str(wheel)), ("extras", f"{wheel}[{EXTRAS}]")):
        work = folder / scope
        work.mkdir()
        for command in ([*install, wanted], [str(python), "-P", str(SMOKE), scope]):
            done = subprocess.run(  # noqa: S603 (ours)
                command, cwd=work, env=environ, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{scope}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
                return False
    return True


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
