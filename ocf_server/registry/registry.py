"""Shared state of an embedded server: served kinds, stored objects, clock, and the source of uids and names."""

import copy
import random
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from ocf.errors import NotFoundError, StatusCause
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.manifest import split_api_version
from ocf.objects.timestamps import format_time
from ocf.schema.builtin import ApiResource, StructType, builtin_resource, builtin_versions
from ocf.schema.releases import CURRENT, Release
from ocf_server.api.numbers import decoded_numbers
from ocf_server.api.status_errors import bad_request, forbidden, no_kind_match, no_such_resource, not_found
from ocf_server.apiextensions import Established, decoded_metadata, prune
from ocf_server.apiextensions.defaulting import set_schema_defaults
from ocf_server.codec.decoding import decode
from ocf_server.managedfields.field_manager import ConversionError
from ocf_server.managedfields.typed import type_problems
from ocf_server.registry.conversion import convert
from ocf_server.registry.conversion_review import ConversionCache, ConversionNeeded
from ocf_server.registry.pending_write import Phase
from ocf_server.registry.rbac import Rbac
from ocf_server.registry.storage import Kind, Place, Storage
from ocf_server.validation.reviews import review_resource

__all__ = ["DEFINITION", "Registry", "decoded", "kind_of", "place_of", "without_managed_fields"]

Served: TypeAlias = tuple[str, str, str]
"""Group, version and kind."""

DEFINITION: Final[Kind] = ("apiextensions.k8s.io", "CustomResourceDefinition")
"""Key of CustomResourceDefinitions in the store."""

# As in `apimachinery/pkg/util/rand`: no vowels and no digits that look like letters, so that no words appear.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
# A label of 63 characters without the suffix of 5 (SimpleNameGenerator).
_LONGEST_PREFIX: Final = 58

_ADMISSION: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final[tuple[Kind, Kind]] = (
    (_ADMISSION, "MutatingWebhookConfiguration"),
    (_ADMISSION, "ValidatingWebhookConfiguration"),
)
_POLICY_BINDINGS: Final[Mapping[Phase, Kind]] = {
    Phase.MUTATING: (_ADMISSION, "MutatingAdmissionPolicyBinding"),
    Phase.VALIDATING: (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
}

_MAX_BATCH: Final = 500
"""Maximum number of objects in one request to a conversion webhook."""
_HEAD: Final = {"apiVersion", "kind"}
"""Fields of an empty object, which is converted without a webhook."""


def kind_of(resource: ApiResource) -> Kind:
    """Return the key of a kind in the store."""
    home = resource.home
    return (resource.group, resource.kind) if home is None else (home[0], home[2])


def place_of(manifest: Manifest) -> Place:
    """Return the namespace and name under which an object is stored."""
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def without_managed_fields(manifest: Manifest) -> Manifest:
    """Return an object without its managed fields; everything else is shared."""
    metadata = {key: value for key, value in manifest.get("metadata", {}).items() if key != "managedFields"}
    return {**manifest, "metadata": metadata}


@dataclass(slots=True)
class Registry:
    """The state of an embedded server.

    Args:
        custom: Custom kinds without a CustomResourceDefinition in the store, by group, version and kind.
        now: The clock; returns an aware instant in UTC.
        rbac: Authorizes requests; None if everybody may do everything.
        release: The release that it serves.
    """

    store: Storage
    custom: dict[Served, ApiResource]
    now: Callable[[], datetime]
    random: random.Random
    rbac: Rbac | None = None
    release: Release = CURRENT
    _empty: dict[Served, Manifest] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[str, str], ApiResource] = field(default_factory=dict, init=False, repr=False)
    _defined: dict[Served, ApiResource] = field(default_factory=dict, init=False, repr=False)
    _former: dict[Served, ApiResource] = field(default_factory=dict, init=False, repr=False)
    _established: dict[Place, Established] = field(default_factory=dict, init=False, repr=False)
    conversions: ConversionCache = field(default_factory=ConversionCache, init=False, repr=False)
    _varied: set[Kind] = field(default_factory=set, init=False, repr=False)
    _converters: dict[Kind, Mapping[str, Any]] = field(default_factory=dict, init=False, repr=False)
    _by_kind: dict[Kind, Established] = field(default_factory=dict, init=False, repr=False)
    _defined_at: int = field(default=0, init=False, repr=False)
    _token_key: bytes = field(default=b"", init=False, repr=False)

    def clone(self) -> "Registry":
        """Return an independent registry in the present state, with the same clock."""
        clone = copy.copy(self)
        # What follows from the definitions is shared: a change of a definition replaces it.
        clone.store, clone.conversions = self.store.clone(), self.conversions.clone()
        clone.rbac = self.rbac and Rbac(clone.store)
        # A copy, so that both continue with the same uids and names.
        clone.random = copy.copy(self.random)
        return clone

    def resource(self, api_version: str, kind: str) -> ApiResource:
        """Return a served kind.

        Raises:
            NotFoundError: If the version of the kind is not served.
        """
        found = self.stored_as(api_version, kind)
        # A version that is stored but not served has no verbs.
        if found.custom and not found.verbs:
            raise no_kind_match()
        return found

    def stored_as(self, api_version: str, kind: str) -> ApiResource:
        """Return a kind in a version in which objects may be stored, even if that version is no longer served.

        Raises:
            NotFoundError: If the version does not exist.
        """
        self._define()
        known = self._known.get((api_version, kind))
        if known is None:
            known = self._known[api_version, kind] = self._look_up(api_version, kind)
        return known

    def _look_up(self, api_version: str, kind: str) -> ApiResource:
        key = (*split_api_version(api_version), kind)
        resource = self._defined.get(key) or self.custom.get(key)
        resource = resource or builtin_resource(*key, self.release) or review_resource(*key)
        if resource is None:
            raise no_kind_match()
        return resource

    def _define(self) -> None:
        """Update the custom kinds if CustomResourceDefinitions have changed."""
        if (now := self.store.changed_at(DEFINITION)) == self._defined_at:
            return
        places = self.store.changed_places(DEFINITION, self._defined_at, self._established)
        self._defined_at = now
        self._known, self._empty = {}, {}
        # Copies and encodings were made by the schemas of before, and a new webhook or schema may convert otherwise.
        self.store.unpack()
        self.conversions.clear()
        # Watches report the deletion of objects after that of their kind.
        self._former = {**self._former, **self._defined}
        # Copies, since a clone shares what there was before.
        former, self._established = self._established, dict(self._established)
        self._defined, self._converters = dict(self._defined), dict(self._converters)
        self._by_kind, self._varied = dict(self._by_kind), set(self._varied)
        for place in places:
            self._forget(self._established.pop(place, None))
        for place in places:
            definition = self.store.get(DEFINITION, place)
            if definition is not None:
                self._establish(place, definition, former.get(place))

    def _forget(self, found: Established | None) -> None:
        # Another definition may have the same kind, as long as its names are not accepted.
        if found is not None and self._by_kind.get(found.kind) is found:
            del self._by_kind[found.kind]
            self._converters.pop(found.kind, None)
            self._varied.discard(found.kind)
            for resource in found.resources:
                del self._defined[resource.group, resource.version, resource.kind]

    def _establish(self, place: Place, definition: Manifest, before: Established | None) -> None:
        found = self._established[place] = Established.of(definition, before)
        if found.resources:
            self._by_kind[found.kind] = found
            self._defined |= {(each.group, each.version, each.kind): each for each in found.resources}
            conversion = definition["spec"]["conversion"]
            if conversion["strategy"] == "Webhook":
                self._converters[found.kind] = conversion["webhook"]
            first, *others = (each.schema for each in found.resources)
            if found.kind in self._converters or any(schema != first for schema in others):
                self._varied.add(found.kind)

    def stored_since(self, kind: Kind) -> int:
        """Return the version since which the storage of a custom kind is set up; 0 for a kind without a definition."""
        self._define()
        found = self._by_kind.get(kind)
        return 0 if found is None else found.since

    def custom_kinds(self) -> list[ApiResource]:
        """Return the served custom kinds, one entry for each version."""
        self._define()
        found = dict(self.custom)
        for _, each in sorted(self._established.items()):
            found |= {(resource.group, resource.version, resource.kind): resource for resource in each.resources}
        return [resource for resource in found.values() if resource.verbs]

    def has_admission(self) -> bool:
        """Return whether writes need admission: the store contains webhook configurations or bound policies."""
        return any(map(self.store.has, (*_CONFIGURATIONS, *_POLICY_BINDINGS.values())))

    def has_policies(self, phase: Phase) -> bool:
        """Return whether the store has bindings of the policies of a phase; a policy without them has no effect."""
        return self.store.has(_POLICY_BINDINGS[phase])

    def timestamp(self) -> str:
        """Return the current time in the format of object timestamps."""
        return format_time(self.now())

    def new_uid(self) -> str:
        """Return a new random uid."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def generate_name(self, prefix: str) -> str:
        """Return a prefix with a random suffix; a prefix that is too long is truncated."""
        return prefix[:_LONGEST_PREFIX] + "".join(self.random.choices(_SUFFIX_LETTERS, k=5))

    def token_key(self) -> bytes:
        """Return the key that signs tokens of service accounts."""
        self._token_key = self._token_key or secrets.token_bytes(32)
        return self._token_key

    def empty(self, resource: ApiResource) -> Manifest:
        """Return the empty object of a kind; it must not be changed."""
        key = (resource.group, resource.version, resource.kind)
        if key not in self._empty:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            self._empty[key] = head if resource.custom else decode(head, resource.type)
        return self._empty[key]

    def read(self, resource: ApiResource, place: Place) -> Manifest | None:
        """Return an object in the version of a resource, or None if it does not exist; it must not be changed."""
        found = self.store.get(kind_of(resource), place)
        return None if found is None else self.shown(found, resource)

    def shown(self, stored: Manifest, resource: ApiResource) -> Manifest:
        """Return a stored object in the version of a resource; it must not be changed."""
        if stored["apiVersion"] == resource.api_version:
            return self._coerced(stored, resource)
        try:
            source = self.stored_as(stored["apiVersion"], stored["kind"])
        except NotFoundError:
            former = self._former.get((*split_api_version(stored["apiVersion"]), stored["kind"]))
            if former is None:
                raise
            source = former
        return self.convert(self._coerced(stored, source), source, resource)

    def convert(self, manifest: Manifest, source: ApiResource, target: ApiResource) -> Manifest:
        """Return an object in another version, as `ocf_server.registry.conversion.convert` does.

        Raises:
            ConversionNeeded: If only a webhook can convert it, and the object is not in the cache.
        """
        if not self.has_converter(target) or source.api_version == target.api_version:
            return convert(manifest, source, target)
        found = self._converted_by_webhook(manifest, target)
        return found if target.schema is None else prune(found, target.schema)

    def has_converter(self, resource: ApiResource) -> bool:
        """Return whether a webhook converts the objects of a kind."""
        return resource.custom and (resource.group, resource.kind) in self._converters

    def has_converters(self) -> bool:
        """Return whether webhooks convert the objects of any kind."""
        self._define()
        return bool(self._converters)

    def require_converted(self, resource: ApiResource, stored: Iterable[Manifest]) -> None:
        """Check that objects of the store can be shown in the version of a resource without a call of a webhook.

        Raises:
            ConversionNeeded: If they cannot; it has some of the objects that have to be converted.
        """
        if not self.has_converter(resource):
            return
        missing: dict[str, list[Manifest]] = {}
        for manifest in stored:
            version = manifest["apiVersion"]
            source = self.stored_as(version, resource.kind)
            coerced = self._coerced(manifest, source)
            if version != resource.api_version and self.conversions.find(coerced, resource.api_version) is None:
                missing.setdefault(version, []).append(coerced)
        for found in missing.values():
            raise ConversionNeeded(found[:_MAX_BATCH], resource, self._converters[resource.group, resource.kind])

    def _converted_by_webhook(self, manifest: Manifest, target: ApiResource) -> Manifest:
        found = self.conversions.find(manifest, target.api_version)
        if found is None:
            raise ConversionNeeded((manifest,), target, self._converters[target.group, target.kind])
        return found

    def _coerced(self, stored: Manifest, resource: ApiResource) -> Manifest:
        """Prune and default a custom resource by the schema of the version in which it is stored.

        It was validated by another schema if its definition has changed since, or if it was written in another version.
        """
        schema = resource.schema
        if schema is None:
            return stored
        # What was written since the last change of a definition has been pruned and defaulted by the present schema.
        is_new = int(stored["metadata"]["resourceVersion"]) > self._defined_at
        if is_new and self.stores_as_sent(resource):
            return stored
        shown: Manifest = set_schema_defaults(prune(stored, schema), schema)
        return shown

    def write(self, resource: ApiResource, place: Place, manifest: Manifest) -> Manifest:
        """Store an object in the storage version of its kind; return it in that version.

        Args:
            resource: The kind, in the version of the object.
            manifest: The object; it belongs to the store afterwards.

        Returns:
            The object as stored; it must not be changed.

        Raises:
            ConversionNeeded: If only a webhook can convert the object; nothing is stored then.
        """
        if resource.home is None:
            return self.store.put((resource.group, resource.kind), place, manifest)
        # Copied, because a conversion may share parts with the object that goes back to the client.
        stored = copy_json(self.encoded(resource, manifest))
        return self.store.put(kind_of(resource), place, stored)

    def encoded(self, resource: ApiResource, manifest: Manifest) -> Manifest:
        """Return an object in the storage version of its kind; it may share parts with the given one."""
        return self.convert(manifest, resource, self._home(resource))

    def stored(self, resource: ApiResource, place: Place) -> Manifest:
        """Return an existing object as it is stored; it must not be changed.

        Raises:
            KeyError: If it does not exist.
        """
        found = self.store.get(kind_of(resource), place)
        if found is None:
            raise KeyError(place)
        return found

    def stores_as_sent(self, resource: ApiResource) -> bool:
        """Return whether the store contains objects as requests write them: no version has another schema."""
        return (resource.group, resource.kind) not in self._varied

    def round_trip(self, manifest: Manifest, resource: ApiResource) -> Manifest:
        """Return an object after a conversion to the storage version of its kind and back."""
        home = self._home(resource)
        back: Manifest = copy_json(convert(convert(manifest, resource, home, new=True), home, resource))
        return back

    def _home(self, resource: ApiResource) -> ApiResource:
        """Return a kind in its storage version."""
        if resource.home is None:
            return resource
        group, version, kind = resource.home
        return self.stored_as(f"{group}/{version}" if group else version, kind)

    def versions(self, resource: ApiResource) -> list[ApiResource]:
        """Return a kind in all served versions."""
        self._define()
        home = kind_of(resource)
        defined = self._by_kind.get(home)
        others = self.custom.values() if defined is None else defined.resources
        found = [other for other in others if kind_of(other) == home and other.verbs]
        return found or [other for other in builtin_versions(resource) if kind_of(other) == home]

    def in_version(self, resource: ApiResource) -> Callable[[Manifest, str], tuple[Manifest, StructType] | None]:
        """Return a function that converts objects of a kind to other versions, for the comparison of owned fields."""

        def shown(manifest: Manifest, api_version: str) -> tuple[Manifest, StructType] | None:
            if split_api_version(api_version)[0] != resource.group:
                # Entries of another group are dropped.
                return None
            try:
                other = self.stored_as(api_version, resource.kind)
            except NotFoundError:
                return None
            # The same kind name in another group of versions is another resource.
            if kind_of(other) != kind_of(resource):
                return None
            if other.custom:
                return self._renamed(manifest, other), other.type
            now = manifest["apiVersion"]
            source = resource if now == resource.api_version else self.stored_as(now, resource.kind)
            return convert(manifest, source, other, filled=False), other.type

        return shown

    def _renamed(self, manifest: Manifest, resource: ApiResource) -> Manifest:
        """Return a custom resource in another version with all its fields; they have to be declared there."""
        if manifest["apiVersion"] == resource.api_version:
            return manifest
        if self.has_converter(resource) and manifest.keys() != _HEAD:
            renamed = self._converted_by_webhook(manifest, resource)
        else:
            renamed = {**manifest, "apiVersion": resource.api_version}
        if problems := type_problems(renamed, resource.type):
            raise ConversionError(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems]))
        return renamed

    def find(self, resource: ApiResource, key: ObjectKey) -> Manifest:
        """Return the stored object of a key, in the version of the resource.

        Raises:
            BadRequestError: If the key has a namespace and the kind is cluster-scoped, or the reverse.
            NotFoundError: If the object does not exist.
        """
        if bool(key.namespace) is not resource.namespaced:
            raise bad_request(_scope_problem(resource, key.namespace))
        found = self.read(resource, (key.namespace, key.name))
        if found is None:
            raise not_found(resource.group_resource, key.name) if "get" in resource.verbs else no_such_resource()
        return found

    def copy(self, manifest: Manifest) -> Manifest:
        """Return a copy of an object that was read or written, for the caller."""
        metadata = manifest["metadata"]
        home = (split_api_version(manifest["apiVersion"])[0], manifest["kind"])
        place = (metadata.get("namespace", ""), metadata.get("name", ""))
        if self.store.get(home, place) is manifest:
            return self.store.copy(home, place, manifest)
        copied: Manifest = copy_json(manifest)
        return copied

    def require_creatable(self, resource: ApiResource, namespace: str, name: str) -> None:
        """Check that objects of a kind can be created in a namespace.

        Raises:
            BadRequestError: If the kind is namespaced and the namespace is empty.
            NotFoundError: If the namespace does not exist.
            ForbiddenError: If the namespace, or the definition of the kind, is being deleted.
        """
        definition = self._by_kind.get(kind_of(resource)) if resource.custom else None
        if definition is not None and definition.terminating:
            problem = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource.group_resource, name, problem)
        if not resource.namespaced:
            return
        if not namespace:
            raise bad_request(_scope_problem(resource, namespace))
        home = self.store.get(("", "Namespace"), ("", namespace))
        if home is None:
            raise not_found("namespaces", namespace)
        if "deletionTimestamp" in home["metadata"]:
            ending = f"namespace {namespace} is being terminated"
            cause = StatusCause("NamespaceTerminating", ending, "metadata.namespace")
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource.group_resource, name, problem, [cause])


def _scope_problem(resource: ApiResource, namespace: str) -> str:
    if namespace:
        return f'{resource.kind} is cluster-scoped: no namespace may be given, got "{namespace}"'
    return f"{resource.kind} is namespaced: an empty namespace may not be set when a resource name is provided"


def decoded(
    manifest: Manifest, resource: ApiResource, *, drop_nulls: bool = True, live: Manifest | None = None
) -> Manifest:
    """Return an object as the API server decodes it; it may share parts with the live object, but none with the given.

    Defaults are set for custom kinds only, because their schemas contain them; `drop_nulls` applies to these defaults.

    Raises:
        DecodeError: If a value is of a wrong JSON type.
    """
    if not resource.custom:
        return decode(manifest, resource.type, live)
    out: dict[str, Any] = decoded_numbers(manifest)
    out["metadata"] = decoded_metadata(out.get("metadata"))
    if resource.schema is None:
        return out
    # The result of an apply is not decoded again: its validation sees what is pruned when it is stored.
    pruned = prune(out, resource.schema, sent=True) if drop_nulls else out
    return dict(set_schema_defaults(pruned, resource.schema, drop_nulls=drop_nulls))
