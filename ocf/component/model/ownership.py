"""Ownership of objects: owners, owner references, and fields that only the API server sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from ocf.concepts.recorder import Event
from ocf.errors import ConfigError, FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import field_manager
from ocf.objects.manifest import PREFIX, SERVER_METADATA, split_api_version
from ocf.objects.owner_references import controller_of
from ocf.objects.paths import get_field

__all__ = [
    "CREATOR",
    "DEFAULT_OPERATOR",
    "FIELDS",
    "SECOND",
    "Mark",
    "OtherUid",
    "Owner",
    "finalizers_of",
    "is_ending",
    "sendable",
    "status_of",
    "uid_of",
    "version_of",
]

# Length of a SHA-256 in hex.
_HASHED: Final = 64

DEFAULT_OPERATOR: Final = "ocf"
"""Name of the operator of a reconcile that names none."""

CREATOR: Final = "create"
"""Last part of the name of the field manager that creates objects which must not exist; its fields become ours."""

SECOND: Final = "left"
"""Last part of the name of a component's second field manager, which holds values that are handed over."""


FIELDS: Final = "fields"
"""Last part of the name of the writer of a component that sets single fields in objects of other writers.

It is not the component's own, so that no object counts as applied by the component, and may be deleted by it, because
of such fields.
"""


class Mark(StrEnum):
    """What becomes of an object without a reference to its owner when the owner is deleted; the value of a label."""

    OBJECT = "object"
    """It is deleted."""
    FIELDS = "fields"
    """The fields that the component has set in it are released."""


class OtherUid(NamedTuple):
    """The uid in the name of a field manager like ours, and whether it is a second field manager."""

    uid: str
    is_second: bool


@dataclass(frozen=True, slots=True)
class Owner:
    """The custom resource that components belong to.

    Args:
        owners: Group, kind and name of the objects that it refers to as its own owners.
        operator: Name of the operator that reconciles it. Several operators may reconcile one owner: the name is part
            of everything that shows which of them has written something.
        version: Its resource version, which is not part of its identity.
    """

    key: ObjectKey
    uid: str
    generation: int = 0
    owners: frozenset[tuple[str, str, str]] = frozenset()
    operator: str = DEFAULT_OPERATOR
    version: str = field(default="", compare=False)

    @classmethod
    def of(cls, manifest: Manifest, operator: str = DEFAULT_OPERATOR) -> Owner:
        """Read an owner from its live object; without a uid, it was not read from a cluster: a `ManifestError`."""
        key = ObjectKey.of(manifest)
        uid = get_field(manifest, ("metadata", "uid"))
        if not isinstance(uid, str) or not uid:
            problem = FieldProblem("metadata.uid", "required value: an owner must be read from the cluster")
            raise ManifestError(str(key), [problem])
        references = get_field(manifest, ("metadata", "ownerReferences"), [])
        owners = frozenset(
            (split_api_version(str(one.get("apiVersion")))[0], str(one.get("kind")), str(one.get("name")))
            for one in references
        )
        generation = int(get_field(manifest, ("metadata", "generation"), 0))
        version = str(get_field(manifest, ("metadata", "resourceVersion"), ""))
        return cls(key, uid, generation, owners, operator, version)

    def event(self, resource: ObjectKey, reason: str, note: str, *, action: str) -> Event:
        """Return an event of type Normal on this owner, about an object."""
        return Event(
            owner=self.key,
            owner_uid=self.uid,
            owner_version=self.version,
            resource=resource,
            reason=reason,
            action=action,
            note=note,
        )

    def named(self, key: ObjectKey) -> str:
        """Return how an event on this owner names an object: with its namespace if that is not the owner's.

        Example:
            >>> owner = Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "c0ffee")
            >>> owner.named(ObjectKey("v1", "Secret", "login", "shop"))
            "Secret 'login'"
            >>> owner.named(ObjectKey("v1", "Secret", "login", "west"))
            "Secret 'west/login'"
        """
        elsewhere = key.namespace not in {"", self.key.namespace}
        return f"{key.kind} '{f'{key.namespace}/' if elsewhere else ''}{key.name}'"

    def is_object(self, key: ObjectKey) -> bool:
        """Return whether a key is that of this owner, in any version of its API."""
        # Kind, name and namespace first: the group takes longer, and most objects have the name of their owner.
        return key[1:] == self.key[1:] and key.group == self.key.group

    @property
    def mark(self) -> str:
        """The label by which objects are found that cannot refer to this owner; other owners have other ones.

        Example:
            >>> Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "c0ffee", operator="shops").mark
            'shops.ocf.dev/for-c0ffee'
        """
        return f"{self.operator}.{PREFIX}/for-{self.uid}"

    def marked(self, manifest: Manifest, mark: Mark | None) -> Manifest:
        """Return the object with the label by which it is found; unchanged for None, and the owner itself."""
        if mark is None or self.is_object(ObjectKey.of(manifest)):
            return manifest
        labels = {**(manifest["metadata"].get("labels") or {}), self.mark: str(mark)}
        return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}

    def can_own(self, key: ObjectKey) -> bool:
        """Return whether an object can refer to this owner: one in a namespace owns no cluster-scoped object."""
        return not self.is_object(key) and (bool(key.namespace) or not self.key.namespace)

    def field_manager(self, component: str, *more: str) -> str:
        """Return the name of a field manager that applies objects for this owner."""
        return field_manager(self.operator, self.key.kind, component, self.uid, *more)

    def component_of(self, manager: str, components: Collection[str] = ()) -> tuple[str, bool] | None:
        """Return the component of this owner that a field manager belongs to, and whether it is its second manager.

        A name that is hashed is recognized only for the given components.

        Example:
            >>> owner = Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "c0ffee", operator="shops")
            >>> owner.component_of("shops/Shop/web/c0ffee"), owner.component_of("shops/Shop/web/c0ffee/left")
            (('web', False), ('web', True))
            >>> [owner.component_of(each) for each in ("shops/Shop/web/decaf", "malls/Shop/web/c0ffee", "kubectl")]
            [None, None, None]
        """
        start, end = f"{self.operator}/{self.key.kind}/", f"/{self.uid}"
        name = manager.removesuffix(f"/{SECOND}")
        if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end):
            return name[len(start) : -len(end)], name != manager
        if manager.startswith(f"{self.operator}/") and len(manager) == len(self.operator) + 1 + _HASHED:
            for component in components:
                for is_second in (False, True):
                    if manager == self.field_manager(component, *((SECOND,) if is_second else ())):
                        return component, is_second
        return None

    def other_uid_of(self, manager: str) -> OtherUid | None:
        """Return the other uid in the name of a field manager like ours: that of an earlier owner, or of another one.

        A name that is hashed is not recognized.

        Example:
            >>> owner = Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "c0ffee", operator="shops")
            >>> owner.other_uid_of("shops/Shop/web/decaf/left")
            OtherUid(uid='decaf', is_second=True)
            >>> [owner.other_uid_of(each) for each in ("shops/Shop/web/c0ffee", "malls/Shop/web/decaf", "kubectl")]
            [None, None, None]
        """
        name, start = manager.removesuffix(f"/{SECOND}"), f"{self.operator}/{self.key.kind}/"
        component, _, uid = name.removeprefix(start).rpartition("/")
        if not (name.startswith(start) and component and uid) or uid == self.uid:
            return None
        return OtherUid(uid, name != manager)

    def earlier_uids(self, live: Manifest) -> frozenset[str]:
        """Return the uids of earlier owners of this name that an object refers to.

        One owner of a name exists at a time, and an owner reference has no namespace but that of its object. So one to
        this name with another uid is to an owner that is gone.
        """
        references = get_field(live, ("metadata", "ownerReferences")) or []
        if self.key.namespace and self.key.namespace != live["metadata"].get("namespace"):
            return frozenset()
        mine = (self.key.group, self.key.kind, self.key.name)
        return frozenset(
            str(one.get("uid"))
            for one in references
            if (split_api_version(str(one.get("apiVersion")))[0], one.get("kind"), one.get("name")) == mine
            and one.get("uid") != self.uid
        )

    def other_operator_of(self, manager: str) -> str:
        """Return the name of another operator whose field manager applies objects for this owner; empty for any other.

        Example:
            >>> owner = Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "c0ffee", operator="shops")
            >>> owner.other_operator_of("malls/Shop/web/c0ffee"), owner.other_operator_of("shops/Shop/web/c0ffee")
            ('malls', '')
        """
        operator, _, rest = manager.removesuffix(f"/{SECOND}").partition("/")
        if operator == self.operator or not rest:
            return ""
        is_hashed = len(rest) == _HASHED and "/" not in rest
        return operator if is_hashed or (rest.startswith(f"{self.key.kind}/") and rest.endswith(f"/{self.uid}")) else ""

    def owned(self, manifest: Manifest) -> Manifest:
        """Return the object with a controller reference to this owner.

        A cluster-scoped object cannot refer to a namespaced owner; it is returned unchanged. The owner itself gets no
        reference to itself: a foreground deletion would wait for it for ever.
        """
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        key = ObjectKey.of(manifest)
        if self.is_object(key):
            return self.disowned(manifest)
        if not self.can_own(key):
            return manifest
        if self.owners and (key.group, key.kind, key.name) in self.owners and namespace in {"", self.key.namespace}:
            raise ConfigError(
                f"{key} owns {self.key}: with a reference back, the garbage collector would delete both when one is "
                "deleted; register it with unowned=True"
            )
        # The garbage collector looks for an owner in the namespace of the object, and deletes the object without one.
        if self.key.namespace and namespace != self.key.namespace:
            raise ConfigError(f'{self.key} cannot own an object in another namespace, "{namespace}"')
        others = [reference for reference in metadata.get("ownerReferences", []) if reference.get("uid") != self.uid]
        controller = controller_of({"metadata": {"ownerReferences": others}}) if others else None
        if controller is not None:
            raise ConfigError(f"the object names another controller, {controller}")
        return {**manifest, "metadata": {**metadata, "ownerReferences": [*others, self._reference()]}}

    def disowned(self, manifest: Manifest) -> Manifest:
        """Return the object without a reference to this owner; other references stay."""
        references = get_field(manifest, ("metadata", "ownerReferences"), [])
        others = [reference for reference in references if reference.get("uid") != self.uid]
        if len(others) == len(references):
            return manifest
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
        return {**manifest, "metadata": metadata | ({"ownerReferences": others} if others else {})}

    def references(self, live: Manifest) -> bool:
        """Return whether an object refers to this owner."""
        references = get_field(live, ("metadata", "ownerReferences"), [])
        return any(reference.get("uid") == self.uid for reference in references)

    def foreign_controller(self, live: Manifest, known: Collection[str] = ()) -> str:
        """Return kind and name of another controller of an object, `Mall demo`; empty if there is none.

        If both are those of this owner, such as of a former owner of the name, group, version and uid are added.

        Args:
            known: Uids of controllers that do not count.
        """
        controller = controller_of(live)
        if controller is None or controller.uid == self.uid or controller.uid in known:
            return ""
        if (controller.kind, controller.name) != (self.key.kind, self.key.name):
            return str(controller)
        return f"{controller.api_version} {controller} with the uid {controller.uid}"

    def _reference(self) -> Manifest:
        return {
            "apiVersion": self.key.api_version,
            "kind": self.key.kind,
            "name": self.key.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def status_of(live: Manifest) -> Manifest:
    """Return the status of an object; an empty one if there is none, or if it is stored as something else."""
    found = live.get("status")
    return found if isinstance(found, dict) else {}


def is_ending(owner: Manifest) -> bool:
    """Return whether an owner is being deleted."""
    return get_field(owner, ("metadata", "deletionTimestamp")) is not None


def uid_of(live: Manifest) -> str:
    """Return the uid of an object; empty if it has none."""
    return str(live["metadata"].get("uid", ""))


def version_of(live: Manifest) -> str:
    """Return the resource version of an object; empty if it has none."""
    return str(live["metadata"].get("resourceVersion", ""))


def finalizers_of(owner: Manifest) -> list[str]:
    """Return the finalizers of an owner; empty if it has none."""
    return get_field(owner, ("metadata", "finalizers")) or []


def sendable(manifest: Manifest) -> Manifest:
    """Return the object without the fields that only the API server sets: its status and parts of its metadata."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in SERVER_METADATA}
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}
