"""Flags of the programs. Pure functions.

They are chosen for tests: all servers on loopback, all files in one folder, no fsync, real authorization.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ocf.objects import Manifest
from ocf.testing.envtest.certificates import CertificateFiles

__all__ = [
    "api_server",
    "arguments",
    "controller_manager",
    "etcd",
    "joined",
    "kwok",
    "scheduler",
    "scheduler_configuration",
]

_HOST: Final = "127.0.0.1"
_REQUESTS_PER_SECOND: Final = 500  # the default client-side rate limits would slow the tests down
_BURST: Final = 1000


def etcd(port: int, folder: Path, *, authority: Path, server: CertificateFiles) -> dict[str, str]:
    """Return the flags of etcd."""
    url = f"https://{_HOST}:{port}"
    return {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": f"http://{_HOST}:0",  # required, although there are no peers
        "client-cert-auth": "true",
        "trusted-ca-file": str(authority),
        "cert-file": str(server.certificate),
        "key-file": str(server.key),
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def api_server(
    port: int,
    *,
    etcd_port: int,
    authority: Path,
    server: CertificateFiles,
    client: CertificateFiles,
    tokens: CertificateFiles,
) -> dict[str, str]:
    """Return the flags of the API server."""
    return {
        "bind-address": _HOST,
        "secure-port": str(port),
        # Without an address it searches for a network interface, which a sandbox may not have. Without the endpoint
        # reconciler it does not publish the address, which could not be a loopback address.
        "advertise-address": _HOST,
        "endpoint-reconciler-type": "none",
        "tls-cert-file": str(server.certificate),
        "tls-private-key-file": str(server.key),
        "client-ca-file": str(authority),
        "authorization-mode": "RBAC",
        "etcd-servers": f"https://{_HOST}:{etcd_port}",
        "etcd-cafile": str(authority),
        "etcd-certfile": str(client.certificate),
        "etcd-keyfile": str(client.key),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(tokens.certificate),
        "service-account-signing-key-file": str(tokens.key),
        # A /24 has addresses for 253 Services. The API server accepts a range of at most 20 bits.
        "service-cluster-ip-range": "10.0.0.0/12",
        "allow-privileged": "true",
        # It requires a service account of every pod, but no controller creates them.
        "disable-admission-plugins": "ServiceAccount",
    }


def controller_manager(
    port: int,
    *,
    kubeconfig: Path,
    server: CertificateFiles,
    controllers: Iterable[str],
    hpa_sync_period: timedelta,
) -> dict[str, str]:
    """Return the flags of the controller manager."""
    return {
        "bind-address": _HOST,
        "secure-port": str(port),
        "tls-cert-file": str(server.certificate),
        "tls-private-key-file": str(server.key),
        "kubeconfig": str(kubeconfig),
        "controllers": ",".join(controllers),
        "leader-elect": "false",
        "horizontal-pod-autoscaler-sync-period": f"{hpa_sync_period.total_seconds():f}s",
        "kube-api-qps": f"{_REQUESTS_PER_SECOND}",
        "kube-api-burst": f"{_BURST}",
    }


def scheduler(port: int, *, configuration: Path, server: CertificateFiles) -> dict[str, str]:
    """Return the flags of the scheduler.

    Args:
        configuration: File with its configuration, see `scheduler_configuration`.
    """
    return {
        "bind-address": _HOST,
        "secure-port": str(port),
        "tls-cert-file": str(server.certificate),
        "tls-private-key-file": str(server.key),
        "config": str(configuration),
    }


def scheduler_configuration(kubeconfig: Path, changes: Mapping[str, Any]) -> Manifest:
    """Return the KubeSchedulerConfiguration of the scheduler.

    Args:
        changes: Fields of the user that are added or replace defaults.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": _REQUESTS_PER_SECOND, "burst": _BURST},
        "leaderElection": {"leaderElect": False},
        **changes,
    }


def kwok(port: int, *, kubeconfig: Path, server: CertificateFiles, stages: Path) -> dict[str, str]:
    """Return the flags of kwok."""
    return {
        "server-address": f"{_HOST}:{port}",
        "tls-cert-file": str(server.certificate),
        "tls-private-key-file": str(server.key),
        "kubeconfig": str(kubeconfig),
        "config": str(stages),
        "manage-all-nodes": "true",
        # Without leases, the node lifecycle controller takes each node for lost after its grace period.
        "node-lease-duration-seconds": "40",
    }


def joined(values: Mapping[str, bool]) -> str:
    """Return feature gates as the value of a flag.

    Example:
        >>> joined({"HPAScaleToZero": True, "WatchList": False})
        'HPAScaleToZero=true,WatchList=false'
    """
    return ",".join(f"{name}={str(on).lower()}" for name, on in values.items())


def arguments(flags: Mapping[str, str], changes: Mapping[str, str | None]) -> list[str]:
    """Return the arguments of a command.

    Args:
        flags: The default flags.
        changes: Flags of the user that are added or replace defaults; None removes a flag.

    Example:
        >>> arguments({"a": "1", "b": "2"}, {"b": None, "c": "3"})
        ['--a=1', '--c=3']
    """
    return [f"--{name}={value}" for name, value in {**flags, **changes}.items() if value is not None]
