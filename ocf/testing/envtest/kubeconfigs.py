"""Kubeconfigs for one server and one user."""

import json
from pathlib import Path

from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["write_kubeconfig"]


def write_kubeconfig(
    file: Path, *, server: str, authority: Path, client: CertificateFiles, namespace: str = "default"
) -> Path:
    """Write a kubeconfig as JSON, which is also YAML.

    Args:
        file: The file to write.
        server: URL of the API server.
        authority: Certificate of its authority.
        client: Client certificate of the user.
        namespace: Default namespace of the user.

    Returns:
        The file.
    """
    context = {"cluster": "envtest", "user": file.stem, "namespace": namespace}
    manifest = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "envtest", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [
            {
                "name": file.stem,
                "user": {"client-certificate": str(client.certificate), "client-key": str(client.key)},
            }
        ],
        "contexts": [{"name": "envtest", "context": context}],
        "current-context": "envtest",
    }
    file.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return file
