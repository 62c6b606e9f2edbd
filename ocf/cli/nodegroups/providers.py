"""Providers of `ocf nodegroups`: how each is chosen, opened and installed.

Credentials come from files or from the environment, never from options: other users of a machine can read the arguments
of a process.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ocf.errors import ConfigError, ManifestError, ProviderUnavailableError
from ocf.objects.file_problems import file_problem

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.controllers.nodegroup.process import MakeProvider
    from ocf.controllers.nodegroup.providers.vpsie import Credentials
    from ocf.nodegroups import InstanceType, Provider
    from ocf.runtime.rbac import PolicyRule

__all__ = [
    "MOUNTED_CREDENTIALS",
    "MOUNTED_TYPES",
    "ProviderChoice",
    "ProviderName",
    "read_credentials",
    "read_types_of",
    "types_document",
]

MOUNTED_TYPES: Final = "/etc/ocf/types.yaml"
"""Where the installed controller finds its instance types."""

MOUNTED_CREDENTIALS: Final = "/etc/ocf-credentials"
"""Where the installed controller finds the credentials of its provider."""

_API: Final = "cluster.x-k8s.io"
_READS: Final = ("list", "watch")
# The file in the folder, and the variable of the environment.
_CREDENTIALS: Final = {
    "token": ("token", "VPSIE_TOKEN"),
    "client_id": ("client-id", "VPSIE_CLIENT_ID"),
    "client_secret": ("client-secret", "VPSIE_CLIENT_SECRET"),
}


class ProviderName(StrEnum):
    """Providers that the command knows."""

    KWOK = "kwok"
    CLUSTER_API = "cluster-api"
    VPSIE = "vpsie"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChoice:
    """A provider and its settings.

    Args:
        selector: The label selector of the MachineDeployments, for Cluster API; empty for all.
        management_kubeconfig: The kubeconfig of the management cluster, for Cluster API; empty for the cluster itself.
        url: The base URL of the API, for VPSie; empty for the usual one.
        credentials: The folder with the credentials, for VPSie; empty reads the environment.
    """

    name: ProviderName = ProviderName.KWOK
    types: str = ""
    namespace: str = "default"
    selector: str = ""
    management_kubeconfig: str = ""
    cluster_id: str = ""
    datacenters: Sequence[str] = field(default_factory=tuple)
    url: str = ""
    credentials: str = ""

    def __post_init__(self) -> None:
        if self.name is ProviderName.VPSIE and not self.cluster_id:
            raise ConfigError("--provider=vpsie needs --vpsie-cluster, the UUID of the cluster at VPSie")
        if self.name is ProviderName.VPSIE and not self.datacenters:
            raise ConfigError("--provider=vpsie needs --datacenter, at least once: the sizes of these are offered")
        if self.name is ProviderName.KWOK and not self.types:
            raise ConfigError("--types must name a file with the instance types; other providers know their own")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[MakeProvider]:
        """Give what makes the provider for a cluster, with the connections that it needs."""
        match self.name:
            case ProviderName.KWOK:
                from ocf.controllers.nodegroup.providers.kwok import KwokProvider

                types = read_types_of(self.types)
                yield lambda where: KwokProvider(where, types)
            case ProviderName.CLUSTER_API:
                async with self._management() as management:
                    yield lambda where: self._cluster_api(management or where, where)
            case ProviderName.VPSIE:
                from ocf.controllers.nodegroup.providers.vpsie import VPSieConnection, VPSieProvider, VPSieSettings

                settings = VPSieSettings(self.cluster_id, tuple(self.datacenters))
                if self.url:
                    settings = replace(settings, base_url=self.url.rstrip("/"))
                read_credentials(self.credentials, os.environ)

                async def credentials() -> Credentials:
                    try:
                        return read_credentials(self.credentials, os.environ)
                    except ConfigError as error:
                        # A Secret that is being replaced is complete a moment later.
                        raise ProviderUnavailableError(str(error)) from error

                connection = VPSieConnection(settings, credentials)
                try:
                    yield lambda _: VPSieProvider(connection)
                finally:
                    await connection.close()

    @asynccontextmanager
    async def _management(self) -> AsyncIterator[Cluster | None]:
        if not self.management_kubeconfig:
            yield None
            return
        from ocf.cluster.client import ApiServerCluster

        async with await ApiServerCluster.connect(self.management_kubeconfig) as cluster:
            yield cluster

    def _cluster_api(self, cluster: Cluster, workload: Cluster) -> Provider:
        from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider

        return ClusterAPIProvider(cluster, self.namespace, selector=self.selector, workload=workload)

    @property
    def arguments(self) -> list[str]:
        """The options with which an installed controller runs this provider."""
        match self.name:
            case ProviderName.KWOK:
                return [f"--types={MOUNTED_TYPES}"]
            case ProviderName.CLUSTER_API:
                selector = [f"--machine-selector={self.selector}"] if self.selector else []
                return ["--provider=cluster-api", f"--machine-namespace={self.namespace}", *selector]
            case ProviderName.VPSIE:
                url = [f"--vpsie-url={self.url}"] if self.url else []
                places = [f"--datacenter={each}" for each in self.datacenters]
                fixed = ["--provider=vpsie", f"--vpsie-cluster={self.cluster_id}"]
                return [*fixed, *places, *url, f"--credentials={MOUNTED_CREDENTIALS}"]

    def rules(self, *, dry_run: bool = False) -> frozenset[PolicyRule]:
        """Return the policy rules that the provider needs in the cluster of the controller."""
        return frozenset(rule for rule in self._rules() if rule.verb in _READS or not dry_run)

    def _rules(self) -> frozenset[PolicyRule]:
        from ocf.runtime.rbac import PolicyRule

        match self.name:
            case ProviderName.KWOK:
                # kwok's machines are Nodes, which the controller may list and delete.
                return frozenset({PolicyRule("", "nodes", "create")})
            case ProviderName.CLUSTER_API:
                wanted = {"machinedeployments": ("list", "get", "patch"), "machines": ("list", "patch", "delete")}
                return frozenset(
                    PolicyRule(_API, resource, verb, namespace=self.namespace)
                    for resource, verbs in wanted.items()
                    for verb in verbs
                )
            case ProviderName.VPSIE:
                return frozenset()


def read_types_of(path: str) -> list[InstanceType]:
    """Read a file with instance types."""
    from ocf.controllers.nodegroup.type_file import read_types

    try:
        return read_types(types_document(path))
    except ManifestError as error:
        raise ManifestError(f"{path}: {error.subject}", error.problems) from None


def types_document(path: str) -> Any:
    """Return the content of a file with instance types, which may be invalid."""
    from ocf.objects.yaml_reader import read_yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--types: {path} cannot be read: {file_problem(path, error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--types: {path} cannot be read: {error}") from error
    documents = list(read_yaml(text, path))
    if len(documents) > 1:
        raise ConfigError(f"--types: {path} must have one document, not {len(documents)}")
    return documents[0] if documents else None


def read_credentials(folder: str, environment: Mapping[str, str]) -> Credentials:
    """Return the credentials of the VPSie API.

    Args:
        folder: A folder with the file `token`, or with `client-id` and `client-secret`, as a mounted Secret has them;
            empty reads `VPSIE_TOKEN`, or `VPSIE_CLIENT_ID` and `VPSIE_CLIENT_SECRET`.
    """
    from ocf.controllers.nodegroup.providers.vpsie import Credentials

    found = {
        name: _content(Path(folder) / file) if folder else environment.get(variable, "")
        for name, (file, variable) in _CREDENTIALS.items()
    }
    if not found["token"] and not (found["client_id"] and found["client_secret"]):
        files, variables = zip(*_CREDENTIALS.values(), strict=True)
        where, names = (f"--credentials={folder}: the folder", files) if folder else ("the environment", variables)
        raise ConfigError(f"{where} must have {names[0]}, or {names[1]} and {names[2]}")
    return Credentials(**found)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
