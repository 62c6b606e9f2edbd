"""API defaults of the built-in kinds.

Covered are the kinds whose defaults matter to operators: workloads and their pod templates, services, autoscalers, and
the few fields of other kinds that are always set. All other kinds are stored as sent.

The functions change the given manifest in place, which the caller has just built.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.codec.pod_defaulting import set_pod_defaults, set_pod_spec_defaults

__all__ = ["set_defaults"]

_Json = dict[str, Any]


def set_defaults(manifest: Manifest, group: str) -> Manifest:
    """Set the API defaults of an object.

    Args:
        manifest: A decoded object; it is changed.

    Returns:
        The object with defaults; it may be another dict than the given one.
    """
    fill = _FILLERS.get((group, str(manifest.get("kind"))))
    return manifest if fill is None else fill(manifest)


def _autoscaler(manifest: Manifest) -> Manifest:
    if manifest["apiVersion"] == "autoscaling/v1":
        # This version has fewer defaults; fields that only the stored version has are set by the conversion.
        manifest["spec"].setdefault("minReplicas", 1)
        return manifest
    from ocf.autoscaling import default

    # Only the spec has defaults, so the rest is not copied.
    manifest["spec"] = default({"spec": manifest["spec"]})["spec"]
    return manifest


def _deployment(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    set_pod_spec_defaults(spec["template"]["spec"])
    return manifest


def _stateful_set(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    # With an explicit type, a missing `rollingUpdate` stays missing, which the controller treats otherwise.
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    policy.setdefault("whenDeleted", "Retain")
    policy.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates", ()):
        # The templates are complete objects, so the API server sets their type, too.
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        _claim(claim)
    set_pod_spec_defaults(spec["template"]["spec"])
    return manifest


def _daemon_set(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    set_pod_spec_defaults(spec["template"]["spec"])
    return manifest


def _replica_set(manifest: Manifest) -> Manifest:
    manifest["spec"].setdefault("replicas", 1)
    set_pod_spec_defaults(manifest["spec"]["template"]["spec"])
    return manifest


def _cron_job(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _job_template(spec["jobTemplate"]["spec"])
    return manifest


def _job(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    if "parallelism" not in spec:
        spec["parallelism"] = 1
        spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("suspend", False)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not manifest["metadata"].get("labels"):
        # The same map, as in the API server, by which the labels that are generated for the template are added, too.
        manifest["metadata"]["labels"] = labels
    _job_template(spec)
    return manifest


def _job_template(spec: _Json) -> None:
    for rule in spec.get("podFailurePolicy", {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition["status"] or "True"
    set_pod_spec_defaults(spec["template"]["spec"])


def _pod_template(manifest: Manifest) -> Manifest:
    set_pod_spec_defaults(manifest["template"]["spec"])
    return manifest


def _claim(manifest: Manifest) -> Manifest:
    manifest["spec"].setdefault("volumeMode", "Filesystem")
    manifest["status"].setdefault("phase", "Pending")
    return manifest


_SOURCE_DEFAULTS: Final[Manifest] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Defaults inside of the sources of PersistentVolumes."""


def _persistent_volume(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    for name, defaults in _SOURCE_DEFAULTS.items():
        if name in spec:
            spec[name] = {**defaults, **spec[name]}
    manifest["status"].setdefault("phase", "Pending")
    return manifest


# DefaultClientIPServiceAffinitySeconds: three hours.
_CLIENT_AFFINITY: Final = 10800


def _service(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        known = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds")
        if known is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _CLIENT_AFFINITY}}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        # Decoding writes the zero of a port that was not sent.
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if outside:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        _balancer(manifest)
    return manifest


def _balancer(manifest: Manifest) -> None:
    manifest["spec"].setdefault("allocateLoadBalancerNodePorts", True)
    for entry in manifest.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
        if entry.get("ip"):
            entry.setdefault("ipMode", "VIP")


def _namespace(manifest: Manifest) -> Manifest:
    manifest["metadata"].setdefault("labels", {})
    if name := manifest["metadata"].get("name"):
        manifest["metadata"]["labels"]["kubernetes.io/metadata.name"] = name
    return manifest


def _secret(manifest: Manifest) -> Manifest:
    manifest.setdefault("type", "Opaque")
    texts = manifest.pop("stringData", {})
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        manifest["data"] = {**manifest.get("data", {}), **encoded}
    return manifest


def _endpoints(manifest: Manifest) -> Manifest:
    for subset in manifest.get("subsets", ()):
        for port in subset.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return manifest


def _endpoint_slice(manifest: Manifest) -> Manifest:
    for port in manifest.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    return manifest


def _network_policy(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction, ()):
            for port in rule.get("ports", ()):
                port.setdefault("protocol", "TCP")
    return manifest


def _definition(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    if service := ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service"):
        service.setdefault("port", 443)
    names = spec["names"]
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    status = manifest.get("status")
    if status is not None and not status.get("storedVersions"):
        stored = [version["name"] for version in spec.get("versions") or () if version.get("storage")]
        status["storedVersions"] = stored[:1] or None
    return manifest


def _hooks(manifest: Manifest) -> Manifest:
    for hook in manifest.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if manifest["kind"] == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        _scopes(hook.get("rules"))
        if "service" in hook["clientConfig"]:
            hook["clientConfig"]["service"].setdefault("port", 443)
    return manifest


def _scopes(rules: list[Any] | None) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")


def _match_resources(match: dict[str, Any] | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    _scopes(match.get("resourceRules"))
    _scopes(match.get("excludeResourceRules"))


def _policy(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec.setdefault("failurePolicy", "Fail")
    _match_resources(spec.get("matchConstraints"))
    return manifest


def _policy_binding(manifest: Manifest) -> Manifest:
    _match_resources(manifest["spec"].get("matchResources"))
    return manifest


_RBAC: Final = "rbac.authorization.k8s.io"


def _role_binding(manifest: Manifest) -> Manifest:
    manifest["roleRef"]["apiGroup"] = manifest["roleRef"].get("apiGroup") or _RBAC
    for subject in manifest.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _RBAC
    return manifest


def _priority_class(manifest: Manifest) -> Manifest:
    manifest.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return manifest


def _storage_class(manifest: Manifest) -> Manifest:
    manifest.setdefault("reclaimPolicy", "Delete")
    manifest.setdefault("volumeBindingMode", "Immediate")
    return manifest


def _ingress_class(manifest: Manifest) -> Manifest:
    parameters = manifest["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"
    return manifest


def _limit_range(manifest: Manifest) -> Manifest:
    for limit in manifest["spec"]["limits"] or ():
        if limit.get("type") == "Container":
            limit["default"] = {**limit.get("max", {}), **limit.get("default", {})}
            limit["defaultRequest"] = {**limit.get("min", {}), **limit["default"], **limit.get("defaultRequest", {})}
            # Go makes empty maps, which are not written.
            for name in ("default", "defaultRequest"):
                if not limit[name]:
                    del limit[name]
    return manifest


_FILLERS: Final[Mapping[tuple[str, str], Callable[[Manifest], Manifest]]] = {
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Endpoints"): _endpoints,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): set_pod_defaults,
    ("", "PodTemplate"): _pod_template,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _policy,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _policy_binding,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _hooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _policy,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _policy_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _hooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    (_RBAC, "RoleBinding"): _role_binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
