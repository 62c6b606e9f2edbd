"""Copies of Secrets and ConfigMaps in other namespaces, as their annotations say.

With the default domain these annotations of an object are read:

* `copies.example.com/to`: the namespaces that get a copy, as names or patterns: `prod, team-*`
* `copies.example.com/to-matching`: the same by a label selector of namespaces: `tier=web`
* `copies.example.com/strip-labels`: `true` copies no labels
* `copies.example.com/from`: the object whose content is taken into this one: `vault/login`
* `copies.example.com/allow`: the namespaces whose objects may take the content of this one, as names or patterns
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import Adoption, Component, ReconcileContext, Writes
from ocf.concepts import GuardStatus, StatusReport
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, secret
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["Replicator"]

_BUILDERS: Final[dict[str, Any]] = {"Secret": secret.Builder, "ConfigMap": configmap.Builder}
# All that may block a component is watched.
_RARELY: Final = timedelta(hours=1)
_COPY: Final[dict[str, Any]] = {
    "unowned": True,
    "delete_with_owner": True,
    "adopt": Adoption.NEVER,
    "independent": True,
    "recreate_on_immutable_change": True,
}


@dataclass(frozen=True, kw_only=True)
class Replicator:
    """An operator of one kind, `Secret` or `ConfigMap`; two with the same owners have different names.

    Args:
        name: The name of the operator.
        domain: That of the annotations.
    """

    name: str
    kind: str
    domain: str = "copies.example.com"

    @property
    def operator(self) -> Operator[Manifest]:
        """What `main` runs."""
        return Operator(
            name=self.name,
            owner=OwnerType("v1", self.kind),
            components=self.components,
            select=self.selects,
            failure_condition=None,
            # A copy that is made is no event of its source, of which there may be hundreds; what blocks one is.
            event_formatter=lambda event: event if event.resource == event.owner or event.type == "Warning" else None,
            reads=[("v1", "Namespace")],
        )

    def selects(self, live: Manifest) -> bool:
        """Return whether an object has or takes copies, or did so until its annotations were taken off."""
        asked = ("to", "to-matching", "from", "taken")
        held = live["metadata"].get("finalizers") or []
        return any(self._asked(live, name) for name in asked) or f"{self.name}.ocf.dev/cleanup" in held

    async def components(self, source: Manifest, context: ReconcileContext) -> Component:
        """Return the copies of an object, and what it takes itself."""
        content, problem = _content_of(source), ""
        if self._asked(source, "from"):
            content, problem = await self._taken(source, context)
        return self.component(source, await self._targets(source, context), content, problem=problem)

    def component(self, source: Manifest, targets: Sequence[str], content: Manifest, *, problem: str = "") -> Component:
        """Return the component of an object.

        Args:
            source: The object.
            targets: The namespaces that get a copy.
            content: The content of the copies, and of the object if it takes that from another one.
            problem: Why it takes none; empty if it does, or is not to.
        """
        kinds = [("v1", self.kind)]
        builder = component.Builder("copies").unpublished().with_prune(kinds=kinds, while_blocked=True)
        builder.with_poll_interval(_RARELY)
        if problem:
            builder.with_resource(self._missing(source, problem), read_only=True, independent=True)
        elif self._asked(source, "from"):
            builder.with_resource(self._taking(source, content), writes=Writes.UPDATE_ONLY, independent=True)
        for namespace in targets:
            builder.with_resource(self._copy(source, content, namespace), **_COPY)
        return builder.build()

    def _asked(self, live: Manifest, name: str) -> str:
        return str((live["metadata"].get("annotations") or {}).get(f"{self.domain}/{name}", "")).strip()

    # Copies that are made elsewhere.

    async def _targets(self, source: Manifest, context: ReconcileContext) -> list[str]:
        """Return the namespaces that get a copy: not that of the source, and none that ends."""
        patterns, selector = self._asked(source, "to"), self._asked(source, "to-matching")
        found: dict[str, Manifest] = {}
        if patterns:
            every = (await context.cluster.list("v1", "Namespace")).items
            found |= {_name(one): one for one in every if _matches(_name(one), patterns)}
        if selector:
            chosen = await context.cluster.list("v1", "Namespace", ListOptions(label_selector=selector))
            found |= {_name(one): one for one in chosen.items}
        found.pop(source["metadata"]["namespace"], None)
        return sorted(name for name, live in found.items() if "deletionTimestamp" not in live["metadata"])

    def _copy(self, source: Manifest, content: Manifest, namespace: str) -> Any:
        annotations = {f"{self.domain}/copied-from": _place(source)}
        metadata: Manifest = {"name": _name(source), "namespace": namespace, "annotations": annotations}
        if self._asked(source, "strip-labels") != "true":
            labels = source["metadata"].get("labels") or {}
            metadata["labels"] = {name: labels[name] for name in labels if ".ocf.dev/" not in name}
        fixed: Manifest = {name: source[name] for name in ("type", "immutable") if name in source}
        return _BUILDERS[self.kind]({"metadata": metadata, **fixed, **content})

    # Content that an object takes from another one.

    async def _taken(self, target: Manifest, context: ReconcileContext) -> tuple[Manifest, str]:
        """Return the content that an object takes, and why it takes none."""
        place = self._asked(target, "from")
        namespace, _, name = place.partition("/")
        if not (namespace and name) or "/" in name:
            raise ConfigError(f'the annotation {self.domain}/from is "{place}", and has to be namespace/name')
        try:
            source = await context.cluster.get(ObjectKey("v1", self.kind, name, namespace))
        except NotFoundError:
            return {}, f"{place} does not exist"
        if self._asked(source, "from"):
            return {}, f"{place} takes its own content from another object: name that one"
        if not _matches(target["metadata"]["namespace"], self._asked(source, "allow")):
            return {}, f"{place} does not allow it: its annotation {self.domain}/allow has to name this namespace"
        return _content_of(source), ""

    def _taking(self, target: Manifest, content: Manifest) -> Any:
        """Return the fields of an object that takes content."""
        annotations = {f"{self.domain}/taken": self._asked(target, "from")}
        metadata: Manifest = {"name": _name(target), "namespace": target["metadata"]["namespace"]}
        metadata["annotations"] = annotations
        return _BUILDERS[self.kind]({"metadata": metadata, **content})

    def _missing(self, target: Manifest, problem: str) -> Any:
        """Return a resource that only shows why an object takes nothing."""
        namespace, _, name = self._asked(target, "from").partition("/")
        blocked = StatusReport(GuardStatus.BLOCKED, problem)
        return _BUILDERS[self.kind]({"metadata": {"name": name, "namespace": namespace}}).with_guard(lambda _: blocked)


def _name(live: Manifest) -> str:
    return str(live["metadata"]["name"])


def _place(live: Manifest) -> str:
    return f"{live['metadata']['namespace']}/{_name(live)}"


def _content_of(live: Manifest) -> Manifest:
    return {name: live[name] for name in ("data", "binaryData") if live.get(name)}


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern.strip()) for pattern in patterns.split(","))
