"""Bare kopf operators for the caches of the Memcached example: `python -m benchmarks.bare get`, or `apply`.

They send objects that were rendered before, so they neither build nor validate anything. `get` does what an author
writes first: it reads each object, and creates or patches it. `apply` sends server-side applies, and then reports a
status through kopf.
"""

import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
import yaml

__all__: list[str] = []

_GROUP: Final = "memcached.c5c3.io"
_VERSION: Final = "v1alpha1"
_MOST: Final = 10
_PATHS: Final = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "Service": "/api/v1/namespaces/{}/services",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_FORCED: Final = {"fieldManager": "bare", "force": "true"}


class _Writer:
    """Writes the objects of a cache.

    Args:
        folder: Folder of the kubeconfig and of the rendered objects, in which a cache is called NAME.
        applying: Whether it sends server-side applies; otherwise it reads each object first.
    """

    def __init__(self, folder: Path, *, applying: bool) -> None:
        kubeconfig = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        self._server = cluster["server"]
        self._trust: ssl.SSLContext | bool = True
        if "client-certificate" in user:
            self._trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
            self._trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self._objects = (folder / "objects").read_text(encoding="utf-8")
        self._write = self._apply if applying else self._create_or_patch
        self._session: aiohttp.ClientSession | None = None

    async def write(self, name: str, uid: str) -> None:
        """Write all objects of a cache."""
        if self._session is None:
            self._session = aiohttp.ClientSession(self._server, connector=aiohttp.TCPConnector(ssl=self._trust))
        reference = {
            "apiVersion": f"{_GROUP}/{_VERSION}",
            "kind": "Memcached",
            "name": name,
            "uid": uid,
            "controller": True,
        }
        for wanted in json.loads(self._objects.replace("NAME", name)):
            wanted["metadata"]["ownerReferences"] = [reference]
            path = _PATHS[wanted["kind"]].format(wanted["metadata"]["namespace"])
            await self._write(self._session, path, wanted)

    @staticmethod
    async def _apply(session: aiohttp.ClientSession, path: str, wanted: dict[str, Any]) -> None:
        one = f"{path}/{wanted['metadata']['name']}"
        async with session.patch(one, json=wanted, params=_FORCED, headers=_APPLY) as answer:
            answer.raise_for_status()
            await answer.json()

    @staticmethod
    async def _create_or_patch(session: aiohttp.ClientSession, path: str, wanted: dict[str, Any]) -> None:
        one = f"{path}/{wanted['metadata']['name']}"
        async with session.get(one) as live:
            there = live.ok
        sent = session.patch(one, json=wanted, headers=_MERGE) if there else session.post(path, json=wanted)
        async with sent as answer:
            answer.raise_for_status()


def _run(*, applying: bool) -> None:
    writer = _Writer(Path(os.environ["KUBECONFIG"]).parent, applying=applying)
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    async def reconcile(name: str, uid: str, meta: kopf.Meta, patch: kopf.Patch, **_: object) -> None:
        await writer.write(name, uid)
        if applying:
            ready = {"type": "Ready", "status": "False", "reason": "Waiting", "message": "0/2 replicas are ready"}
            patch.status["observedGeneration"] = meta["generation"]
            patch.status["conditions"] = [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]

    async def repair(name: str, body: kopf.Body, **_: object) -> None:
        if body.spec.get("maxReplicas") != _MOST:
            await writer.write(name, body.metadata["ownerReferences"][0]["uid"])

    async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
        settings.posting.enabled = False

    kopf.on.startup(registry=registry)(configure)
    for on in (kopf.on.create, kopf.on.update, kopf.on.resume):
        on(_GROUP, _VERSION, "memcacheds", registry=registry)(reconcile)
    if not applying:
        kopf.on.event("autoscaling", "v2", "horizontalpodautoscalers", registry=registry)(repair)
    # As `kopf run` does, which configures logging before it runs an operator; in the form of an operator of ours.
    kopf.configure(log_format=kopf.LogFormat.JSON)
    kopf.run(registry=registry, clusterwide=True, standalone=True)


if __name__ == "__main__":
    _run(applying={"get": False, "apply": True}[sys.argv[1]])
