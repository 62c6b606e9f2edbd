"""The objects that a cluster begins with."""

import json
from collections.abc import Iterable
from importlib import resources
from typing import Final

from ocf.objects import Manifest
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry import verbs
from ocf_server.registry.pending_write import run_without_admission
from ocf_server.registry.rbac import Rbac
from ocf_server.registry.registry import Registry

__all__ = ["start"]

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_OPTIONS: Final = WriteOptions(field_manager="kube-apiserver")


def start(registry: Registry, namespaces: Iterable[str], *, authorization: bool) -> None:
    """Create the first namespaces; with authorization, also the roles of users and what every user may do."""
    for name in (*_NAMESPACES, *namespaces):
        _create(registry, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    if authorization:
        # Generated from a real API server, see scripts/generate/roles.py.
        text = resources.files("ocf_server.registry").joinpath("default_roles.json").read_text(encoding="utf-8")
        for manifest in json.loads(text):
            _create(registry, manifest)
        registry.rbac = Rbac(registry.store)


def _create(registry: Registry, manifest: Manifest) -> None:
    run_without_admission(verbs.create(registry, manifest, _OPTIONS))
