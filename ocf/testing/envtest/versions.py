"""Versions of the programs, and the names of their folders in the cache."""

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.schema.kubernetes import KUBERNETES_VERSION

__all__ = ["PINNED", "Machine", "Release", "cache_folder"]

_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A system and a processor, by Go's names.

    Args:
        system: Such as `linux` or `darwin`.
        architecture: Such as `amd64` or `arm64`.
    """

    system: str
    architecture: str

    @classmethod
    def here(cls) -> "Machine":
        """Return the current machine."""
        name = platform.machine().lower()
        return cls(sys.platform, _ARCHITECTURES.get(name, name))


@dataclass(frozen=True, slots=True)
class Release:
    """Versions that belong together.

    Args:
        kubernetes: Version of Kubernetes, without `v`.
        etcd: Version of etcd, without `v`.
        kwok: Version of kwok, without `v`. The name of the folder does not contain it, so that a cache without kwok is
            completed instead of being built anew.

    Example:
        >>> Release("1.36.3", "3.7.3", go="1.26", kwok="0.8.0").folder_name(Machine("linux", "amd64"))
        '1.36.3-etcd-3.7.3-linux-amd64'
    """

    kubernetes: str
    etcd: str
    go: str
    kwok: str

    def folder_name(self, machine: Machine) -> str:
        """Return the name of the folder with the programs of this release for a machine."""
        return f"{self.kubernetes}-etcd-{self.etcd}-{machine.system}-{machine.architecture}"


PINNED: Final = Release(kubernetes=KUBERNETES_VERSION, etcd="3.7.3", go="1.26", kwok="0.8.0")
"""The release that `make envtest` installs."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder, which contains one folder per release and machine.

    Args:
        environ: The environment variables; as the XDG specification requires, `XDG_CACHE_HOME` must be an absolute path
            to be used.

    Returns:
        The folder; it may not exist yet.

    Example:
        >>> str(cache_folder({"XDG_CACHE_HOME": "/var/cache/me"}))
        '/var/cache/me/ocf/envtest'
    """
    chosen = Path(environ.get("XDG_CACHE_HOME", ""))
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return (chosen if chosen.is_absolute() else home / ".cache") / "ocf" / "envtest"
