"""Lookup of the programs of a control plane: first in the folder named by the environment, then in the cache."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.versions import PINNED, Machine, Release, cache_folder

__all__ = ["ASSETS", "REMEDY", "Program", "Programs", "cached_programs", "find_programs"]

ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The environment variable that names a folder with the programs, for example one filled by `setup-envtest`."""


REMEDY: Final = "`make envtest` (outside of a checkout `python -m ocf.testing.envtest`)"
"""The command that installs the programs."""


class Program(StrEnum):
    """A program of a control plane; the value is its file name."""

    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    KUBECTL = "kubectl"
    KWOK = "kwok"


_NEEDED: Final = (Program.ETCD, Program.API_SERVER)
_CACHE: Final = "cache"


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with programs.

    Args:
        origin: Where the folder comes from, for messages: the environment variable or the cache.
    """

    folder: Path
    origin: str

    @property
    def cached(self) -> bool:
        """Whether this is a folder of the cache, in which missing programs can be built."""
        return self.origin == _CACHE

    @property
    def missing(self) -> tuple[Program, ...]:
        """The programs that do not exist or are not executable."""
        return tuple(each for each in Program if not os.access(self.folder / each, os.X_OK))

    def path(self, program: Program) -> Path:
        """Return the path of a program.

        Returns:
            Its file.

        Raises:
            ConfigError: If it is missing.
        """
        if program in self.missing:
            raise ConfigError(f"{program} is missing in {self.folder} ({self.origin}); {self._advice(program)}")
        return self.folder / program

    def _advice(self, program: Program) -> str:
        if self.cached:
            return f"run {REMEDY}, which adds it"
        if program in _NEEDED:
            return f"let {ASSETS} name a folder with etcd and kube-apiserver, or unset it and run {REMEDY}"
        return f"unset {ASSETS} and run {REMEDY}, which installs it"


def find_programs(environ: Mapping[str, str] = os.environ, *, machine: Machine | None = None) -> Programs | None:
    """Find the programs.

    Args:
        environ: The environment variables.
        machine: The machine that runs them; None for this one.

    Returns:
        The folder that `KUBEBUILDER_ASSETS` names, else that of the pinned release in the cache; None if neither
        exists with API server and etcd. Other programs may be missing, for example in a cache that an earlier version
        of this package filled.

    Raises:
        ConfigError: If `KUBEBUILDER_ASSETS` names a folder without API server or etcd.
    """
    if environ.get(ASSETS):
        named = Programs(Path(environ[ASSETS]).expanduser().absolute(), ASSETS)
        for program in _NEEDED:
            named.path(program)
        return named
    cached = cached_programs(environ, PINNED, machine or Machine.here())
    return None if set(cached.missing) & set(_NEEDED) else cached


def cached_programs(environ: Mapping[str, str], release: Release, machine: Machine) -> Programs:
    """Return the folder of the cache for the programs of a release, which may not exist yet."""
    return Programs(cache_folder(environ) / release.folder_name(machine), _CACHE)
