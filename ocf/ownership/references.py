"""What the spec of an object names: what pods use, targets of autoscalers, backends, selected workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.ownership import values
from ocf.ownership.snapshot import SnapshotIndex
from ocf.ownership.tree import Link

__all__ = ["PodReference", "backends", "links", "pod_references"]

_SELECTS: Final = {("", "Service"): ("selector",), ("policy", "PodDisruptionBudget"): ("selector", "matchLabels")}
_SOURCES: Final = (
    ("secretRef", "Secret"),
    ("configMapRef", "ConfigMap"),
    ("secretKeyRef", "Secret"),
    ("configMapKeyRef", "ConfigMap"),
)


class PodReference(NamedTuple):
    """An object that a pod names, in its namespace."""

    kind: str
    name: str
    is_optional: bool


def pod_references(spec: Manifest) -> Iterator[PodReference]:
    """Yield the Secrets, ConfigMaps and claims that the spec of a pod names."""
    for volume in values.members(spec, "volumes"):
        for part, key, kind in (("secret", "secretName", "Secret"), ("configMap", "name", "ConfigMap")):
            source = values.mapping(volume, part)
            yield PodReference(kind, values.text(source, key), source.get("optional") is True)
        yield PodReference(
            "PersistentVolumeClaim", values.text(volume, "persistentVolumeClaim", "claimName"), is_optional=False
        )
    for container in (*values.members(spec, "initContainers"), *values.members(spec, "containers")):
        sources = [*values.members(container, "envFrom")]
        sources += [values.mapping(one, "valueFrom") for one in values.members(container, "env")]
        for source in sources:
            for part, kind in _SOURCES:
                is_optional = values.field(source, part, "optional") is True
                yield PodReference(kind, values.text(source, part, "name"), is_optional)


def backends(ingress: Manifest) -> Iterator[str]:
    """Yield the names of the Services of an Ingress."""
    yield from filter(None, [values.text(ingress, "spec", "defaultBackend", "service", "name")])
    for rule in values.members(ingress, "spec", "rules"):
        for path in values.members(rule, "http", "paths"):
            yield from filter(None, [values.text(path, "backend", "service", "name")])


def links(live: Manifest, index: SnapshotIndex, workloads: Sequence[Manifest]) -> list[Link]:
    """Return the objects of a snapshot that the spec of an object names, each once.

    Args:
        workloads: The objects with pod templates that selectors may select.
    """
    found = [(verb, one) for verb, one in _named(live, index) if one is not None]
    found += [("selects", one) for one in _selected(live, workloads)]
    return list(dict.fromkeys(Link(verb, ObjectKey.of(one)) for verb, one in found))


def _named(live: Manifest, index: SnapshotIndex) -> Iterator[tuple[str, Manifest | None]]:
    namespace, place = values.text(live, "metadata", "namespace"), values.group_kind(live)
    spec = values.mapping(live, "spec")
    for of_pod in (spec if place == ("", "Pod") else {}, values.mapping(spec, "template", "spec")):
        for kind, name, _ in pod_references(of_pod):
            yield "uses", index.find("", kind, namespace, name)
    for verb, part in (("scales", "scaleTargetRef"), ("targets", "targetRef")):
        target = values.mapping(spec, part)
        group = split_api_version(values.text(target, "apiVersion"))[0] or values.text(target, "group")
        yield verb, index.find(group, values.text(target, "kind"), namespace, values.text(target, "name"))
    for name in backends(live) if place == ("networking.k8s.io", "Ingress") else ():
        yield "routes to", index.find("", "Service", namespace, name)
    for rule in values.members(spec, "rules") if place[0] == "gateway.networking.k8s.io" else ():
        for backend in values.members(rule, "backendRefs"):
            yield "routes to", index.find("", "Service", namespace, values.text(backend, "name"))


def _selected(live: Manifest, workloads: Sequence[Manifest]) -> Iterator[Manifest]:
    path, namespace = _SELECTS.get(values.group_kind(live)), values.text(live, "metadata", "namespace")
    selector = values.mapping(live, "spec", *path) if path is not None else {}
    for workload in workloads if selector else ():
        labels = values.mapping(workload, "spec", "template", "metadata", "labels")
        if namespace == values.text(workload, "metadata", "namespace") and selector.items() <= labels.items():
            yield workload
