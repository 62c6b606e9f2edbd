"""Workloads whose pods are replaced when the content of their Secrets and ConfigMaps changes.

With the default domain these annotations of a Deployment, StatefulSet or DaemonSet are read:

* `rolls.example.com/auto`: `true` follows all that its containers and volumes refer to
* `rolls.example.com/secrets`, `rolls.example.com/configmaps`: the names of more to follow: `login, token`

A Secret or ConfigMap with the annotation `rolls.example.com/ignore: "true"` is not followed by any.

One annotation of the pod template, `rolls.example.com/content`, has a digest of each content that the pods were
started for. What decides is the difference between that and the content now, so a change is found whenever it happened.
The first value of a workload starts its pods anew, and so does the end of the annotation.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf import component
from ocf.component import Component, ReconcileContext, Writes
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import unstructured
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["Reloader", "references"]

Source = tuple[str, str]
"""Kind and name of a Secret or ConfigMap in the namespace of its workload."""

_FIELDS: Final = {"Secret": ("data", "type"), "ConfigMap": ("data", "binaryData")}
_DIGITS: Final = 16


@dataclass(frozen=True, kw_only=True)
class Reloader:
    """An operator of one kind, such as `Deployment`; two with the same workloads have different names.

    Args:
        name: The name of the operator.
        domain: That of the annotations.
    """

    name: str
    kind: str
    domain: str = "rolls.example.com"

    @property
    def operator(self) -> Operator[Manifest]:
        """What `main` runs."""
        return Operator(
            name=self.name,
            owner=OwnerType("apps/v1", self.kind),
            components=self.components,
            select=self.selects,
            failure_condition=None,
            reads=[("v1", kind) for kind in _FIELDS],
        )

    def selects(self, workload: Manifest) -> bool:
        """Return whether a workload follows something, or has the annotation in its template from when it did."""
        return self._follows(workload) or self._recorded(workload) is not None

    async def components(self, workload: Manifest, context: ReconcileContext) -> Component:
        """Return the annotation of the pod template; as it is for a workload that is paused."""
        recorded = self._recorded(workload)
        paused = workload["spec"].get("paused")
        return self.component(workload, recorded if paused else await self._content(workload, recorded, context))

    def component(self, workload: Manifest, content: str | None) -> Component:
        """Return the component of a workload; None for one that follows nothing, or nothing any more."""
        metadata = {"name": workload["metadata"]["name"], "namespace": workload["metadata"]["namespace"]}
        fields: Manifest = {"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata}
        if content is not None:
            fields["spec"] = {"template": {"metadata": {"annotations": {self._annotation("content"): content}}}}
        template = unstructured.StaticBuilder(fields)
        builder = component.Builder("template").unpublished()
        return builder.with_resource(template, writes=Writes.UPDATE_ONLY, delete_when=content is None).build()

    async def _content(self, workload: Manifest, recorded: str | None, context: ReconcileContext) -> str | None:
        """Return what the pods of a workload are started for: as recorded, unless something that exists differs."""
        if not self._follows(workload):
            return None
        before = {source: digest for source, _, digest in (one.partition("=") for one in (recorded or "").split(","))}
        now: dict[str, str] = {}
        for kind, name in sorted(self._sources(workload)):
            digest = await self._digest(ObjectKey("v1", kind, name, workload["metadata"]["namespace"]), context)
            # One that is gone, for a moment or for good, does not replace pods that have its content.
            digest = digest or before.get(f"{kind}/{name}", "")
            now |= {f"{kind}/{name}": digest} if digest else {}
        if now.items() <= before.items():
            return recorded
        return ",".join(f"{source}={digest}" for source, digest in now.items())

    async def _digest(self, key: ObjectKey, context: ReconcileContext) -> str:
        """Return the digest of the content of an object; empty if there is none, or it is not to be followed."""
        try:
            live = await context.cluster.get(key)
        except NotFoundError:
            return ""
        if self._asked(live, "ignore") == "true":
            return ""
        content = {name: live[name] for name in _FIELDS[key.kind] if live.get(name)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_DIGITS]

    def _follows(self, workload: Manifest) -> bool:
        return self._asked(workload, "auto") == "true" or bool(set(self._named(workload)))

    def _sources(self, workload: Manifest) -> set[Source]:
        used = references(workload["spec"]["template"]) if self._asked(workload, "auto") == "true" else ()
        return {*used, *self._named(workload)}

    def _named(self, workload: Manifest) -> Iterator[Source]:
        for kind in _FIELDS:
            names = self._asked(workload, f"{kind.lower()}s").split(",")
            yield from ((kind, name.strip()) for name in names if name.strip())

    def _recorded(self, workload: Manifest) -> str | None:
        annotations = workload["spec"]["template"].get("metadata", {}).get("annotations") or {}
        found: str | None = annotations.get(self._annotation("content"))
        return found

    def _asked(self, live: Manifest, name: str) -> str:
        return str((live["metadata"].get("annotations") or {}).get(self._annotation(name), "")).strip()

    def _annotation(self, name: str) -> str:
        return f"{self.domain}/{name}"


def references(template: Manifest) -> set[Source]:
    """Return what the containers and volumes of a pod template refer to.

    Example:
        >>> container = {"name": "web", "envFrom": [{"secretRef": {"name": "login"}}]}
        >>> references({"spec": {"containers": [container], "volumes": [{"name": "a", "configMap": {"name": "b"}}]}})
        {('ConfigMap', 'b'), ('Secret', 'login')}
    """
    spec = template.get("spec") or {}
    containers = [one for name in ("initContainers", "containers") for one in spec.get(name) or ()]
    volumes: list[Mapping[str, Any]] = list(spec.get("volumes") or ())
    projected = [source for one in volumes for source in (one.get("projected") or {}).get("sources") or ()]
    found: list[tuple[str, Any]] = []
    for one in containers:
        values = [entry.get("valueFrom") or {} for entry in one.get("env") or ()]
        found += _parts(values, "secretKeyRef", "configMapKeyRef")
        found += _parts(one.get("envFrom") or (), "secretRef", "configMapRef")
    found += _parts([*volumes, *projected], "secret", "configMap")
    return {(kind, name) for kind, part in found if (name := part.get("name") or part.get("secretName"))}


def _parts(places: Iterable[Mapping[str, Any]], secret: str, config_map: str) -> list[tuple[str, Any]]:
    fields = (("Secret", secret), ("ConfigMap", config_map))
    return [(kind, place[field]) for place in places for kind, field in fields if place.get(field)]
