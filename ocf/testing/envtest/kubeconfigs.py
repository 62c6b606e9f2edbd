"""Kubeconfigs for one server and one user."""

import json
from pathlib import Path

from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["write_kubeconfig"]


def write_kubeconfig(
    file: Path, *, server: str, authority: Path, client: CertificateFiles, namespace: str = "default"
) -> Path:
    """Write a kubeconfig. It is JSON, which every reader of YAML reads.

    Args:
        file: Where to.
        server: URL of the API server.
        authority: Certificate of its authority.
        client: Certificate of the user.
        namespace: Where the user works unless told otherwise.

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
