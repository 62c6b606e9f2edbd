"""The flags with which the programs are started; values in, values out.

They are chosen for tests: everything on loopback and under one folder, nothing synced to disk, real authorization.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["api_server", "arguments", "controller_manager", "etcd", "joined"]

_HOST: Final = "127.0.0.1"


def etcd(port: int, folder: Path, *, authority: Path, server: CertificateFiles) -> dict[str, str]:
    """Return the flags of etcd.

    Args:
        port: For clients.
        folder: Of the control plane.
        authority: Certificate of the authority; clients need a certificate by it.
        server: Certificate of the server.
    """
    url = f"https://{_HOST}:{port}"
    return {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": f"http://{_HOST}:0",  # it insists on one, and there are no peers
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
    """Return the flags of the API server.

    Args:
        port: Where it listens.
        etcd_port: Where etcd listens.
        authority: Certificate of the authority, for etcd and for everybody's client certificate.
        server: Certificate of the server.
        client: Certificate for etcd.
        tokens: Keys for the tokens of service accounts.
    """
    return {
        "bind-address": _HOST,
        "secure-port": str(port),
        # Without an address it looks for a network, which a sandbox may not have; without a reconciler it does not
        # publish the address, which must not be a loopback one.
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
        "service-cluster-ip-range": "10.0.0.0/24",
        "allow-privileged": "true",
        # Nobody makes the accounts that it would demand of every pod.
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
    """Return the flags of the controller manager.

    Args:
        port: Where it tells its health.
        kubeconfig: How it gets into the API server.
        server: Certificate of its own server.
        controllers: The names of those that run; no other does.
        hpa_sync_period: How often autoscalers are looked at.
    """
    return {
        "bind-address": _HOST,
        "secure-port": str(port),
        "tls-cert-file": str(server.certificate),
        "tls-private-key-file": str(server.key),
        "kubeconfig": str(kubeconfig),
        "controllers": ",".join(controllers),
        "leader-elect": "false",
        "horizontal-pod-autoscaler-sync-period": f"{hpa_sync_period.total_seconds():f}s",
        # It shall be as fast as the tests; a loopback server bears it.
        "kube-api-qps": "500",
        "kube-api-burst": "1000",
    }


def joined(values: Mapping[str, bool]) -> str:
    """Return feature gates as a flag's value.

    Example:
        >>> joined({"HPAScaleToZero": True, "WatchList": False})
        'HPAScaleToZero=true,WatchList=false'
    """
    return ",".join(f"{name}={str(on).lower()}" for name, on in values.items())


def arguments(flags: Mapping[str, str], changes: Mapping[str, str | None]) -> list[str]:
    """Return the arguments of a command.

    Args:
        flags: Ours.
        changes: The user's: they come in addition, or in the place of ours; None leaves a flag out.

    Example:
        >>> arguments({"a": "1", "b": "2"}, {"b": None, "c": "3"})
        ['--a=1', '--c=3']
    """
    return [f"--{name}={value}" for name, value in {**flags, **changes}.items() if value is not None]
