"""Build of the clients in Go: `python -m tests.clients.go_programs`, which `make clients` runs.

The programs are built from the modules in `programs/go` and `programs/helm3`, and from the operator with
controller-runtime in `examples/comparison`, with the versions that their go.sum lock. Those of a module go into a
folder of the cache that is named after the sources; a folder that exists is complete. What Kubernetes' own programs
consist of is in Go's cache after `make envtest`. Kubernetes' own end-to-end tests and those of JobSet are built beside
them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.build_plan import build_environment
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder
from scripts.record.e2e_suite.build import build_suite, suite
from tests.clients import jobset

__all__ = ["build", "program"]

_DIGITS: Final = 12
_CHECKOUT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module with programs.

    Args:
        name: The name of its folder in the cache.
        folder: The folder with its go.mod.
        packages: The packages of its programs.
        tests: Packages whose tests are built as programs, too; such a program is called `<package>.test`.
        suffix: What the names of its programs end with, in addition to those of their packages.
        copied: Files and folders of the first package's own module that lie beside the programs.
        only_tests: Whether the packages are no programs themselves.
    """

    name: str
    folder: Path
    packages: tuple[str, ...]
    tests: tuple[str, ...] = ()
    suffix: str = ""
    copied: tuple[str, ...] = ()
    only_tests: bool = False

    @property
    def sources(self) -> list[Path]:
        """The files that its programs are built from."""
        patterns = ("go.mod", "go.sum", "**/*.go", "**/manifests/*")
        return sorted(path for pattern in patterns for path in self.folder.glob(pattern))

    def built(self, environ: Mapping[str, str]) -> Path:
        """Return the folder of the programs of the current sources; it may be missing."""
        digest = sha256()
        for path in self.sources:
            digest.update(path.read_bytes())
        machine = Machine.here()
        name = f"{digest.hexdigest()[:_DIGITS]}-{machine.system}-{machine.architecture}"
        return cache_folder(environ).with_name(self.name) / name


MODULES: Final = (
    Module(
        "clients",
        Path(__file__).parent / "programs/go",
        ("./admission", "./clientgo", "./operator", "helm.sh/helm/v4/cmd/helm"),
    ),
    Module(
        "comparison",
        _CHECKOUT / "examples/comparison/controller_runtime",
        ("./cmd/site-operator",),
        tests=("./internal/controller",),
    ),
    Module(
        "suites",
        Path(__file__).parent / "programs/suites",
        ("sigs.k8s.io/controller-runtime/pkg/client",),
        tests=tuple(f"sigs.k8s.io/controller-runtime/pkg/{name}" for name in ("client", "cluster", "controller")),
        copied=("pkg/client/testdata", "pkg/controller/testdata/crds"),
        only_tests=True,
        suffix="-suite",
    ),
    Module("helm3", Path(__file__).parent / "programs/helm3", ("helm.sh/helm/v3/cmd/helm",), suffix="3"),
)
CLUSTER_API: Final = Module(
    "cluster-api",
    Path(__file__).parent / "programs/cluster_api",
    ("sigs.k8s.io/cluster-api",),
    copied=("config/crd/bases", "config/webhook/manifests.yaml"),
)
"""The controllers of Cluster API, which `make cluster-api` builds: no other program shares its dependencies."""


def program(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return a program of the current sources.

    Args:
        name: The name of its package: `admission`, `clientgo`, `cluster-api`, `helm`, `operator`, `site-operator`,
            `controller.test`; `helm3`; or of the suites of controller-runtime: `client.test-suite`,
            `cluster.test-suite`, `controller.test-suite`.
        environ: The environment variables.

    Returns:
        The program; None if it is not built.
    """
    found = (module.built(environ) / name for module in (*MODULES, CLUSTER_API))
    return next((path for path in found if path.exists()), None)


def build(environ: Mapping[str, str] = os.environ) -> None:
    """Build the programs of the current sources that are missing, and remove those of other sources.

    Args:
        environ: The environment variables.

    Raises:
        ConfigError: If Go is too old or the build fails.
    """
    for module in MODULES:
        if not module.built(environ).exists():
            _build(module, environ)


def _build(module: Module, environ: Mapping[str, str]) -> None:
    folder = module.built(environ)
    folder.parent.mkdir(parents=True, exist_ok=True)
    go = Go(build_environment(environ, Machine.here()))
    go.check(PINNED.go, folder.parent)
    for other in folder.parent.iterdir():
        shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch, "programs")
        made.mkdir()
        output = ["-trimpath", "-ldflags", "-s -w", "-o", f"{made}{os.sep}"]
        if not module.only_tests:
            go.run(["build", *output, *module.packages], module.folder)
        if module.tests:
            go.run(["test", "-c", *output, *module.tests], module.folder)
        for one in made.iterdir():
            one.rename(f"{one}{module.suffix}")
        if module.copied:
            (source,) = go.run(["list", "-f", "{{.Module.Dir}}", module.packages[0]], module.folder)
            _copy(Path(source), module.copied, made)
        made.rename(folder)


def _copy(source: Path, names: Sequence[str], target: Path) -> None:
    for name in names:
        path = source / name
        for each in path.iterdir() if path.is_dir() else (path,):
            # What Go keeps in its cache is read-only.
            copied = target / each.relative_to(path.parent)
            copied.parent.mkdir(exist_ok=True)
            shutil.copyfile(each, copied)


def main(arguments: Sequence[str] = ()) -> int:
    """Build the programs, or print in one line why they are left out.

    Args:
        arguments: `cluster-api` builds the controllers of Cluster API instead of the others.
    """
    if list(arguments) == [CLUSTER_API.name]:
        if not CLUSTER_API.built(os.environ).exists():
            _build(CLUSTER_API, os.environ)
        return 0
    if not shutil.which("go"):
        sys.stdout.write("Go is not installed: tests of clients in Go are left out\n")
        return 0
    if not (all(module.built(os.environ).exists() for module in MODULES) and suite().exists() and jobset.is_built()):
        what = "client-go, controller-runtime, helm 3 and 4, the tests of JobSet, end-to-end tests of Kubernetes"
        sys.stdout.write(f"Building the clients in Go (once, about ten minutes): {what}\n")
        sys.stdout.flush()
    try:
        build()
        build_suite()
        jobset.build()
    except (ConfigError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
