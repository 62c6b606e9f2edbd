"""Updates of the status of Pods, valid and invalid ones, for `scripts/record/sequences.py`."""

from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]

NAMESPACE: Final = "pod-statuses"
_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_RESTART_ALL: Final[Json] = {
    "action": "RestartAllContainers",
    "exitCodes": {"operator": "In", "values": [42]},
}
_RESTART: Final[Json] = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1, 2]}}
_MOUNT: Final[Json] = {"name": "v", "mountPath": "/v"}
_RUNNING: Final[Json] = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}


def _request(method: str, path: str, body: Json, kind: str = "application/json") -> Json:
    return {"method": method, "path": path, "body": body, "kind": kind}


def _container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": "work:1", **fields}


def _pod(name: str, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [_container("work")], **spec},
    }


def _status(name: str = "work", **fields: Any) -> Json:
    return {
        "name": name,
        "image": "work:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": _RUNNING,
        **fields,
    }


def _exited(code: int, name: str = "work") -> Json:
    return _status(name, state={"terminated": {"exitCode": code, "reason": "Done"}})


def _condition(name: str, **fields: Any) -> Json:
    return {"type": name, "status": "True", **fields}


def _allocated(name: str, *resources: Json) -> Json:
    return {"containerStatuses": [_status(allocatedResourcesStatus=[{"name": name, "resources": list(resources)}])]}


def _user(**fields: Any) -> Json:
    return {"containerStatuses": [_status(user={"linux": {"uid": 1, "gid": 1, **fields}})]}


def _ips(*addresses: str) -> list[Json]:
    return [{"ip": each} for each in addresses]


_CLAIMS: Final[Json] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "card"}],
    "containers": [
        _container(
            "work",
            resources={
                "claims": [{"name": "gpu", "request": "one"}],
                "requests": {"cpu": "1", "example.com/gpu": "1"},
                "limits": {"example.com/gpu": "1"},
            },
        )
    ],
}
_MAPPING: Final[Json] = {"containerName": "work", "resourceName": "example.com/gpu", "requestName": "one"}

_SEQUENCES: Final[tuple[tuple[str, Json, tuple[Json, ...]], ...]] = (
    (
        "conditions",
        {},
        (
            {"conditions": [_condition("Ready"), _condition("PodScheduled"), _condition("Initialized")]},
            {"conditions": [_condition("ContainersReady"), _condition("example.com/Ready")]},
            {"conditions": [_condition("a b"), _condition(""), _condition("-x/y"), _condition("x" * 64)]},
            {"conditions": [_condition("Ready", observedGeneration=-1)]},
            {"conditions": [_condition("Ready", observedGeneration=3), _condition("Other", observedGeneration=2)]},
            {"conditions": [_condition("Ready"), _condition("Other"), _condition("Ready")]},
            {"conditions": [_condition("Ready"), _condition("Ready", status="Maybe")]},
            {"conditions": [{"status": "True"}]},
            {"conditions": []},
        ),
    ),
    (
        "generation",
        {},
        (
            {"observedGeneration": 1},
            {"observedGeneration": -1},
            {"phase": "Running"},
            {"phase": "Sleeping", "observedGeneration": 2},
            {"phase": ""},
        ),
    ),
    (
        "quality of service",
        {"containers": [_container("work", resources={"requests": {"cpu": "1"}})]},
        (
            {"qosClass": "Burstable"},
            {"qosClass": "Guaranteed"},
            {"qosClass": "Best"},
            {"qosClass": ""},
            {"reason": "Evicted", "message": "no room"},
        ),
    ),
    (
        "nominated node",
        {},
        (
            {"nominatedNodeName": "node-1"},
            {"nominatedNodeName": "Node_1"},
            {"nominatedNodeName": "node-2"},
            {"nominatedNodeName": ""},
            {"nominatedNodeName": "x" * 254},
        ),
    ),
    (
        "nominated node of a bound pod",
        {"nodeName": "node-1"},
        ({"nominatedNodeName": "node-2"}, {"nominatedNodeName": "A"}, {}),
    ),
    (
        "addresses",
        {},
        (
            {"podIP": "10.0.0.1"},
            {"podIP": "10.0.0.1", "podIPs": _ips("10.0.0.1")},
            {"podIP": "10.0.0.1", "podIPs": _ips("10.0.0.1", "fd00::1")},
            {"podIP": "10.0.0.1", "podIPs": _ips("10.0.0.2", "fd00::1")},
            {"podIPs": _ips("fd00::1", "10.0.0.1")},
            {"podIPs": _ips("10.0.0.1", "10.0.0.2")},
            {"podIPs": _ips("10.0.0.1", "fd00::1", "fd00::2")},
            {"podIPs": _ips("10.0.0", "fd00::1")},
            {"podIPs": _ips("10.0.0.1", "x")},
            {"podIP": "x"},
            {"podIP": "010.0.0.1"},
            {"podIPs": _ips("::ffff:10.0.0.1")},
            {"podIPs": _ips("FD00::1")},
            {"podIPs": _ips("")},
            {"podIPs": _ips("10.0.0.1", "10.0.0.1")},
            {"podIP": ""},
        ),
    ),
    (
        "addresses of the host",
        {},
        (
            {"hostIP": "10.0.0.1"},
            {"hostIP": "10.0.0.1", "hostIPs": _ips("10.0.0.1", "fd00::1")},
            {"hostIP": "10.0.0.2", "hostIPs": _ips("10.0.0.1", "fd00::1")},
            {"hostIPs": _ips("10.0.0.1")},
            {"hostIP": "x", "hostIPs": _ips("x")},
            {"hostIP": "x"},
            {"hostIP": "10.0.0.1", "hostIPs": _ips("10.0.0.1", "10.0.0.2", "10.0.0.3")},
            {"hostIP": "10.0.0.1", "hostIPs": _ips("10.0.0.1", "y")},
            {"hostIP": "010.0.0.1", "hostIPs": _ips("010.0.0.1")},
            {"hostIP": "FD00::1", "hostIPs": _ips("FD00::1")},
        ),
    ),
    *(
        (
            f"restarts with the policy {policy}",
            {"restartPolicy": policy},
            (
                {"containerStatuses": [_exited(0)]},
                {"containerStatuses": [_status()]},
                {"containerStatuses": [_exited(1)]},
                {"containerStatuses": [_status()]},
                {"containerStatuses": [_exited(2), _exited(1)]},
                {"containerStatuses": [_status("other"), _status()]},
                {"containerStatuses": []},
                {"containerStatuses": [_exited(0, "unknown")]},
                {"containerStatuses": [_status("unknown")]},
            ),
        )
        for policy in ("Always", "OnFailure", "Never")
    ),
    *(
        (
            f"restarts of a container with the policy {policy}",
            {"restartPolicy": "Never", "containers": [_container("work", restartPolicy=policy, **rules)]},
            (
                {"containerStatuses": [_exited(0)]},
                {"containerStatuses": [_status()]},
                {"containerStatuses": [_exited(1)]},
                {"containerStatuses": [_status()]},
                {"containerStatuses": [_exited(3)]},
                {"containerStatuses": [_status()]},
                {"containerStatuses": [_exited(42)]},
                {"containerStatuses": [_status()]},
            ),
        )
        for policy, rules in (
            ("Always", {}),
            ("OnFailure", {}),
            ("Never", {}),
            ("Never", {"restartPolicyRules": [_RESTART]}),
            ("Never", {"restartPolicyRules": [{**_RESTART, "exitCodes": {"operator": "In", "values": [1, 42]}}]}),
            ("Never", {"restartPolicyRules": [_RESTART_ALL]}),
        )
    ),
    (
        "init containers",
        {
            "restartPolicy": "OnFailure",
            "initContainers": [
                _container("first"),
                _container("sidecar", restartPolicy="Always"),
                _container("never", restartPolicy="Never"),
            ],
        },
        (
            {"initContainerStatuses": [_exited(0, "first"), _exited(0, "sidecar"), _exited(1, "never")]},
            {"initContainerStatuses": [_status("first"), _status("sidecar"), _status("never")]},
            {"initContainerStatuses": [_exited(1, "first"), _status("sidecar"), _exited(1, "never")]},
            {"initContainerStatuses": [_status("first"), _status("sidecar"), _exited(1, "never")]},
            {"initContainerStatuses": [_exited(1, "work")]},
            {"initContainerStatuses": [_status("work")]},
        ),
    ),
    (
        "ephemeral containers",
        {},
        (
            {"ephemeralContainerStatuses": [_exited(1, "debug")]},
            {"ephemeralContainerStatuses": [_status("debug")]},
            {"ephemeralContainerStatuses": [_status("debug", allocatedResourcesStatus=[{"name": "cpu"}])]},
            {"ephemeralContainerStatuses": []},
        ),
    ),
    (
        "claims",
        _CLAIMS,
        (
            {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "card"}]},
            {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]},
            {"resourceClaimStatuses": [{"name": "other", "resourceClaimName": "A"}]},
            {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": ""}]},
            {"extendedResourceClaimStatus": {"resourceClaimName": "card", "requestMappings": [_MAPPING]}},
            {"extendedResourceClaimStatus": {"resourceClaimName": "", "requestMappings": []}},
            {"extendedResourceClaimStatus": {"resourceClaimName": "A", "requestMappings": [_MAPPING, _MAPPING]}},
            {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "card",
                    "requestMappings": [
                        {**_MAPPING, "containerName": "other"},
                        {**_MAPPING, "resourceName": "example.com/tpu"},
                        {**_MAPPING, "requestName": "A"},
                    ],
                }
            },
        ),
    ),
    (
        "health of resources",
        _CLAIMS,
        (
            _allocated("cpu", {"resourceID": "1", "health": "Healthy"}),
            _allocated("claim:gpu/one", {"resourceID": "1", "health": "Unhealthy", "message": "hot"}),
            _allocated("claim:gpu", {"resourceID": "1", "health": "Unknown"}),
            _allocated("memory", {"resourceID": "1", "health": "Ill"}, {"resourceID": "1"}),
            _allocated("cpu", {"resourceID": "1", "health": "Healthy", "message": ""}),
            _allocated("cpu", {"resourceID": "1", "health": "Healthy", "message": "x" * 1025}),
            {"containerStatuses": [_status("unknown", allocatedResourcesStatus=[{"name": "x"}])]},
            {"initContainerStatuses": [_status("work", allocatedResourcesStatus=[{"name": "x"}])]},
        ),
    ),
    (
        "users",
        {},
        (
            _user(),
            _user(uid=-1),
            _user(gid=2**31),
            _user(supplementalGroups=[1, -1, 2**40]),
            {"initContainerStatuses": [_status("x", user={"linux": {"uid": -1, "gid": 0}})]},
            {"ephemeralContainerStatuses": [_status("x", user={"linux": {"uid": 0, "gid": -1}})]},
            {"containerStatuses": [_status(user={})]},
        ),
    ),
    (
        "users of a Windows pod",
        {"os": {"name": "windows"}},
        (_user(), {"containerStatuses": [_status(user={})]}),
    ),
    (
        "volumes",
        {},
        (
            {
                "containerStatuses": [
                    _status(
                        volumeMounts=[{"name": "v", "mountPath": "/v", "volumeStatus": {"image": {"imageRef": ""}}}]
                    )
                ]
            },
            {"containerStatuses": [_status(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
        ),
    ),
    (
        "containers without a field",
        {},
        (
            {"containerStatuses": [{"name": "work"}]},
            {"containerStatuses": [{}]},
            {"containerStatuses": [_status(), _status()]},
        ),
    ),
)


def _metadata_case() -> Json:
    """Return a case whose updates of the status change the rest of a pod, too."""
    name = "pod-rest"
    made = _pod(name)
    metadata = made["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "a"}
    bodies: tuple[Json, ...] = (
        {**made, "metadata": {**metadata, "annotations": {"kubernetes.io/config.mirror": "x"}}, "status": {}},
        {**made, "metadata": {**metadata, "ownerReferences": [owner], "labels": {"a": "b"}}, "status": {}},
        {**made, "spec": {**made["spec"], "nodeName": "node-1"}, "status": {"phase": "Running"}},
    )
    return {
        "title": "the rest of a pod",
        "namespace": NAMESPACE,
        "setup": [_request("POST", _PATH, made)],
        "requests": [_request("PUT", f"{_PATH}/{name}/status", body) for body in bodies],
    }


def _patch_case() -> Json:
    """Return a case whose updates of the status are patches."""
    name = "pod-patched"
    patches: tuple[Json, ...] = (
        {"podIP": "10.0.0.1", "podIPs": _ips("10.0.0.1")},
        {"podIP": "10.0.0.2"},
        {"podIPs": _ips("10.0.0.3")},
        {"qosClass": None},
        {"conditions": [_condition("Ready", observedGeneration=2)]},
        {"conditions": [_condition("Ready")]},
    )
    return {
        "title": "patches of a status",
        "namespace": NAMESPACE,
        "setup": [_request("POST", _PATH, _pod(name))],
        "requests": [
            _request("PATCH", f"{_PATH}/{name}/status", {"status": status}, "application/merge-patch+json")
            for status in patches
        ],
    }


def cases() -> Iterator[Json]:
    """Yield all cases: a Pod, and updates of its status."""
    for index, (title, spec, statuses) in enumerate(_SEQUENCES):
        name = f"pod-{index}"
        made = _pod(name, **spec)
        yield {
            "title": f"status of a pod: {title}",
            "namespace": NAMESPACE,
            "setup": [_request("POST", _PATH, made)],
            "requests": [_request("PUT", f"{_PATH}/{name}/status", {**made, "status": status}) for status in statuses],
        }
    yield _metadata_case()
    yield _patch_case()
