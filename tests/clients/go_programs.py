"""Build of the clients in Go: `python -m tests.clients.go_programs`, which `make clients` runs.

The programs are built from the module in `programs/go`, with the versions that its go.sum locks, into a folder of the
cache that is named after the sources; a folder that exists is complete. What Kubernetes' own programs consist of is in
Go's cache after `make envtest`. Kubernetes' own end-to-end tests are built beside them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.build_plan import build_environment
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder
from scripts.e2e_suite.build import build_suite, suite

__all__ = ["build", "program"]

MODULE: Final = Path(__file__).parent / "programs" / "go"
PACKAGES: Final = ("./clientgo", "./operator", "helm.sh/helm/v4/cmd/helm")
SOURCES: Final = ("go.mod", "go.sum", "*/*.go", "*/manifests/*")
_DIGITS: Final = 12


def _folder(environ: Mapping[str, str]) -> Path:
    sources = sorted(path for pattern in SOURCES for path in MODULE.glob(pattern))
    digest = sha256()
    for path in sources:
        digest.update(path.read_bytes())
    machine = Machine.here()
    name = f"{digest.hexdigest()[:_DIGITS]}-{machine.system}-{machine.architecture}"
    return cache_folder(environ).with_name("clients") / name


def program(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return a program of the current sources.

    Args:
        name: The name of its package: `clientgo`, `helm` or `operator`.
        environ: The environment variables.

    Returns:
        The program; None if it is not built.
    """
    found = _folder(environ) / name
    return found if found.exists() else None


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """Build the programs of the current sources if they are missing, and remove those of other sources.

    Args:
        environ: The environment variables.

    Returns:
        Their folder.

    Raises:
        ConfigError: If Go is too old or the build fails.
    """
    folder = _folder(environ)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    go = Go(build_environment(environ, Machine.here()))
    go.check(PINNED.go, folder.parent)
    for other in folder.parent.iterdir():
        shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch, "programs")
        made.mkdir()
        go.run(["build", "-trimpath", "-ldflags", "-s -w", "-o", f"{made}{os.sep}", *PACKAGES], MODULE)
        made.rename(folder)
    return folder


def main() -> int:
    """Build the programs, or print in one line why they are left out."""
    if not shutil.which("go"):
        sys.stdout.write("Go is not installed: tests of clients in Go are left out\n")
        return 0
    if not (_folder(os.environ).exists() and suite().exists()):
        what = "client-go, controller-runtime, helm, end-to-end tests of Kubernetes"
        sys.stdout.write(f"Building the clients in Go (once, about seven minutes): {what}\n")
        sys.stdout.flush()
    try:
        build()
        build_suite()
    except (ConfigError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
