"""Objects with the statuses and events that real controllers write, and a cluster that has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ocf.cli.explain.owner_snapshot import OwnerReading, WantedOwners, read_owners
from ocf.cli.explain.served_kinds import resolve_kind, served_kinds
from ocf.cluster import Cluster, Request
from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.cluster.interceptor import InterceptingCluster
from ocf.errors import ForbiddenError
from ocf.objects import Manifest
from ocf.objects.timestamps import format_time
from ocf.ownership import OwnerExplanation, explain_owner
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http import serving

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
GROUP: Final = "example.com"
KINDS: Final = (
    CustomKind(GROUP, "v1", "Shop"),
    CustomKind("autoscaling.ocf.dev", "v1alpha1", "NodeGroup"),
    CustomKind(GROUP, "v1", "Database"),
    CustomKind(GROUP, "v1", "Fleet", namespaced=False),
    CustomKind("gateway.networking.k8s.io", "v1", "Gateway"),
    CustomKind("gateway.networking.k8s.io", "v1", "GatewayClass", plural="gatewayclasses", namespaced=False),
)


def ago(minutes: float) -> str:
    """Return the time so many minutes before the snapshot."""
    return format_time(NOW - timedelta(minutes=minutes))


def obj(api_version: str, kind: str, name: str, *owners: Manifest, **fields: Any) -> Manifest:
    """Return an object that was created 12 minutes ago, which the first owner controls."""
    metadata = {
        "name": name,
        "namespace": "town",
        "uid": f"{kind}-{name}".lower(),
        "generation": 1,
        "creationTimestamp": ago(12),
        **fields.pop("metadata", {}),
    }
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": position == 0,
        }
        for position, owner in enumerate(owners)
    ]
    if references:
        metadata["ownerReferences"] = references
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {name: value for name, value in metadata.items() if value is not None},
        **fields,
    }


def cluster_scoped(api_version: str, kind: str, name: str, **fields: Any) -> Manifest:
    """Return an object without a namespace."""
    return obj(api_version, kind, name, metadata={"namespace": None, **fields.pop("metadata", {})}, **fields)


def condition(kind: str, status: str = "False", reason: str = "", message: str = "", minutes: float = 12) -> Manifest:
    """Return a condition."""
    return {
        "type": kind,
        "status": status,
        "reason": reason or "Reason",
        "message": message,
        "lastTransitionTime": ago(minutes),
    }


def shop(*conditions: Manifest, kind: str = "Shop", name: str = "corner", **fields: Any) -> Manifest:
    """Return an owner that reports some conditions, as most operators do; without any, one that has none yet."""
    listed = list(conditions) or [condition("Ready", reason="Progressing", message="waiting for resources")]
    status = {"observedGeneration": 1, "conditions": listed}
    return obj(f"{GROUP}/v1", kind, name, spec=fields.pop("spec", {}), status=fields.pop("status", status), **fields)


def template(**spec: Any) -> Manifest:
    """Return a pod template."""
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "web:1"}], **spec},
    }


def workload(kind: str, owner: Manifest, *, name: str = "web", ready: int = 0, **fields: Any) -> Manifest:
    """Return a workload of one pod."""
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        **fields.pop("spec", {}),
    }
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready}
    if kind == "DaemonSet":
        spec.pop("replicas")
        counts = {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1}
        counts |= {"numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0}
    status = {"observedGeneration": 1, **counts, **fields.pop("status", {})}
    return obj("apps/v1", kind, name, owner, spec=spec, status=status, **fields)


def pod(owner: Manifest, name: str = "web-0", *, spec: Manifest | None = None, **status: Any) -> Manifest:
    """Return a pod that is not ready for 12 minutes."""
    conditions = [condition("Ready", reason="ContainersNotReady"), *status.pop("conditions", ())]
    return obj(
        "v1",
        "Pod",
        name,
        owner,
        metadata={"labels": {"app": "web"}},
        spec={"containers": [{"name": "app", "image": "web:1"}], "nodeName": "node-1", **(spec or {})},
        status={"phase": "Pending", "conditions": conditions, **status},
    )


def container(state: Manifest, *, last: Manifest | None = None, ready: bool = False, restarts: int = 0) -> Manifest:
    """Return the status of the container of a pod."""
    return {
        "name": "app",
        "image": "web:1",
        "imageID": "",
        "ready": ready,
        "restartCount": restarts,
        "state": state,
        **({"lastState": last} if last else {}),
    }


def waiting(reason: str, message: str = "") -> Manifest:
    """Return the state of a container that waits."""
    return {"waiting": {"reason": reason, "message": message}}


def event(about: Manifest, reason: str, message: str, *, kind: str = "Warning", times: int = 5) -> Manifest:
    """Return an event about an object, of the last ten minutes."""
    metadata = about["metadata"]
    involved = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        **{name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata},
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{reason.lower()}", "namespace": metadata.get("namespace", "default")},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": kind,
        "count": times,
        "firstTimestamp": ago(10),
        "lastTimestamp": ago(1),
    }


def lease(name: str, *, renewed: float, holder: str = "pod-1", namespace: str = "ops") -> Manifest:
    """Return the Lease of an operator."""
    micro = format_time(NOW - timedelta(minutes=renewed)).replace("Z", ".000000Z")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": micro}
    return obj("coordination.k8s.io/v1", "Lease", name, metadata={"namespace": namespace}, spec=spec)


def written(*managers: str, status: str = "", minutes: float = 60, **fields: Any) -> list[Manifest]:
    """Return managed fields."""
    entries = [
        {
            "manager": name,
            "operation": "Apply",
            "apiVersion": "v1",
            "time": ago(minutes),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {}, **fields},
        }
        for name in managers
    ]
    if status:
        entries.append({**entries[0], "manager": status, "operation": "Update", "subresource": "status"})
    return entries


class _Forbidding(InterceptingCluster):
    """Forbids requests, as for a reader without a right."""

    def __init__(self, cluster: Cluster, forbid: Callable[[Request], bool]) -> None:
        super().__init__(cluster)
        self._forbid = forbid

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if self._forbid(request):
            raise ForbiddenError(f'User "reader" cannot list {request.kind}', code=403, reason="Forbidden")
        return await send()


class _Counting:
    """Notes the paths of requests."""

    def __init__(self, client: ApiServerCluster, paths: list[str]) -> None:
        self._client, self._paths = client, paths

    async def read_path(self, path: str, query: Sequence[tuple[str, str]] = (), *, accept: str = "") -> Manifest:
        self._paths.append(path)
        return await self._client.read_path(path, query, accept=accept)


class Town:
    """A cluster with the objects of a situation."""

    def __init__(
        self, objects: Iterable[Manifest] = (), *, cluster: EmbeddedCluster | None = None, now: datetime = NOW
    ) -> None:
        self.objects = list(objects)
        self.now = now
        self.requests: list[str] = []
        self._cluster = cluster

    async def read(
        self, kind: str = "shop", name: str = "corner", *, forbid: Callable[[Request], bool] | None = None
    ) -> OwnerReading:
        """Return what is read of an owner over HTTP."""
        cluster = self._cluster or await self._made()

        def limited(whole: Cluster) -> Cluster:
            return whole if forbid is None else _Forbidding(whole, forbid)

        async with (
            serving(cluster, wrap=limited) as server,
            ApiServerCluster(RestConfig(host=server.url)) as client,
        ):
            counted = _Counting(client, self.requests)
            served = await served_kinds(counted)
            return await read_owners(counted, WantedOwners(resolve_kind(kind, served), "town", name), served, self.now)

    async def _made(self) -> EmbeddedCluster:
        namespaces = {one["metadata"]["namespace"] for one in self.objects if "namespace" in one["metadata"]}
        given = {one["metadata"]["name"] for one in self.objects if one["kind"] == "Namespace"}
        cluster = EmbeddedCluster(kinds=KINDS, namespaces=sorted({"town", *namespaces} - given), now=lambda: self.now)
        await cluster.restore(self.objects)
        return cluster

    async def explain(self, kind: str = "shop", name: str = "corner", **options: Any) -> OwnerExplanation:
        """Return the explanation of an owner."""
        reading = await self.read(kind, name, **options)
        return explain_owner(reading.snapshot, reading.owners[0])
