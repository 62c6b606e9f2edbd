"""Objects that register the stub at an API server."""

from typing import Final

from ocf.objects import Manifest
from ocf.testing.metrics_stub.handlers import VERSIONS

__all__ = ["HOST", "api_services", "service"]

_HOME: Final = "kube-system"
_NAME: Final = "ocf-metrics-stub"
HOST: Final = f"{_NAME}.{_HOME}.svc"
"""Host name in the certificate of the stub, as the API server expects it."""


def service() -> Manifest:
    """Return a Service that refers to this machine by name, because an endpoint cannot have a loopback address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _NAME, "namespace": _HOME},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def api_services(port: int, authority: str) -> list[Manifest]:
    """Return the objects that register the stub at an API server.

    Args:
        authority: Certificate of the authority that signed the stub's certificate, in base64.
    """
    place = {"namespace": _HOME, "name": _NAME, "port": port}
    return [
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "caBundle": authority,
                "service": place,
            },
        }
        for group, version in VERSIONS.items()
    ]
