"""How the programs are built from their modules: values in, values out.

Kubernetes can be built as a dependency of a module of ours, so nothing has to be cloned. One thing is in the way: its
go.mod requires the modules of its staging area at version v0.0.0 and replaces them by folders, and replacements do not
count in a dependency. Ours therefore repeats them, by the versions under which the same modules are published:
v0.Y.Z for Kubernetes v1.Y.Z. All other versions follow from the go.mod of the release, so a release gives the same
programs everywhere.
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
    """One program to build.

    Args:
        program: What comes out.
        package: Its main package.
        linker: Flags for the linker.
    """

    program: Program
    package: str
    linker: str = _LINKER

    def command(self, output: str) -> list[str]:
        """Return the arguments of `go` that build it.

        Args:
            output: The file to write.
        """
        return ["build", "-mod=mod", "-trimpath", "-v", "-ldflags", self.linker, "-o", output, self.package]

    @property
    def listing(self) -> list[str]:
        """The arguments of `go` that list all packages of it, which downloads what is missing."""
        return ["list", "-mod=mod", "-deps", self.package]


@dataclass(frozen=True, slots=True)
class Origin:
    """A module that programs are built from.

    Args:
        path: Of the module.
        version: With `v`.
        go: The Go that it demands.
        builds: What is built from it, in order.
    """

    path: str
    version: str
    go: str
    builds: tuple[Build, ...]

    @property
    def listing(self) -> list[str]:
        """The arguments of `go` that tell, as JSON, where the module's go.mod is."""
        return ["list", "-m", "-json", f"{self.path}@{self.version}"]

    def go_mod(self, published: str) -> str:
        """Return the go.mod of a module of ours that needs nothing but this one.

        Args:
            published: The go.mod of this one.
        """
        replaced = staging_modules(published, self.version)
        lines = ["module build", f"go {self.go}", f"require {self.path} {self.version}"]
        return "\n\n".join([*lines, *(f"replace {path} => {path} {to}" for path, to in replaced.items())]) + "\n"


def origins(release: Release) -> tuple[Origin, ...]:
    """Return the modules from which the programs of a release are built."""
    return _etcd(release), _kubernetes(release)


def _etcd(release: Release) -> Origin:
    path = f"go.etcd.io/etcd/server/v{release.etcd.partition('.')[0]}"
    return Origin(path, f"v{release.etcd}", release.go, (Build(Program.ETCD, path),))


def _kubernetes(release: Release) -> Origin:
    path, version = "k8s.io/kubernetes", f"v{release.kubernetes}"
    major, minor, *_ = release.kubernetes.split(".")
    told = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamp = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items())
    programs = (Program.API_SERVER, Program.CONTROLLER_MANAGER, Program.KUBECTL)
    made = tuple(Build(each, f"{path}/cmd/{each}", f"{_LINKER} {stamp}") for each in programs)
    return Origin(path, version, release.go, made)


def staging_modules(go_mod: str, version: str) -> dict[str, str]:
    """Return the modules that a release replaces by its staging area, with the versions that are published.

    Args:
        go_mod: The go.mod of the release.
        version: Of the release, with `v`.

    Returns:
        Versions by module; empty if there is no staging area.

    Raises:
        ConfigError: If there is one, and the version is not of the form v1.Y.Z.

    Example:
        >>> staging_modules("replace k8s.io/api => ./staging/src/k8s.io/api", "v1.36.3")
        {'k8s.io/api': 'v0.36.3'}
    """
    staged = _STAGED.findall(go_mod)
    if staged and not version.startswith("v1."):
        raise ConfigError(f"Kubernetes {version}: how its staged modules are published is known for v1.Y.Z only")
    return dict.fromkeys(staged, f"v0.{version.removeprefix('v1.')}")


def build_environment(environ: Mapping[str, str], machine: Machine) -> dict[str, str]:
    """Return the environment in which Go is run.

    What the user has set about proxies, checksums and caches stays. What would change what is built does not: an
    empty variable would let the user's configuration file speak, so each is given a value.

    Args:
        environ: The user's environment.
        machine: What the programs are to run on.
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
