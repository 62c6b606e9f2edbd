"""Bundles on which the validators of operator-sdk were run; `scripts/record/olm.py` records their findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ocf.manifests import Format, render
from ocf.manifests.install_options import Project
from ocf.objects import dump_document, load_document
from tests.manifests.support import installation

__all__ = ["BUNDLES", "RECORDED", "digest", "files"]

RECORDED: Final = Path(__file__).parent / "recorded" / "olm.json"
_VERSION: Final = "manifests/shops.clusterserviceversion.yaml"


def _without(*path: str) -> Mapping[str, str]:
    """Return a bundle whose ClusterServiceVersion lacks a field, which a validator has to find."""
    written = dict(render(installation(), Format.OLM).generated)
    version = load_document(written[_VERSION])
    holder: dict[str, Any] = version
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    return {**written, _VERSION: dump_document(version)}


BUNDLES: Final[Mapping[str, Callable[[], Mapping[str, str]]]] = {
    "with webhooks": lambda: render(installation(), Format.OLM).generated,
    "without webhooks": lambda: render(installation(webhooks=False, replicas=2), Format.OLM).generated,
    "cluster-scoped": lambda: render(installation(cluster_scoped=True, kopf=True), Format.OLM).generated,
    "with two versions": lambda: render(installation(converting=True), Format.OLM).generated,
    "without metadata": lambda: render(installation(project=Project()), Format.OLM).generated,
    "broken: no install modes": lambda: _without("spec", "installModes"),
    "broken: no owned definition": lambda: _without("spec", "customresourcedefinitions"),
    "broken: no provider": lambda: _without("spec", "provider"),
}
"""Name to a function that returns the files; a validator has to reject those whose name begins with `broken`."""


def files(name: str) -> Mapping[str, str]:
    """Return the files of a bundle."""
    return BUNDLES[name]()


def digest(bundle: Mapping[str, str]) -> str:
    """Return a digest of the files of a bundle."""
    return sha256(json.dumps(sorted(bundle.items())).encode()).hexdigest()
