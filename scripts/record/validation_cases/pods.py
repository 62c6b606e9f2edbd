"""Mistakes in pods and their templates.

No mistake is an empty list or map in a field whose value a message prints: the embedded API server stores it like a
missing one, and prints null for it.
"""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Mistake, Table, at, together

__all__ = ["METADATA", "TABLES", "pod_mistakes", "pod_spec"]

_PROBE: Final[dict[str, Any]] = {"httpGet": {"path": "/", "port": 80}}

_PROJECTED: Final[dict[str, Any]] = {"secret": {"name": "s", "items": [{"key": "a", "path": "b"}]}}


def pod_spec(**fields: Any) -> dict[str, Any]:
    """Return the spec of a pod with the parts that the mistakes change."""
    container = {
        "name": "web",
        "image": "nginx:1",
        "ports": [{"name": "http", "containerPort": 80}, {"name": "admin", "containerPort": 81}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/config"}],
        "livenessProbe": {"exec": {"command": ["true"]}},
        "readinessProbe": _PROBE,
        "startupProbe": {"tcpSocket": {"port": "http"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "securityContext": {"runAsUser": 1000},
    }
    return {
        "containers": [container, {"name": "side", "image": "busybox"}],
        "initContainers": [{"name": "init", "image": "busybox"}],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "host", "hostPath": {"path": "/var"}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
            {
                "name": "down",
                "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {
                "name": "all",
                "projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "a", "path": "b"}]}}]},
            },
        ],
        **fields,
    }


def _under(prefix: str, *mistakes: Mistake) -> tuple[Mistake, ...]:
    return tuple(tuple((f"{prefix}.{path}", value) for path, value in mistake) for mistake in mistakes)


def _affinity(term: dict[str, Any], *, node: bool = False) -> dict[str, Any]:
    if node:
        required = {"nodeSelectorTerms": [term]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression: dict[str, Any] = {"key": key, "operator": operator}
    return {**expression, "values": list(values)} if values else expression


def _volume(**source: Any) -> dict[str, Any]:
    return {"name": "other", **source}


_CONTAINERS: Final = (
    *at("containers", [], REMOVED, None),
    *at("containers[0].name", "", "Web", "side", "a.b", "x" * 64, "a_b", "init", REMOVED),
    *at("containers[0].image", "", " nginx", "nginx ", REMOVED, LONG),
    *at("containers[0].imagePullPolicy", "Sometimes", "always", "Never", ""),
    *at("containers[0].terminationMessagePolicy", "Logs", "FallbackToLogsOnError"),
    *at("containers[0].terminationMessagePath", "", "relative"),
    *at("containers[0].workingDir", "relative"),
    *at("containers[0].ports[0].containerPort", 0, -1, 65536, 81, REMOVED),
    *at("containers[0].ports[0].hostPort", 0, -1, 65536, 8080),
    *at("containers[0].ports[0].protocol", "tcp", "SCTP", "HTTP", ""),
    *at("containers[0].ports[0].name", "HTTP", "admin", "a--b", "-a", "80", "x" * 16, "a_b", ""),
    *at("containers[0].ports[0].hostIP", "1.2.3.4", "x"),
    *together(("containers[0].ports[0].hostPort", 8080), ("containers[0].ports[1].hostPort", 8080)),
    *together(("containers[0].ports[0].hostPort", 80), ("containers[0].ports[1].hostPort", 80)),
    *together(("hostNetwork", True), ("containers[0].ports[0].hostPort", 8080)),
    *at("containers[0].restartPolicy", "Always", "Never", "Sometimes"),
    *at("containers[0].restartPolicyRules", [{"action": "Restart"}], [{"action": "Restart", "exitCodes": {}}]),
    *together(
        ("containers[0].restartPolicy", "Never"),
        (
            "containers[0].restartPolicyRules",
            [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}, {"action": "Stop"}],
        ),
    ),
    *at("containers[0].resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
    *at("containers[0].resizePolicy", [{"resourceName": "disk", "restartPolicy": "Sometimes"}], [{}]),
    *at("containers[0].stdinOnce", True),
    *at("containers[1]", {"name": "web", "image": "x"}, {"name": "b"}, {"image": "b"}, {}),
    *at("initContainers[0].name", "web", "Init", ""),
    *at("initContainers[0].image", ""),
    *at("initContainers[0].restartPolicy", "Always", "OnFailure", "Sometimes"),
    *at("initContainers[0].livenessProbe", _PROBE, {}),
    *at("initContainers[0].readinessProbe", _PROBE),
    *at("initContainers[0].startupProbe", _PROBE),
    *at("initContainers[0].lifecycle", {"preStop": {"exec": {"command": ["a"]}}}, {}),
    *together(("initContainers[0].restartPolicy", "Always"), ("initContainers[0].livenessProbe", {})),
    *at("initContainers[0].resizePolicy", [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    *at("initContainers[+]", {"name": "init", "image": "x"}, {"name": "second", "image": "x"}),
    *at("ephemeralContainers", [{"name": "debug", "image": "busybox"}]),
)
_ENVIRONMENT: Final = (
    *at("containers[0].env[0].name", "", "a b", "1A", "A=B", "ä", "A\n", ".", "x.y-z_"),
    *at("containers[0].env[0].valueFrom", {"fieldRef": {"fieldPath": "metadata.name"}}, {}),
    *at("containers[0].env[1].valueFrom", {}, {"configMapKeyRef": {"key": "a"}}, {"configMapKeyRef": {"name": "a"}}),
    *at("containers[0].env[1].valueFrom.fieldRef.fieldPath", "", "metadata.nme", "spec.host", "status.phase"),
    *at("containers[0].env[1].valueFrom.fieldRef.fieldPath", "metadata.labels", "metadata.labels['a']"),
    *at("containers[0].env[1].valueFrom.fieldRef.fieldPath", "metadata.annotations['a b']", "spec.x['a']"),
    *at("containers[0].env[1].valueFrom.fieldRef.apiVersion", "v2", "v1"),
    *at("containers[0].env[1].valueFrom.secretKeyRef", {"name": "a", "key": "b"}),
    *at("containers[0].env[2].valueFrom.secretKeyRef.name", "", "A b", LONG),
    *at("containers[0].env[2].valueFrom.secretKeyRef.key", "", "a b", "..", "..a", REMOVED),
    *at("containers[0].env[3].valueFrom.resourceFieldRef.resource", "", "limits.disk", "requests.memory", "cpu"),
    *at("containers[0].env[3].valueFrom.resourceFieldRef.divisor", "2", "1", "1Mi", "0", "x"),
    *together(
        ("containers[0].env[3].valueFrom.resourceFieldRef.resource", "limits.memory"),
        ("containers[0].env[3].valueFrom.resourceFieldRef.divisor", "3Mi"),
    ),
    *at("containers[0].env[+]", {"name": "A", "value": "2"}, {"name": "E"}, {"value": "x"}, {}),
    *at(
        "containers[0].env[+]",
        {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "a", "key": "K"}}},
        {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "config", "path": "../a", "key": "K=1"}}},
        {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "none", "path": "", "key": ""}}},
    ),
    *at("containers[0].envFrom[0]", {}, {"prefix": "a=b", "configMapRef": {"name": "c"}}, {"secretRef": {}}),
    *at("containers[0].envFrom[0].secretRef", {"name": "s"}),
    *at("containers[0].envFrom[0].configMapRef.name", "", "A", "a-"),
)
_MOUNTS: Final = (
    *at("containers[0].volumeMounts[0].name", "", "none", "config"),
    *at("containers[0].volumeMounts[0].mountPath", "", "/config", "relative", "/a:b"),
    *at("containers[0].volumeMounts[0].subPath", "a/b", "/a", "../a", "a/../b", ".."),
    *at("containers[0].volumeMounts[0].subPathExpr", "$(A)", "/a", "../a"),
    *together(("containers[0].volumeMounts[0].subPath", "a"), ("containers[0].volumeMounts[0].subPathExpr", "b")),
    *at("containers[0].volumeMounts[0].mountPropagation", "None", "Bidirectional", "Both"),
    *at("containers[0].volumeMounts[0].recursiveReadOnly", "Enabled", "Disabled", "Yes"),
    *together(
        ("containers[0].volumeMounts[0].readOnly", True),
        ("containers[0].volumeMounts[0].recursiveReadOnly", "IfPossible"),
        ("containers[0].volumeMounts[0].mountPropagation", "HostToContainer"),
    ),
    *at("containers[1].volumeMounts", [{"name": "data", "mountPath": "/x"}, {"name": "data", "mountPath": "/x"}]),
    *at("containers[1].volumeDevices", [{"name": "claim", "devicePath": "/dev/a"}]),
    *at("containers[1].volumeDevices", [{"name": "data", "devicePath": "/dev/a"}], [{"name": "x", "devicePath": ""}]),
    *at("containers[1].volumeDevices", [{"name": "claim", "devicePath": "/a/../b"}]),
    *at(
        "containers[1].volumeDevices",
        [{"name": "claim", "devicePath": "/a"}, {"name": "claim", "devicePath": "/b"}],
    ),
    *together(
        ("containers[1].volumeDevices", [{"name": "claim", "devicePath": "/a"}]),
        ("containers[1].volumeMounts", [{"name": "claim", "mountPath": "/a"}]),
    ),
)
_RESOURCES: Final = (
    *at("containers[0].resources.requests.cpu", "2", "-1", "0", "x", "1e99"),
    *at("containers[0].resources.requests.memory", "1Gi", "-1Mi", "1.5"),
    *at("containers[0].resources.limits.cpu", "50m", "-1", 1),
    *at("containers[0].resources.limits", {"disk": "1"}, {"a b": "1"}, {"nvidia.com/gpu": "1"}, {"pods": "1"}),
    *at("containers[0].resources.limits", {"kubernetes.io/x": "1"}, {"requests.a/b": "1"}, {"a/b/c": "1"}),
    *at("containers[0].resources.limits", {"nvidia.com/gpu": "1500m"}, {"hugepages-2Mi": "4Mi"}),
    *at("containers[1].resources.requests", {"nvidia.com/gpu": "1"}, {"hugepages-2Mi": "3Mi"}, {"storage": "1"}),
    *at("containers[1].resources.limits", {"hugepages-2Mi": "3Mi"}, {"hugepages-x": "1"}, {"cpu": "-1"}),
    *together(
        ("containers[1].resources.requests", {"nvidia.com/gpu": "1"}),
        ("containers[1].resources.limits", {"nvidia.com/gpu": "2"}),
    ),
    *at("containers[0].resources.claims", [{"name": "gpu"}], [{}], [{"name": "gpu"}, {"name": "gpu"}]),
    *together(
        ("resourceClaims", [{"name": "gpu", "resourceClaimName": "g"}]),
        ("containers[0].resources.claims", [{"name": "gpu", "request": "A"}, {"name": "gpu"}]),
    ),
    *at("resourceClaims", [{"name": "G", "resourceClaimName": "g"}], [{"name": "g"}], [{}]),
    *at("resourceClaims", [{"name": "g", "resourceClaimName": "A_b", "resourceClaimTemplateName": "t"}]),
    *at("resources", {"requests": {"cpu": "2"}}, {"limits": {"cpu": "2"}}, {"requests": {"cpu": "1m"}}, {}),
    *at("resources", {"limits": {"disk": "2"}}, {"limits": {"cpu": "100m"}}, {"claims": [{"name": "a"}]}),
    *at("resources", {"limits": {"ephemeral-storage": "1Gi"}}),
    *at("overhead", {"cpu": "10m"}, {"x": "1"}, {"cpu": "-1"}),
)
_HANDLERS: Final = (
    *at("containers[0].livenessProbe", {}, {"exec": {}}, {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}),
    *at("containers[0].livenessProbe", {"grpc": {"port": 0}}, {"grpc": {"port": 5000}}, {"sleep": {"seconds": 1}}),
    *at("containers[0].livenessProbe.successThreshold", 2, 0, -1, 1),
    *at("containers[0].livenessProbe.failureThreshold", -1, 0),
    *at("containers[0].livenessProbe.periodSeconds", -1, 0),
    *at("containers[0].livenessProbe.timeoutSeconds", -1),
    *at("containers[0].livenessProbe.initialDelaySeconds", -1),
    *at("containers[0].livenessProbe.terminationGracePeriodSeconds", 0, -1, 5),
    *at("containers[0].readinessProbe.successThreshold", 2, -1),
    *at("containers[0].readinessProbe.terminationGracePeriodSeconds", 5, 0),
    *at("containers[0].readinessProbe.httpGet.port", 0, 65536, "", "http", "a_b", "HTTP"),
    *at("containers[0].readinessProbe.httpGet.path", "", "no-slash"),
    *at("containers[0].readinessProbe.httpGet.scheme", "http", "FTP", "HTTPS"),
    *at("containers[0].readinessProbe.httpGet.httpHeaders", [{"name": "a b", "value": "c"}], [{"name": "X-A"}]),
    *at("containers[0].startupProbe.tcpSocket.port", 0, "", "x" * 16),
    *at("containers[0].startupProbe.successThreshold", 2),
    *at("containers[0].lifecycle.preStop", {}, {"exec": {}}, {"sleep": {"seconds": 50}}, {"sleep": {"seconds": -1}}),
    *at("containers[0].lifecycle.postStart", {}, {"httpGet": {"port": 0}}, {"tcpSocket": {"port": 1}}),
    *at("containers[0].lifecycle.stopSignal", "SIGTERM", "SIGX"),
)
_VOLUMES: Final = (
    *at("volumes[0].name", "", "Data", "config", "a.b", "x" * 64),
    *at("volumes[0].hostPath", {"path": "/x"}),
    *at("volumes[0].emptyDir.sizeLimit", "-1", "1Gi"),
    *at("volumes[0].emptyDir.medium", "Memory", "Disk"),
    *at("volumes[1].configMap.name", "", REMOVED),
    *at("volumes[1].configMap.defaultMode", 0o777, 0o1000, -1, 420),
    *at("volumes[1].configMap.items[0].key", "", "a b"),
    *at("volumes[1].configMap.items[0].path", "", "/a", "../a", "..a", "a/../b"),
    *at("volumes[1].configMap.items[0].mode", 0o1000, -1),
    *at("volumes[2].secret.secretName", "", REMOVED),
    *at("volumes[2].secret.defaultMode", 512),
    *at("volumes[2].secret.items", [{"key": "", "path": ""}]),
    *at("volumes[3].hostPath.path", "", "../a", "/a/..", "relative"),
    *at("volumes[3].hostPath.type", "Directory", "Folder", ""),
    *at("volumes[4].persistentVolumeClaim.claimName", "", "Any Name"),
    *at("volumes[5].downwardAPI.items[0].path", "", "/a", "..b"),
    *at("volumes[5].downwardAPI.items[0].fieldRef.fieldPath", "spec.nodeName", "metadata.x", "metadata.labels['a']"),
    *at("volumes[5].downwardAPI.items[0].resourceFieldRef", {"resource": "limits.cpu", "containerName": "web"}),
    *at(
        "volumes[5].downwardAPI.items[0]", {"path": "a"}, {"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}
    ),
    *at("volumes[5].downwardAPI.items[0].mode", 512),
    *at("volumes[6].projected.sources[0].secret.name", ""),
    *at("volumes[6].projected.sources[0].configMap", {"name": "c"}),
    *at("volumes[6].projected.sources[+]", {"configMap": {"name": "c", "items": [{"key": "x", "path": "b"}]}}, {}),
    *at("volumes[6].projected.sources[+]", {"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}),
    *at("volumes[6].projected.sources[+]", {"serviceAccountToken": {"path": "../t", "expirationSeconds": 2**33}}),
    *at("volumes[6].projected.sources[+]", {"serviceAccountToken": {"path": ""}}),
    *at("volumes[6].projected.sources[+]", {"downwardAPI": {"items": [{"path": "b"}]}}),
    *at("volumes[6].projected.defaultMode", 512),
    *at("volumes[+]", _volume(), _volume(emptyDir={}, secret={"secretName": "a"}), {"emptyDir": {}}),
    *at("volumes[+]", _volume(nfs={"server": "", "path": "a"}), _volume(nfs={"server": "a", "path": "/a"})),
    *at("volumes[+]", _volume(gitRepo={"repository": "", "directory": "/x"}), _volume(gitRepo={"repository": "a"})),
    *at("volumes[+]", _volume(csi={"driver": ""}), _volume(csi={"driver": "A_b"}), _volume(csi={"driver": "x" * 64})),
    *at("volumes[+]", _volume(csi={"driver": "a.b", "nodePublishSecretRef": {}})),
    *at("volumes[+]", _volume(ephemeral={}), _volume(ephemeral={"volumeClaimTemplate": {"spec": {}}})),
    *at(
        "volumes[+]",
        _volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "metadata": {"name": "x", "labels": {"a b": "c"}},
                    "spec": {
                        "accessModes": ["ReadWriteOnce", "Any"],
                        "resources": {"requests": {"storage": "-1"}},
                        "volumeMode": "Raw",
                    },
                }
            }
        ),
    ),
    *at("volumes[+]", _volume(image={}), _volume(image={"reference": "a", "pullPolicy": "Some"})),
    *at("volumes[+]", _volume(gcePersistentDisk={"pdName": "", "partition": 256})),
    *at("volumes[+]", _volume(awsElasticBlockStore={"volumeID": "", "partition": -1})),
    *at("volumes[+]", _volume(iscsi={"targetPortal": "", "iqn": "x", "lun": 256})),
    *at("volumes[+]", _volume(iscsi={"targetPortal": "a:1", "iqn": "iqn.2001-04.com.example:x", "lun": 0})),
    *at(
        "volumes[+]",
        _volume(fc={}),
        _volume(fc={"targetWWNs": ["a"]}),
        _volume(fc={"wwids": ["a"], "targetWWNs": ["b"]}),
    ),
    *at("volumes[+]", _volume(flexVolume={"driver": "", "options": {"kubernetes.io/a": "b"}})),
    *at("volumes[+]", _volume(azureDisk={"diskName": "", "diskURI": "x", "kind": "Managed", "cachingMode": "Any"})),
    *at(
        "volumes[+]", _volume(azureFile={"secretName": "", "shareName": ""}), _volume(rbd={"monitors": [], "image": ""})
    ),
    *at("volumes[+]", _volume(cephfs={"monitors": []}), _volume(glusterfs={"endpoints": "", "path": ""})),
    *at("volumes[+]", _volume(cinder={"volumeID": "", "secretRef": {}}), _volume(vsphereVolume={"volumePath": ""})),
    *at("volumes[+]", _volume(flocker={}), _volume(storageos={}), _volume(portworxVolume={"volumeID": ""})),
    *at(
        "volumes[+]",
        _volume(scaleIO={"gateway": "", "system": "", "secretRef": {}}),
        _volume(photonPersistentDisk={"pdID": ""}),
    ),
)
_SCHEDULING: Final = (
    *at("nodeSelector", {"a": "b"}, {"a b": "c"}, {"a": "b c"}),
    *at("tolerations", [{}], [{"operator": "Exists"}], [{"key": "a", "operator": "Some"}], [{"key": "a b"}]),
    *at("tolerations", [{"key": "a", "operator": "Exists", "value": "b"}], [{"key": "a", "value": "b c"}]),
    *at("tolerations", [{"key": "a", "tolerationSeconds": 5}], [{"key": "a", "effect": "Never"}]),
    *at("tolerations", [{"key": "a", "operator": "Lt", "value": "1"}], [{"key": "a", "effect": "NoExecute"}]),
    *at("affinity", {}, {"nodeAffinity": {}}, _affinity({}, node=True), _affinity({})),
    *at("affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
    *(
        mistake
        for expression in (
            _expression("a", "In", "b"),
            _expression("a", "In"),
            _expression("a b", "Exists", "c"),
            _expression("a", "Gt", "1", "2"),
            _expression("a", "Some"),
            _expression("a", "NotIn", "b c"),
        )
        for mistake in at("affinity", _affinity({"matchExpressions": [expression]}, node=True))
    ),
    *at("affinity", _affinity({"matchFields": [_expression("metadata.name", "In", "a")]}, node=True)),
    *at("affinity", _affinity({"matchFields": [_expression("metadata.x", "Exists")]}, node=True)),
    *at("affinity", _affinity({"topologyKey": "a b"}), _affinity({"topologyKey": "a", "namespaces": ["A"]})),
    *at("affinity", _affinity({"topologyKey": "a", "labelSelector": {"matchExpressions": [_expression("a", "In")]}})),
    *at("affinity", _affinity({"topologyKey": "a", "matchLabelKeys": ["b"]})),
    *at(
        "affinity",
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]}},
        {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": {}}]}},
    ),
    *at("topologySpreadConstraints", [{}], [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
    *at(
        "topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Never"}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}] * 2,
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Some"}],
        [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["a b"]}],
    ),
    *at("schedulingGates", [{"name": "a"}], [{"name": "a b"}]),
    *at("priorityClassName", "A b"),
    *at("schedulerName", "x", "A b"),
    *at("preemptionPolicy", "Some"),
    *at("nodeName", "node-1", "Node_1"),
    *at("runtimeClassName", "A_b", ""),
)
_POD: Final = (
    *at("restartPolicy", "Never", "always", "Sometimes", "OnFailure", ""),
    *at("dnsPolicy", "None", "Default", "Some", ""),
    *at("dnsConfig", {"nameservers": ["1.2.3.4", "x"]}, {"nameservers": ["1.1.1.1"] * 4}, {"options": [{}]}),
    *at("dnsConfig", {"searches": ["a.b.", "A b", "_x.y", "."]}, {"searches": ["a"] * 33}, {"searches": [LONG] * 7}),
    *together(("dnsPolicy", "None"), ("dnsConfig", {"searches": ["a"]})),
    *together(("dnsPolicy", "None"), ("dnsConfig", {"nameservers": ["010.0.0.1"]})),
    *at("terminationGracePeriodSeconds", -1, 0, 5),
    *at("activeDeadlineSeconds", 0, -1, 5, 2**31),
    *at("hostname", "web", "Web", "a.b", "x" * 64),
    *at("subdomain", "web", "a.b"),
    *at("hostnameOverride", "a.b", "A", "x" * 65),
    *together(("hostnameOverride", "a"), ("setHostnameAsFQDN", True)),
    *at("hostAliases", [{"ip": "1.2.3.4", "hostnames": ["a"]}], [{"ip": "x", "hostnames": ["A b"]}], [{"ip": "::1"}]),
    *at("readinessGates", [{"conditionType": "a.b/c"}], [{"conditionType": "a b"}], [{}]),
    *at("imagePullSecrets", [{"name": "a"}], [{}], [{"name": "A b"}]),
    *at("serviceAccountName", "a", "A_b"),
    *at("os", {"name": "linux"}, {"name": "mac"}, {"name": ""}, {"name": "windows"}),
    *at("hostNetwork", True),
    *at("hostUsers", False),
    *together(("hostUsers", False), ("hostPID", True)),
    *together(("hostPID", True), ("shareProcessNamespace", True)),
    *at("securityContext.runAsUser", -1, 2**31, 0),
    *at("securityContext.runAsGroup", -1),
    *at("securityContext.fsGroup", -1, 2**31),
    *at("securityContext.supplementalGroups", [1, -1]),
    *at("securityContext.supplementalGroupsPolicy", "Merge", "Some"),
    *at("securityContext.fsGroupChangePolicy", "Always", "Some"),
    *at("securityContext.seLinuxChangePolicy", "Recursive", "MountOption", "Some"),
    *at("securityContext.sysctls", [{"name": "a.b", "value": "1"}], [{"name": "A", "value": ""}], [{"name": ""}]),
    *at("securityContext.sysctls", [{"name": "net.a", "value": "1"}, {"name": "net.a", "value": "2"}]),
    *at("securityContext.seccompProfile", {}, {"type": "Any"}, {"type": "Localhost"}),
    *at("securityContext.seccompProfile", {"type": "Localhost", "localhostProfile": "/a"}),
    *at("securityContext.appArmorProfile", {}, {"type": "Any"}, {"type": "Localhost", "localhostProfile": " a"}),
    *at("securityContext.windowsOptions", {"runAsUserName": ""}, {"runAsUserName": "a\\b\\c"}, {"hostProcess": True}),
    *at("securityContext.windowsOptions", {"gmsaCredentialSpecName": "A b"}, {"gmsaCredentialSpec": ""}),
    *at("containers[0].securityContext.runAsUser", -1, 2**31),
    *at("containers[0].securityContext.runAsGroup", -1),
    *at("containers[0].securityContext.procMount", "Default", "Unmasked", "Some"),
    *at("containers[0].securityContext.privileged", True),
    *together(
        ("containers[0].securityContext.privileged", True),
        ("containers[0].securityContext.allowPrivilegeEscalation", False),
    ),
    *together(
        ("containers[0].securityContext.capabilities", {"add": ["CAP_SYS_ADMIN"]}),
        ("containers[0].securityContext.allowPrivilegeEscalation", False),
    ),
    *at("containers[0].securityContext.seccompProfile", {"type": "Unconfined", "localhostProfile": "a"}),
    *at("containers[0].securityContext.capabilities", {"add": ["anything"]}),
)


def pod_mistakes(prefix: str, *, every: int = 1) -> tuple[Mistake, ...]:
    """Return the mistakes in the spec of a pod.

    Args:
        prefix: Its field, `spec.template.spec`.
        every: Only each so many-th mistake is returned.
    """
    groups = (*_CONTAINERS, *_ENVIRONMENT, *_MOUNTS, *_RESOURCES, *_HANDLERS, *_VOLUMES, *_SCHEDULING, *_POD)
    return _under(prefix, *groups[::every])


METADATA: Final = (
    *at("metadata.name", "UPPER", "a_b", "a.b", "x" * 64, LONG),
    *at("metadata.labels", {"a b": "c"}, {"a": "b c"}),
    *at("metadata.finalizers", ["f"]),
)
_ANNOTATIONS: Final = (
    *at("metadata.annotations", {"controller.kubernetes.io/pod-deletion-cost": "1"}),
    *at("metadata.annotations", {"controller.kubernetes.io/pod-deletion-cost": "+1"}),
    *at("metadata.annotations", {"kubernetes.io/config.mirror": "x"}),
    *at("metadata.annotations", {"container.apparmor.security.beta.kubernetes.io/web": "any"}),
    *at("metadata.annotations", {"container.apparmor.security.beta.kubernetes.io/none": "unconfined"}),
    *at("metadata.annotations", {"seccomp.security.alpha.kubernetes.io/pod": "any"}),
    *at("metadata.annotations", {"seccomp.security.alpha.kubernetes.io/pod": "localhost/../a"}),
    *together(
        ("metadata.annotations", {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}),
        ("spec.securityContext", {"seccompProfile": {"type": "RuntimeDefault"}}),
    ),
)


def _pod(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**fields)}


_CHANGES: Final = (
    *at("spec.containers[0].image", "nginx:2", "", " a"),
    *at("spec.initContainers[0].image", "busybox:2"),
    *at("spec.containers[0].name", "other"),
    *at("spec.containers[0].command", ["a"]),
    *at("spec.containers[0].env[0].value", "2"),
    *at("spec.containers[0].resources.limits.cpu", "3"),
    *at("spec.containers[+]", {"name": "new", "image": "x"}),
    *at("spec.initContainers[+]", {"name": "new", "image": "x"}),
    *at("spec.initContainers", REMOVED),
    *at("spec.volumes[+]", {"name": "new", "emptyDir": {}}),
    *at("spec.volumes", REMOVED),
    *at("spec.activeDeadlineSeconds", 5, 500, -1, 0, REMOVED),
    *at("spec.tolerations", [{"key": "a"}], [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], REMOVED),
    *at("spec.tolerations[+]", {"key": "b"}, {"key": "b b"}),
    *at("spec.nodeName", "node-1", ""),
    *at("spec.nodeSelector", {"a": "b"}, {"a": "c"}, REMOVED),
    *at("spec.restartPolicy", "Never"),
    *at("spec.terminationGracePeriodSeconds", 5),
    *at("spec.serviceAccountName", "other"),
    *at("spec.hostNetwork", True),
    *at("spec.hostPID", True),
    *at("spec.priority", 5),
    *at("spec.enableServiceLinks", False),
    *at("spec.securityContext", {"runAsUser": 5}),
    *at("spec.schedulingGates", [{"name": "new"}], REMOVED),
    *at("spec.affinity", _affinity({"matchExpressions": [_expression("a", "In", "b")]}, node=True)),
    *at("spec.affinity", _affinity({"topologyKey": "a"})),
    *at("metadata.labels", {"app": "other"}, {}),
    *at("metadata.annotations", {"kubernetes.io/config.mirror": "x"}, {"a": "b"}),
    *at("spec.ephemeralContainers", [{"name": "debug", "image": "x"}]),
)

TABLES: Final = (
    Table(
        kind="Pod",
        bases={
            "full": _pod("web"),
            "small": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
        stored={
            "full": _pod("stored-full", activeDeadlineSeconds=100, tolerations=[{"key": "a", "operator": "Exists"}]),
            "gated": _pod("stored-gated", schedulingGates=[{"name": "a"}], nodeSelector={"a": "b"}),
            "bound": _pod("stored-bound", nodeName="node-0", serviceAccountName="x"),
        },
        mistakes=(*METADATA, *_ANNOTATIONS, *pod_mistakes("spec")),
        changes=_CHANGES,
        pairs=60,
    ),
)
