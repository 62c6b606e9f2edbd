"""The chart of the controllers, rendered and installed by helm."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime.rbac import PolicyRule
from tests.clients.helm import Helm

__all__ = ["CHART", "ROOT", "VALUES", "Chart", "container", "find", "granted"]

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "ocf-controllers"
VALUES: Final = sorted((CHART / "ci").glob("*.yaml"))
"""Files with values, which `helm lint` is run with."""


class Chart(Helm):
    """helm, with the chart of the controllers."""

    async def render(self, values: Mapping[str, Any] | None = None, *arguments: str) -> list[Manifest]:
        """Return the objects that the chart has with some values."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(values or {}))
        output = await self.succeeds("template", "release", str(CHART), f"--values={file}", *arguments)
        return [each for each in load_documents(output) if each]

    async def refuses(self, values: Mapping[str, Any]) -> str:
        """Return why the chart cannot be rendered with some values."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        code, output = await self("template", "release", str(CHART), f"--values={file}")
        assert code == 1, output
        return output


def find(manifests: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """Return the object with a kind and a name."""
    (found,) = (each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def container(manifests: Iterable[Manifest], name: str) -> Manifest:
    """Return the container of a controller."""
    (found,) = find(manifests, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def granted(manifests: Iterable[Manifest], account: str) -> frozenset[PolicyRule]:
    """Return what roles grant to a service account, through their bindings."""
    return frozenset(_granted(list(manifests), account))


def _granted(manifests: list[Manifest], account: str) -> Iterator[PolicyRule]:
    for binding in manifests:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if account not in [subject["name"] for subject in binding["subjects"]]:
            continue
        namespace = binding["metadata"].get("namespace", "")
        (role,) = (
            each
            for each in manifests
            if (each["kind"], each["metadata"]["name"]) == (binding["roleRef"]["kind"], binding["roleRef"]["name"])
            and each["metadata"].get("namespace", "") == namespace
        )
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        for verb in rule["verbs"]:
                            yield PolicyRule(group, resource, verb, name=name, namespace=namespace)
