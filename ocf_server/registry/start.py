"""The objects that a cluster begins with."""

import gzip
import json
from collections.abc import Iterable
from importlib import resources
from typing import Final

from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry import verbs
from ocf_server.registry.pending_write import run_without_admission
from ocf_server.registry.rbac import Rbac
from ocf_server.registry.registry import Registry, place_of

__all__ = ["start"]

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_OPTIONS: Final = WriteOptions(field_manager="kube-apiserver")
_RBAC: Final = "rbac.authorization.k8s.io"
_ROLES: Final = frozenset(
    {
        "admin",
        "cluster-admin",
        "edit",
        "system:aggregate-to-admin",
        "system:aggregate-to-edit",
        "system:aggregate-to-view",
        "system:auth-delegator",
        "system:basic-user",
        "system:discovery",
        "system:public-info-viewer",
        "view",
    }
)
"""The roles for users, and what every user may do."""


def start(registry: Registry, namespaces: Iterable[str], *, authorization: bool, system_objects: bool) -> None:
    """Create the first objects.

    Args:
        namespaces: Namespaces besides those of every cluster.
        authorization: Whether requests are authorized; needs the roles of users.
        system_objects: Whether to create all objects that an API server makes.
    """
    for name in (*_NAMESPACES, *namespaces):
        head: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        run_without_admission(verbs.create(registry, head, _OPTIONS))
    if system_objects or authorization:
        # Generated from a real API server, see scripts/generate/system_objects.py.
        packed = resources.files("ocf_server.registry").joinpath("system_objects.json.gz").read_bytes()
        for manifest in json.loads(gzip.decompress(packed)):
            group, version = split_api_version(manifest["apiVersion"])
            if not registry.release.serves(group, version, manifest["kind"]):
                continue
            if system_objects or (group == _RBAC and manifest["metadata"]["name"] in _ROLES):
                _set_server_fields(registry, manifest)
                registry.write(
                    registry.resource(manifest["apiVersion"], manifest["kind"]), place_of(manifest), manifest
                )
    if authorization:
        registry.rbac = Rbac(registry.store)


def _set_server_fields(registry: Registry, manifest: Manifest) -> None:
    """Set uid and times of an object of a new cluster, which is otherwise as a real API server has returned it."""
    now = registry.timestamp()
    manifest["metadata"] |= {"uid": registry.new_uid(), "creationTimestamp": now}
    for entry in manifest["metadata"].get("managedFields", ()):
        entry["time"] = now
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        condition["lastTransitionTime"] = now
    if manifest["kind"] == "ConfigMap":
        manifest["data"] = {"since": now.partition("T")[0]}
