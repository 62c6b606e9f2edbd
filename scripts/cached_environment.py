"""Virtual environments of tools in the cache: `python -m scripts.cached_environment clients`, or `site`.

The folder of an environment is named after the files that lock its packages and after the Python that runs it: the
cache may be kept and shared, and what is in it was made from these files. It is not the time of a file that says so,
since a checkout gives all files the present time.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from ocf.testing.envtest.versions import Machine, cache_folder
from scripts.site import mermaid

__all__ = ["CLIENTS", "ENVIRONMENTS", "SITE", "CachedEnvironment"]

ROOT: Final = Path(__file__).parents[1]
PROGRAMS: Final = ROOT / "tests" / "clients" / "programs"
_DIGITS: Final = 12
_COMPLETE: Final = "complete"


@dataclass(frozen=True)
class CachedEnvironment:
    """A virtual environment, and what is beside it.

    Args:
        name: The name of its folder in the cache.
        packages: What it consists of, for people.
        lock: The file with its packages, with hashes.
        more: Installs what else belongs to it into the folder; returns whether it could.
        sources: The files that this depends on.
    """

    name: str
    packages: str
    lock: Path
    more: Callable[[Path], bool]
    sources: tuple[Path, ...]

    def folder(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return its folder, which may be missing or incomplete."""
        machine = Machine.here()
        found = sha256(f"{sys.version_info[:2]} {machine.system} {machine.architecture}".encode())
        for path in (self.lock, *self.sources):
            found.update(path.read_bytes())
        return cache_folder(environ).with_name(self.name) / found.hexdigest()[:_DIGITS]

    def is_complete(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether it is installed."""
        return (self.folder(environ) / _COMPLETE).exists()

    def program(self, name: str) -> Path:
        """Return a program of it."""
        return self.folder() / "bin" / name

    def install(self) -> None:
        """Install it, unless it is complete.

        Raises:
            CalledProcessError: If pip fails, which has then printed why.
        """
        if self.is_complete():
            return
        folder = self.folder()
        print(f"Installing {self.packages} into {folder} (once, about a minute)", flush=True)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(self.lock)], check=True)  # noqa: S603 (our own)
        if self.more(folder):
            (folder / _COMPLETE).touch()


def _install_javascript(folder: Path) -> bool:
    """Install the client in JavaScript beside its program, since Node.js looks for packages in the folders above it."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed: tests of clients in JavaScript are left out")
        return False
    for path in _JAVASCRIPT:
        shutil.copy(path, folder)
    subprocess.run([npm, "ci", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent"], check=True)  # noqa: S603 (our own)
    return True


def _download_mermaid(folder: Path) -> bool:
    mermaid.download(folder / mermaid.FILE)
    return True


_JAVASCRIPT: Final = tuple(PROGRAMS / name for name in ("package.json", "package-lock.json", "run_client_node.mjs"))
CLIENTS: Final = CachedEnvironment(
    "clients-environment",
    "clients in Python and JavaScript",
    ROOT / "requirements" / "clients.lock",
    _install_javascript,
    _JAVASCRIPT,
)
SITE: Final = CachedEnvironment(
    "site-environment",
    "MkDocs and Mermaid",
    ROOT / "requirements" / "docs.lock",
    _download_mermaid,
    (Path(mermaid.__file__),),
)
ENVIRONMENTS: Final = {"clients": CLIENTS, "site": SITE}


def main() -> int:
    """Install the environments that the arguments name."""
    try:
        for name in sys.argv[1:]:
            ENVIRONMENTS[name].install()
    except (subprocess.CalledProcessError, mermaid.MermaidError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
