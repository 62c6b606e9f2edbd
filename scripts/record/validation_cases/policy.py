"""Mistakes in PodDisruptionBudgets, PriorityClasses, Leases, Namespaces, LimitRanges and ResourceQuotas."""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Table, at, together

__all__ = ["TABLES"]


def _budget(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    full = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": full}


_BUDGETS: Final = Table(
    kind="PodDisruptionBudget",
    bases={
        "min": _budget("web", minAvailable=1),
        "max": _budget("web", maxUnavailable="10%"),
        "none": _budget("web", unhealthyPodEvictionPolicy="AlwaysAllow"),
    },
    stored={"min": _budget("stored-min", minAvailable=1), "max": _budget("stored-max", maxUnavailable="10%")},
    mistakes=(
        *at("spec", {}, REMOVED),
        *at("spec.minAvailable", 1, 0, -1, "50%", "101%", "-1%", "x", "", "5", "100%", "1.5%", None, 2**31, "0%"),
        *at("spec.maxUnavailable", 1, 0, -1, "50%", "101%", "-1%", "x", "", "5", "100%", "%", None),
        *together(("spec.minAvailable", 1), ("spec.maxUnavailable", 1)),
        *together(("spec.minAvailable", -1), ("spec.maxUnavailable", "x")),
        *at("spec.selector", {}, REMOVED, None, {"matchLabels": {"a b": "c"}}, {"matchLabels": {"a": "b c"}}),
        *at(
            "spec.selector.matchExpressions",
            [{"key": "a", "operator": "In"}],
            [{"key": "a", "operator": "Exists", "values": ["x"]}],
            [{"key": "a", "operator": "Other"}],
            [{"key": "", "operator": "Exists"}],
            [{"key": "a", "operator": "In", "values": ["b c"]}],
        ),
        *at("spec.unhealthyPodEvictionPolicy", "IfHealthyBudget", "AlwaysAllow", "Other", ""),
        *at("metadata.name", "a_b", "UPPER", "a.b", LONG),
    ),
    changes=(
        *at("spec.selector", {"matchLabels": {"app": "other"}}),
        *at("spec.minAvailable", 2, REMOVED),
        *at("metadata.resourceVersion", REMOVED),
    ),
    pairs=30,
)


def _priority(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, **fields}


_PRIORITIES: Final = Table(
    kind="PriorityClass",
    bases={"plain": _priority("high", value=1000), "never": _priority("high", value=-5, preemptionPolicy="Never")},
    stored={
        "plain": _priority("stored", value=1000),
        "never": _priority("stored-never", value=5, preemptionPolicy="Never"),
    },
    mistakes=(
        *at("value", 1000000000, 1000000001, 2147483647, 2**31, -2147483648, REMOVED, "x", 0),
        *at("preemptionPolicy", "Never", "PreemptLowerPriority", "Other", "", REMOVED),
        *at("globalDefault", True, "x", False),
        *at("description", "any", LONG),
        *at("metadata.name", "system-x", "system-cluster-critical", "a_b", "UPPER", "systemx"),
    ),
    changes=(
        *at("value", 1, REMOVED, 2000000000),
        *at("preemptionPolicy", "Never", "PreemptLowerPriority", REMOVED),
        *at("globalDefault", True),
        *at("description", "other"),
    ),
    pairs=15,
)


def _lease(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


_HELD: Final = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1}
_LEASES: Final = Table(
    kind="Lease",
    bases={
        "empty": _lease("lock"),
        "held": _lease("lock", acquireTime="2026-01-01T00:00:00.000000Z", **_HELD),
        "strategy": _lease("lock", strategy="OldestEmulationVersion", **_HELD),
    },
    stored={"held": _lease("stored", **_HELD)},
    mistakes=(
        *at("spec.leaseDurationSeconds", 0, -1, REMOVED, "x", 2**31, 1),
        *at("spec.leaseTransitions", -1, 0, REMOVED, "x"),
        *at("spec.holderIdentity", "", "any text", REMOVED, 1),
        *at("spec.strategy", "OldestEmulationVersion", "Other", "example.com/own", "", "a b/c"),
        *at("spec.preferredHolder", "b", ""),
        *together(("spec.strategy", "OldestEmulationVersion"), ("spec.preferredHolder", "b")),
        *at("spec.renewTime", "2026-01-01T00:00:00.123456Z", None),
        *at("metadata.name", "a_b", "a.b", "UPPER"),
        *at("spec", REMOVED, None),
    ),
    changes=(
        *at("spec.leaseDurationSeconds", 30),
        *at("spec.holderIdentity", "b"),
        *at("metadata.resourceVersion", REMOVED),
    ),
    pairs=15,
)

_NAMESPACES: Final = Table(
    kind="Namespace",
    bases={"plain": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}}}},
    stored={"plain": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stored"}}},
    mistakes=(
        *at("metadata.name", "UPPER", "a.b", "a_b", "a" * 64, "", "1", "-a"),
        *at("metadata.generateName", "shop-", "A-"),
        *at("metadata.labels", {"a b": "c"}, {"kubernetes.io/metadata.name": "other"}),
        *at("spec.finalizers", ["kubernetes"], ["other"], ["example.com/f"], ["a b"], [], ["kubernetes", "x"]),
        *at("metadata.finalizers", ["x"], ["example.com/f"]),
        *at("status.phase", "Terminating", "Other"),
    ),
    changes=(
        *at("spec.finalizers", [], ["other"]),
        *at("metadata.labels", {"kubernetes.io/metadata.name": "x"}, {}),
        *at("metadata.finalizers", ["x"], ["example.com/f"]),
    ),
    pairs=10,
)


def _limits(name: str, *limits: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


_CONTAINER: Final = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}, "default": {"cpu": "1"}}
_LIMITS: Final = Table(
    kind="LimitRange",
    bases={
        "container": _limits("limits", _CONTAINER),
        "pod": _limits("limits", {"type": "Pod", "max": {"memory": "1Gi"}, "maxLimitRequestRatio": {"memory": "2"}}),
        "claim": _limits("limits", {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}),
    },
    mistakes=(
        *at("spec.limits", [], REMOVED, [{}], [{"type": "Container"}, {"type": "Container"}]),
        *at("spec.limits[0].type", "Pod", "PersistentVolumeClaim", "Other", "", "a b", "example.com/x"),
        *at("spec.limits[0].max", {"cpu": "50m"}, {"cpu": "-1"}, {"a b": "1"}, {"cpu": "x"}, {"bad": "1"}),
        *at("spec.limits[0].min", {"cpu": "5"}, {"memory": "1Gi"}, {"storage": "-1"}),
        *at("spec.limits[0].default", {"cpu": "5"}, {"cpu": "1m"}, {"memory": "1"}),
        *at("spec.limits[0].defaultRequest", {"cpu": "5"}, {"cpu": "1m"}, {"cpu": "1500m"}),
        *at("spec.limits[0].maxLimitRequestRatio", {"cpu": "0.5"}, {"cpu": "100"}, {"memory": "2"}, {"cpu": "2"}),
    ),
    pairs=25,
)


def _quota(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


_QUOTAS: Final = Table(
    kind="ResourceQuota",
    bases={
        "plain": _quota("quota", hard={"cpu": "10", "pods": "5", "requests.storage": "1Gi"}),
        "scoped": _quota("quota", hard={"pods": "5"}, scopes=["NotTerminating"]),
    },
    stored={"scoped": _quota("stored", hard={"pods": "5"}, scopes=["NotTerminating"])},
    mistakes=(
        *at("spec.hard", {}, REMOVED, {"a b": "1"}, {"cpu": "-1"}, {"cpu": "x"}, {"pods": "1.5"}, {"count/pods": "5"}),
        *at(
            "spec.hard", {"unknown": "1"}, {"example.com/x": "1"}, {"requests.example.com/x": "1"}, {"services": "500m"}
        ),
        *at("spec.hard", {"limits.example.com/gpu": "1"}, {"requests.nvidia.com/gpu": "0.5"}),
        *at(
            "spec.scopes",
            ["Terminating", "NotTerminating"],
            ["Other"],
            ["BestEffort", "NotBestEffort"],
            [],
            ["BestEffort"],
        ),
        *at("spec.scopes", ["Terminating", "Terminating"], ["PriorityClass"]),
        *at(
            "spec.scopeSelector",
            {},
            {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]},
            {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}]},
            {"matchExpressions": [{"scopeName": "Other", "operator": "Exists"}]},
            {"matchExpressions": [{"scopeName": "Terminating", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [{"scopeName": "Terminating", "operator": "x"}]},
        ),
    ),
    changes=(*at("spec.scopes", ["Terminating"], []), *at("spec.hard", {"pods": "6"}, {"cpu": "-1"})),
    pairs=25,
)

TABLES: Final = (_BUDGETS, _PRIORITIES, _LEASES, _NAMESPACES, _LIMITS, _QUOTAS)
