"""Mistakes in Deployments, ReplicaSets, StatefulSets and DaemonSets."""

from typing import Any, Final

from scripts.record.validation_cases.pods import METADATA, pod_mistakes, pod_spec
from scripts.record.validation_cases.table import REMOVED, Mistake, Table, at, together

__all__ = ["TABLES"]

_LABELS: Final = {"app": "web"}
_TEMPLATE: Final[dict[str, Any]] = {"metadata": {"labels": _LABELS}, "spec": pod_spec()}


def _workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    body = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}


_SELECTORS: Final = (
    *at("spec.selector", REMOVED, {}, None, {"matchLabels": {"app": "other"}}, {"matchLabels": {"a b": "c"}}),
    *at("spec.selector", {"matchLabels": {"app": "web", "b": "c"}}, {"matchLabels": {"app": "b c"}}),
    *at("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
    *at("spec.selector", {"matchExpressions": [{"key": "app", "operator": "In"}]}),
    *at("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]}),
    *at("spec.selector", {"matchExpressions": [{"key": "app", "operator": "is", "values": ["web"]}]}),
    *at("spec.selector", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["b c"]}]}),
    *at("spec.template.metadata.labels", {"app": "other"}, {"app": "web", "b": "c"}, REMOVED),
    *at("spec.template.metadata.labels", {"app": "web", "a b": "c"}),
    *at("spec.template.metadata.annotations", {"a b": "c"}, {"kubernetes.io/config.mirror": "x"}),
    *at("spec.template", REMOVED, {}),
    *at("spec.template.spec.restartPolicy", "Never", "OnFailure", "x"),
    *at("spec.template.spec.activeDeadlineSeconds", 5, -1),
)
_REPLICAS: Final = at("spec.replicas", -1, 0, 5, 2**31)
_SECONDS: Final = (*at("spec.minReadySeconds", -1, 5, 700), *at("spec.revisionHistoryLimit", -1, 0, 5))
_SELECTOR_CHANGES: Final = (
    *at("spec.selector", {"matchLabels": {"app": "web", "b": "c"}}, {}, REMOVED),
    *together(
        ("spec.selector", {"matchLabels": {"app": "other"}}), ("spec.template.metadata.labels", {"app": "other"})
    ),
    *at("spec.template.spec.containers[0].image", "nginx:2", ""),
    *at("spec.template.metadata.labels", {"app": "web", "b": "c"}, {"app": "other"}),
    *at("metadata.labels", {"a": "b"}),
)
_AMOUNTS: Final = (0, 1, -1, "0%", "50%", "150%", "x", "-5%", "50", "")


def _table(kind: str, mistakes: tuple[Mistake, ...], *, every: int, changes: tuple[Mistake, ...] = ()) -> Table:
    others = _EXTRA.get(kind, {})
    return Table(
        kind=kind,
        bases={"plain": _workload(kind, "web", **others)},
        stored={"plain": _workload(kind, "stored-plain", **others)},
        mistakes=(*METADATA, *_SELECTORS, *mistakes, *pod_mistakes("spec.template.spec", every=every)),
        changes=(*_SELECTOR_CHANGES, *changes),
        pairs=30,
    )


_CLAIM: Final[dict[str, Any]] = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_EXTRA: Final[dict[str, dict[str, Any]]] = {
    "StatefulSet": {"serviceName": "web", "volumeClaimTemplates": [_CLAIM]},
}

TABLES: Final = (
    _table(
        "Deployment",
        (
            *_REPLICAS,
            *_SECONDS,
            *at("spec.progressDeadlineSeconds", -1, 0, 5, 600),
            *together(("spec.progressDeadlineSeconds", 5), ("spec.minReadySeconds", 5)),
            *at("spec.strategy", {"type": "Recreate"}, {"type": "Other"}, {"type": "Recreate", "rollingUpdate": {}}),
            *at("spec.strategy", {"type": "Other", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}}),
            *(m for value in _AMOUNTS for m in at("spec.strategy.rollingUpdate.maxUnavailable", value)),
            *(m for value in _AMOUNTS for m in at("spec.strategy.rollingUpdate.maxSurge", value)),
            *together(
                ("spec.strategy.rollingUpdate.maxUnavailable", 0), ("spec.strategy.rollingUpdate.maxSurge", "0%")
            ),
        ),
        every=4,
    ),
    _table("ReplicaSet", (*_REPLICAS, *at("spec.minReadySeconds", -1, 5)), every=9),
    _table(
        "StatefulSet",
        (
            *_REPLICAS,
            *_SECONDS,
            *at("spec.podManagementPolicy", "Parallel", "Other", ""),
            *at(
                "spec.updateStrategy",
                {"type": "OnDelete"},
                {"type": "Other"},
                {"type": "OnDelete", "rollingUpdate": {}},
            ),
            *at("spec.updateStrategy", {"type": "Other", "rollingUpdate": {"partition": 1}}),
            *at("spec.updateStrategy.rollingUpdate.partition", 0, -1, 5),
            *at("spec.persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Delete"}, {"whenScaled": "Never"}),
            *at("spec.serviceName", "", "Web", "a.b", REMOVED),
            *at("spec.ordinals", {"start": 1}, {"start": -1}),
            *at("spec.volumeClaimTemplates[0].spec.accessModes", [], ["Any"], ["ReadWriteOncePod", "ReadWriteOnce"]),
            *at("spec.volumeClaimTemplates[0].spec.resources", {}, {"requests": {"storage": "0"}}),
            *at("spec.volumeClaimTemplates[0].spec.storageClassName", "A b", ""),
            *at("spec.volumeClaimTemplates[0].spec.volumeMode", "Block", "Raw"),
            *at("spec.volumeClaimTemplates[0].metadata.name", "Data", "none", ""),
            *at("spec.volumeClaimTemplates[0].spec.dataSource", {"kind": "A", "name": ""}),
            *at("spec.template.spec.hostname", "A b"),
            *at("metadata.name", "a.b"),
        ),
        every=9,
        changes=(
            *at("spec.serviceName", "other"),
            *at("spec.podManagementPolicy", "Parallel"),
            *at("spec.volumeClaimTemplates[0].spec.resources", {"requests": {"storage": "2Gi"}}),
            *at("spec.volumeClaimTemplates", []),
            *at("spec.replicas", 3),
            *at("spec.minReadySeconds", 3),
            *at("spec.ordinals", {"start": 2}),
            *at("spec.revisionHistoryLimit", 3),
            *at("spec.updateStrategy", {"type": "OnDelete"}),
        ),
    ),
    _table(
        "DaemonSet",
        (
            *_SECONDS,
            *at(
                "spec.updateStrategy",
                {"type": "OnDelete"},
                {"type": "Other"},
                {"type": "OnDelete", "rollingUpdate": {}},
            ),
            *(m for value in _AMOUNTS for m in at("spec.updateStrategy.rollingUpdate.maxUnavailable", value)),
            *(m for value in _AMOUNTS for m in at("spec.updateStrategy.rollingUpdate.maxSurge", value)),
            *together(
                ("spec.updateStrategy.rollingUpdate.maxUnavailable", 0),
                ("spec.updateStrategy.rollingUpdate.maxSurge", "20%"),
            ),
        ),
        every=9,
    ),
)
