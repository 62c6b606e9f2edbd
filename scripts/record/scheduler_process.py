"""A real kube-scheduler beside a real API server, given the situations of `tests.nodegroups.scheduler_cases`."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.certificates import CertificateFiles
from ocf.testing.envtest.http_probe import HttpProbe
from tests.nodegroups.scheduler_cases import NAMESPACES, Json

__all__ = ["RealScheduler"]

COLLECTIONS: Final = {
    "nodes": "/api/v1/nodes",
    "volumes": "/api/v1/persistentvolumes",
    "claims": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "pods": "/api/v1/namespaces/{namespace}/pods",
    "pending": "/api/v1/namespaces/{namespace}/pods",
    "classes": "/apis/storage.k8s.io/v1/storageclasses",
}
# They would change objects, or demand others that no controller creates here.
WITHOUT: Final = (
    "ServiceAccount,TaintNodesByCondition,RuntimeClass,StorageObjectInUseProtection,DefaultTolerationSeconds"
)
SECONDS: Final = 20.0  # for the scheduler to see everything that a situation consists of
REJECTED: Final = 400
NOT_FOUND: Final = 404


class RealScheduler:
    """Compares the scheduler with recorded answers.

    Args:
        plane: The control plane with the scheduler.
    """

    def __init__(self, plane: ControlPlane) -> None:
        user = json.loads(plane.kubeconfig.read_text())["users"][0]["user"]
        client = CertificateFiles(Path(user["client-certificate"]), Path(user["client-key"]))
        self._api = HttpProbe(int(plane.url.rpartition(":")[2]), plane.authority, client)
        self._classes: set[str] = set()

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["RealScheduler"]:
        """Run API server and scheduler for the duration of a block."""
        with ControlPlane(server_arguments={"disable-admission-plugins": WITHOUT}) as plane:
            found = cls(plane)
            for name, labels in NAMESPACES.items():
                found.send("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            with plane.scheduler({"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}):
                yield found

    def send(self, method: str, path: str, body: Json | None = None) -> Json:
        """Send a request, which has to succeed.

        Args:
            method: The method.
            path: The path.
            body: The body.
        """
        code, found = self._api.ask(method, path, body)
        if code >= REJECTED and (method, code) != ("DELETE", NOT_FOUND):
            raise SystemExit(f"{method} {path}: {code} {found.get('message')}\n{json.dumps(body)}")
        return found

    def check(self, case: Json, answers: list[Json]) -> None:
        """Give a situation to the scheduler.

        Args:
            case: The situation.
            answers: The expected answers.

        Raises:
            SystemExit: If the scheduler decides otherwise.
        """
        for manifest in case.get("classes", []):
            if manifest["metadata"]["name"] not in self._classes:
                self._classes.add(manifest["metadata"]["name"])
                self._create("classes", manifest)
        parts = ("nodes", "volumes", "claims", "pods")
        made = [self._create(part, manifest) for part in parts for manifest in case.get(part, [])]
        for pod, answer in zip(case["pending"], answers, strict=True):
            self._delete(self._compare(pod, answer, case))
        for path in reversed(made):
            self._delete(path)

    def _create(self, part: str, manifest: Json) -> str:
        """Create an object, and return its path."""
        sent: Json = json.loads(json.dumps(manifest))
        terminating = sent["metadata"].pop("deletionTimestamp", None)
        grace = sent["metadata"].pop("deletionGracePeriodSeconds", 0)
        if part in ("pods", "pending"):
            _complete(sent)
        collection = COLLECTIONS[part].format_map(sent["metadata"])
        stored = self.send("POST", collection, sent)
        path = f"{collection}/{sent['metadata']['name']}"
        if sent.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self.send("PUT", f"{path}/status", {**stored, "status": sent["status"]})
        if terminating:
            self.send("DELETE", path, {"gracePeriodSeconds": grace})
        return path

    def _delete(self, path: str) -> None:
        self.send("DELETE", path, {"gracePeriodSeconds": 0})

    def _compare(self, pod: Json, answer: Json, case: Json) -> str:
        """Wait until the scheduler has decided as expected, and return the path of the pod.

        It may decide early, before it has seen all objects. If the pod is on a node by then, it is created again.
        """
        deadline = time.monotonic() + SECONDS
        path = self._create("pending", pod)
        while not _equal(found := self.send("GET", path), answer):
            if time.monotonic() > deadline:
                wanted = answer.get("message") or [name for name, reasons in answer["nodes"].items() if not reasons]
                seen = [found["spec"].get("nodeName"), found.get("status", {}).get("conditions")]
                raise SystemExit(f"{path}: expected {wanted}, the scheduler gave {seen}\n{json.dumps(case)}")
            if found["spec"].get("nodeName"):
                self._delete(path)
                self._create("pending", pod)
            time.sleep(0.02)
        return path


def _equal(pod: Json, answer: Json) -> bool:
    message = answer.get("message")
    if message is None:
        return bool(answer["nodes"].get(pod["spec"].get("nodeName")) == [])
    conditions = pod.get("status", {}).get("conditions", [])
    # What follows is about preemption.
    return any(f"{each.get('message')} ".startswith(f"{message} ") for each in conditions if each["status"] == "False")


def _complete(pod: Json) -> None:
    """Make a stored pod one that can be created."""
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
        container["image"] = "app:1"
    for term in _terms(pod["spec"]):
        merged = {*term.get("matchLabelKeys", []), *term.get("mismatchLabelKeys", [])}
        expressions = term.get("labelSelector", {}).get("matchExpressions", [])
        if merged and expressions:
            term["labelSelector"]["matchExpressions"] = [each for each in expressions if each["key"] not in merged]


def _terms(spec: Json) -> Iterator[Json]:
    yield from spec.get("topologySpreadConstraints", [])
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity: dict[str, Any] = spec.get("affinity", {}).get(kind, {})
        yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
