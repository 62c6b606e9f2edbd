"""Each fix of the linter, followed to the letter with each tool on live objects that other clients have written, too.

Afterwards the finding is gone, no target has fewer replicas, and no field of another manager is lost. All fixes are
tried at once, each in a namespace of its own, because a process of a tool takes longer than a request.
`test_replicas_of_a_live_target.py` has the fix of `fixed-replicas`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from ocf.autoscaling.linter.findings import Code
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.testing.envtest.binaries import Program, Programs
from ocf.testing.envtest.controlplane import ControlPlane
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.autoscaling.linter.fixes import CUSTOM_KINDS, FIXES, LIVE, Fix, findings, identity, placed, size
from tests.clients.helm import Helm
from tests.clients.support import Server
from tests.kubectl import Kubectl

TRIED: Final = [fix for fix in FIXES if fix.valid]
NOTE: Final = "example.com/note"


def definition(group: str, version: str, kind: str) -> Manifest:
    plural = f"{kind.lower()}s"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"scale": scale} if kind == "Rollout" else {},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


DEFINITIONS: Final = [definition(*kind) for kind in CUSTOM_KINDS]


@dataclass(frozen=True)
class Place:
    """A server.

    Args:
        kubectl: kubectl for it.
        namespaces: A namespace for each fix.
    """

    kubectl: Kubectl
    namespaces: Sequence[str]

    def put(self, objects: Callable[[Fix], Iterable[Manifest]]) -> list[Manifest]:
        """Return objects of each fix in its namespace."""
        pairs = zip(self.namespaces, TRIED, strict=True)
        return [placed(each, namespace) for namespace, fix in pairs for each in objects(fix)]


@dataclass(frozen=True)
class Tool(ABC):
    """A tool that applies the manifests of a user, and kubectl for other clients."""

    kubectl: Kubectl
    folder: Path

    @abstractmethod
    async def apply(self, objects: Sequence[Manifest], ended: Sequence[Manifest] = ()) -> None:
        """Apply all objects; then delete those that the files no longer have."""

    async def of_all(self, objects: Sequence[Manifest], *command: str) -> str:
        """Run a command of kubectl for all objects; return what it prints."""
        return (await self.kubectl(*command, "-f", "-", stdin=listed(objects))).out if objects else ""

    async def note(self, objects: Sequence[Manifest]) -> None:
        """Write fields as another client does."""
        await self.of_all(objects, "annotate", f"{NOTE}=kept", "--field-manager=another")
        patch = json.dumps({"spec": {"template": {"metadata": {"annotations": {NOTE: "kept"}}}}})
        workloads = [each for each in objects if each["kind"] == "Deployment"]
        await self.of_all(workloads, "patch", "--type=merge", f"--patch={patch}", "--field-manager=another")

    async def read(self, objects: Sequence[Manifest]) -> Mapping[str, list[Manifest]]:
        """Return the live objects of each namespace, in their order."""
        found: dict[str, list[Manifest]] = {}
        for each in json.loads(await self.of_all(objects, "get", "-o", "json"))["items"]:
            found.setdefault(each["metadata"]["namespace"], []).append(each)
        return found


class ClientSide(Tool):
    async def apply(self, objects: Sequence[Manifest], ended: Sequence[Manifest] = ()) -> None:
        await self.of_all(objects, "apply")
        await self.of_all(ended, "delete")


class ServerSide(Tool):
    async def apply(self, objects: Sequence[Manifest], ended: Sequence[Manifest] = ()) -> None:
        await self.of_all(objects, "apply", "--server-side")
        await self.of_all(ended, "delete")

    async def note(self, objects: Sequence[Manifest]) -> None:
        # After any other write, the real API server counts metrics with an amount of memory as changed by that client.
        # Not validated by kubectl, because another client applies only its own fields.
        arguments = ("apply", "--server-side", "--field-manager=another", "--validate=false")
        await self.of_all([noted(each) for each in objects], *arguments)


class Helm3(Tool):
    """A chart with all objects."""

    async def apply(self, objects: Sequence[Manifest], ended: Sequence[Manifest] = ()) -> None:
        del ended  # `helm upgrade` deletes what is no longer in the chart
        chart = self.folder / "chart"
        (chart / "templates").mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: fixes\nversion: 0.1.0\n")
        (chart / "templates" / "all.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
        helm = Helm(Server(self.kubectl.kubeconfig, objects[0]["metadata"]["namespace"]), self.folder, "helm3")
        await helm.succeeds("upgrade", "--install", "fixes", str(chart))


def listed(objects: Iterable[Manifest]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


TOOLS: Final = {
    "kubectl apply": ClientSide,
    "kubectl apply --server-side": ServerSide,
    "Helm 3": Helm3,
}


@pytest_asyncio.fixture(params=["embedded", "real"])
async def place(request: pytest.FixtureRequest, envtest_programs: Programs, tmp_path: Path) -> AsyncIterator[Place]:
    program = envtest_programs.path(Program.KUBECTL)
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("envtest_plane")
        plane.install_crds(*DEFINITIONS)
        with ExitStack() as stack:
            namespaces = [stack.enter_context(plane.namespace("fix-")) for _ in TRIED]
            yield Place(Kubectl(program, plane.kubeconfig, tmp_path), namespaces)
        return
    namespaces = [f"fix-{number}" for number, _ in enumerate(TRIED)]
    cluster = EmbeddedCluster(namespaces=namespaces)
    for each in DEFINITIONS:
        await cluster.create(each, field_manager="test")
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        yield Place(Kubectl(program, tmp_path / "kubeconfig", tmp_path), namespaces)


def noted(manifest: Manifest) -> Manifest:
    """Return what another client applies to an object."""
    note: Manifest = {"metadata": {"annotations": {NOTE: "kept"}}}
    named = {field: manifest["metadata"][field] for field in ("name", "namespace")}
    spec = {"spec": {"template": note}} if manifest["kind"] == "Deployment" else {}
    found = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
    return {**found, "metadata": {**named, **note["metadata"]}, **spec}


def of_others(manifest: Manifest) -> object:
    """Return what other clients have written into an object."""
    annotation = get_field(manifest, ("metadata", "annotations", NOTE))
    return annotation, get_field(manifest, ("spec", "template", "metadata", "annotations", NOTE))


def worse(fix: Fix, before: Sequence[Manifest], after: Sequence[Manifest]) -> list[str]:
    """Return what is worse after a fix, or as before."""
    old, new = ({identity(each): each for each in objects} for objects in (before, after))
    found, remaining = (set(findings(objects, fix.gates)) - {Code.FIXED_REPLICAS} for objects in (before, after))
    problems = [f"{code} is found" for code in remaining & {fix.code} | (remaining - found)]
    lost = [key for key in old.keys() & new if of_others(old[key]) != of_others(new[key])]
    problems += [f"{key} lost a field of another manager" for key in lost]
    if size(after) < size(before):
        problems.append(f"{size(after)} replicas in place of {size(before)}")
    return problems


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
async def test_no_fix_makes_a_live_object_worse(place: Place, tool: type[Tool], tmp_path: Path) -> None:
    by = tool(place.kubectl, tmp_path)
    before, after = place.put(lambda fix: fix.before), place.put(lambda fix: fix.after)
    started, ended = place.put(Fix.started), place.put(Fix.ended)
    workloads = [each for each in before if each["kind"] == "Deployment"]
    await by.apply(before)
    await by.of_all(workloads, "scale", f"--replicas={LIVE}")
    await by.note(before)
    old = await by.read(before)

    await by.apply([*place.put(Fix.first), *ended])
    await by.of_all(started, "scale", f"--replicas={LIVE}")
    await by.of_all([each for each in after if each["spec"].get("replicas") == 0], "scale", "--replicas=0")
    await by.apply(after, ended)

    new = await by.read(after)
    tried = zip(place.namespaces, TRIED, strict=True)
    assert {fix.name: each for name, fix in tried if (each := worse(fix, old[name], new[name]))} == {}
