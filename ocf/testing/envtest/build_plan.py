"""Build plan of the programs: Go modules, packages and flags. Pure functions.

Kubernetes is built as a dependency of a generated module, so nothing has to be cloned. Its go.mod requires the modules
of its staging area at version v0.0.0 and replaces them by folders, and Go ignores the replacements of a dependency. The
generated go.mod therefore replaces them by the published versions of the same modules: v0.Y.Z for Kubernetes v1.Y.Z.
All other versions follow from the go.mod of the release, so a release gives the same programs everywhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.versions import Machine, Release

__all__ = ["Build", "Origin", "build_environment", "origins", "staging_modules"]

_STAGED: Final = re.compile(r"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>\s+\./staging/", re.MULTILINE)
_LINKER: Final = "-s -w"  # without symbols a program takes two thirds of the space


@dataclass(frozen=True, slots=True)
class Build:
    """One program to build."""

    program: Program
    package: str
    linker: str = _LINKER

    def command(self, output: str) -> list[str]:
        """Return the `go` arguments that build it."""
        return ["build", "-mod=mod", "-trimpath", "-v", "-ldflags", self.linker, "-o", output, self.package]

    @property
    def listing(self) -> list[str]:
        """The `go` arguments that list all its packages, and download missing modules."""
        return ["list", "-mod=mod", "-deps", self.package]


@dataclass(frozen=True, slots=True)
class Origin:
    """A module that programs are built from.

    Args:
        version: Version, with `v`.
    """

    path: str
    version: str
    go: str
    builds: tuple[Build, ...]

    @property
    def listing(self) -> list[str]:
        """The `go` arguments that print the path of the module's go.mod as JSON."""
        return ["list", "-m", "-json", f"{self.path}@{self.version}"]

    def go_mod(self, published: str) -> str:
        """Return the go.mod of a generated module that depends on this one only."""
        replaced = staging_modules(published, self.version)
        lines = ["module build", f"go {self.go}", f"require {self.path} {self.version}"]
        return "\n\n".join([*lines, *(f"replace {path} => {path} {to}" for path, to in replaced.items())]) + "\n"


def origins(release: Release) -> tuple[Origin, ...]:
    """Return the modules from which the programs of a release are built."""
    return _etcd(release), _kubernetes(release), _kwok(release)


def _etcd(release: Release) -> Origin:
    path = f"go.etcd.io/etcd/server/v{release.etcd.partition('.')[0]}"
    return Origin(path, f"v{release.etcd}", release.go, (Build(Program.ETCD, path),))


def _kubernetes(release: Release) -> Origin:
    path, version = "k8s.io/kubernetes", f"v{release.kubernetes}"
    major, minor, *_ = release.kubernetes.split(".")
    variables = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamp = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in variables.items())
    programs = (Program.API_SERVER, Program.CONTROLLER_MANAGER, Program.SCHEDULER, Program.KUBECTL)
    made = tuple(Build(each, f"{path}/cmd/{each}", f"{_LINKER} {stamp}") for each in programs)
    return Origin(path, version, release.go, made)


def _kwok(release: Release) -> Origin:
    path = "sigs.k8s.io/kwok"
    return Origin(path, f"v{release.kwok}", release.go, (Build(Program.KWOK, f"{path}/cmd/{Program.KWOK}"),))


def staging_modules(go_mod: str, version: str) -> dict[str, str]:
    """Return the modules that a release replaces by its staging area, with their published versions.

    Args:
        version: Version of the release, with `v`.

    Returns:
        Versions by module; empty if the release has no staging area.

    Example:
        >>> staging_modules("replace k8s.io/api => ./staging/src/k8s.io/api", "v1.36.3")
        {'k8s.io/api': 'v0.36.3'}
    """
    staged = _STAGED.findall(go_mod)
    if staged and not version.startswith("v1."):
        raise ConfigError(f"Kubernetes {version}: the versions of its staging modules are known for v1.Y.Z only")
    return dict.fromkeys(staged, f"v0.{version.removeprefix('v1.')}")


def build_environment(environ: Mapping[str, str], machine: Machine) -> dict[str, str]:
    """Return the environment in which Go is run.

    The user's settings of proxies, checksums and caches are kept. Variables that affect the result are overridden; each
    gets a non-empty value, because for an empty one Go would use the user's configuration file.
    """
    fixed = {
        "CGO_ENABLED": "0",  # needs no C compiler
        "GO111MODULE": "on",
        "GOARCH": machine.architecture,
        "GOFLAGS": "-buildvcs=false",
        "GOOS": machine.system,
        "GOWORK": "off",
    }
    return {**environ, **fixed}
