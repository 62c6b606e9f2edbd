"""Custom resources with a pydantic model of the user as kinds, in one line.

The object stays a manifest, and the model is a typed view of it: an edit changes the model, and only the fields that it
changed are written back. So defaults of the model are not sent, fields that the model does not declare survive, and the
model may be frozen or lack `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Never, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from ocf.concepts import AliveStatus, CompletionStatus, OperationalStatus
from ocf.errors import FieldProblem, ManifestError
from ocf.feature import Gate, Mutation
from ocf.feature.mutation import PlainResult
from ocf.objects import Manifest, copy_json, load_document, read_live, write_model
from ocf.objects.json_values import to_json
from ocf.objects.model_errors import problems_of
from ocf.objects.model_fields import field_types
from ocf.objects.models import validate_live, write_parts
from ocf.primitives.builder import IntegrationBuilder, StaticBuilder, TaskBuilder, WorkloadBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import (
    BaseMutator,
    BoundRecorder,
    CategoryDescriptor,
    MetadataEdits,
    call_edit,
    require_callable,
)
from ocf.primitives.status import ConditionStatus, IntegrationStatus

__all__ = ["CustomMutation", "CustomMutator", "DeclaredKind", "custom_kind"]

ModelT = TypeVar("ModelT", bound="BaseModel")

# The parts of an object that a model of the user may leave out.
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata", "status")


class CustomObjectRecorder(BoundRecorder, Generic[ModelT]):
    """Records edits of a custom resource."""

    __slots__ = ()

    def __call__(self, edit: Callable[[ModelT], object]) -> Callable[[ModelT], object]:
        """Record an edit.

        Args:
            edit: Called with the model of the object when the edits are applied. It changes the model, or returns a
                changed copy, as an edit of a frozen model has to. Any other result is ignored.

        Returns:
            The edit itself, so that this method can be used as a decorator.

        Raises:
            ConfigError: If the edit is not callable or recording has ended.
        """
        self._record(require_callable(edit, self._category))
        return edit


class _CustomObjectEdits(CategoryDescriptor[CustomObjectRecorder[ModelT]], Generic[ModelT]):
    """The category of edits of the model."""

    def __init__(self) -> None:
        super().__init__(CustomObjectRecorder)

    def apply(self, target: _Opened, records: list[Callable[[BaseModel], object]]) -> None:
        """Apply the edits, in order, each to a model of the result of the ones before it."""
        for edit in records:
            model = target.model()
            before = write_model(model)
            result = call_edit(edit, model)
            after = write_model(result if isinstance(result, type(model)) else model)
            target.root = _with_changes(target.root, before, after)


class CustomMutator(BaseMutator, Generic[ModelT]):
    """Records edits of a custom resource: first its metadata, then the object as its model."""

    edit_object_metadata = MetadataEdits()
    edit_object = _CustomObjectEdits[ModelT]()


CustomMutation: TypeAlias = Mutation[CustomMutator[ModelT]]
"""A mutation of a custom resource."""


class _Opened:
    """A custom resource that edits change: its manifest, viewed through the model."""

    def __init__(self, root: Manifest, kind: _Kind[Any]) -> None:
        self.root = root
        self._kind = kind

    def model(self) -> BaseModel:
        model: BaseModel = self._kind.typed(self.root)
        return model


@dataclass(frozen=True)
class _Kind(Kind[ModelT, CustomMutator[ModelT]]):
    """Declaration for the engine; `declared` is the model of the user."""

    declared: type[ModelT] = field(kw_only=True)

    @cached_property
    def model(self) -> type[ModelT]:
        return self.declared

    def typed(self, manifest: Manifest) -> ModelT:
        return validate_live(self._declared(manifest), self.declared)

    def _declared(self, manifest: Manifest) -> Manifest:
        known = field_types(self.declared)
        return {name: value for name, value in manifest.items() if name in known or name not in _OF_EVERY_OBJECT}

    def read_base(self, source: object) -> Manifest:
        source = load_document(source) if isinstance(source, str) else source
        manifest = self._manifest(source)
        wrong = [
            FieldProblem(name, f'must be "{expected}", got {manifest.get(name)!r}')
            for name, expected in (("apiVersion", self.api_version), ("kind", self.name))
            if manifest.setdefault(name, expected) != expected
        ]
        if wrong:
            raise ManifestError(self.name, wrong)
        try:
            # A part that is a model was checked before; so was a model of the whole object.
            self.declared.model_validate(self._declared(dict(source))) if isinstance(source, Mapping) else None
            self.typed(manifest)
        except ValidationError as error:
            raise ManifestError(self.name, problems_of(error.errors(), manifest, self.declared)) from None
        return manifest

    def _manifest(self, source: object) -> Manifest:
        if isinstance(source, self.declared):
            return write_model(source)
        if not isinstance(source, Mapping):
            expected = f"must be a {self.declared.__name__}, a manifest or a YAML text"
            raise ManifestError(
                self.name, [FieldProblem("", f"{expected}, got an object of type {type(source).__name__}")]
            )
        manifest: Manifest = copy_json(to_json(write_parts(dict(source)), self.name))
        return manifest

    def open(self, manifest: Manifest) -> _Opened:
        self.typed(manifest)
        return _Opened(copy_json(manifest), self)

    def view(self, opened: _Opened) -> ModelT:
        return self.typed(opened.root)

    def read_live(self, manifest: Manifest) -> ModelT:
        return read_live(manifest, self.declared, keep_unknown=True)

    def write(self, opened: _Opened) -> Manifest:
        manifest: Manifest = copy_json(to_json(opened.root, self.name))
        return manifest


def _with_changes(live: Any, before: Any, after: Any) -> Any:
    """Return a value with the changes between two views of it; what the views do not show stays."""
    if before == after:
        return live
    if isinstance(live, dict) and isinstance(before, dict) and isinstance(after, dict):
        kept = {name: value for name, value in live.items() if name in after or name not in before}
        changed = {
            name: _with_changes(live.get(name), before.get(name), value)
            for name, value in after.items()
            if name not in before or before[name] != value
        }
        return kept | changed
    if isinstance(live, list) and isinstance(before, list) and len(live) == len(before) == len(after):
        return [_with_changes(*items) for items in zip(live, before, after, strict=True)]
    return after


class DeclaredKind(Generic[ModelT]):
    """A kind declared from a model; it has a builder per category.

    Args:
        kind: Declaration for the engine.
        status: Status by conditions, for `integration`.
    """

    def __init__(self, kind: _Kind[ModelT], status: ConditionStatus) -> None:
        self._kind = kind
        self._status = status

    def mutation(
        self,
        name: str,
        mutate: Callable[[CustomMutator[ModelT]], PlainResult] | None,
        *,
        feature: Gate | None = None,
    ) -> CustomMutation[ModelT]:
        """Return a mutation of an object of the kind.

        Args:
            name: Its name, unique within a resource.
            mutate: Records the edits.
            feature: The gate that enables it; None enables it always.
        """
        return Mutation(name, mutate, feature=feature)

    def integration(self, base: ModelT | Manifest | str) -> IntegrationBuilder[ModelT, CustomMutator[ModelT]]:
        """Return a builder of an object that a controller makes operational; its status is that of its conditions.

        Args:
            base: The desired baseline: the model, a manifest, or a YAML text with one document. A model is sent with
                its defaults; of a manifest only what it contains is sent.
        """
        status: IntegrationStatus[ModelT] = IntegrationStatus(self._status.observe)
        handlers: Handlers[ModelT, CustomMutator[ModelT], OperationalStatus] = Handlers(
            status=status.operational, grace=status.grace
        )
        return IntegrationBuilder(base, self._kind, handlers)

    def static(self, base: ModelT | Manifest | str) -> StaticBuilder[ModelT, CustomMutator[ModelT]]:
        """Return a builder of an object that is ready as soon as it exists.

        Args:
            base: As for `integration`.
        """
        handlers: Handlers[ModelT, CustomMutator[ModelT], Never] = Handlers()
        return StaticBuilder(base, self._kind, handlers)

    def workload(self, base: ModelT | Manifest | str) -> WorkloadBuilder[ModelT, CustomMutator[ModelT]]:
        """Return a builder of an object that runs until it is deleted; it needs a status handler.

        Args:
            base: As for `integration`.
        """
        handlers: Handlers[ModelT, CustomMutator[ModelT], AliveStatus] = Handlers()
        return WorkloadBuilder(base, self._kind, handlers)

    def task(self, base: ModelT | Manifest | str) -> TaskBuilder[ModelT, CustomMutator[ModelT]]:
        """Return a builder of an object that runs to completion; it needs a status handler.

        Args:
            base: As for `integration`.
        """
        handlers: Handlers[ModelT, CustomMutator[ModelT], CompletionStatus] = Handlers()
        return TaskBuilder(base, self._kind, handlers)


def custom_kind(
    model: type[ModelT],
    api_version: str,
    *,
    kind: str = "",
    cluster_scoped: bool = False,
    ready: str = "Ready",
    failing: str = "",
) -> DeclaredKind[ModelT]:
    """Return the kind of a custom resource, declared from its model.

    Args:
        model: A pydantic model with the fields of the object; it need not declare `apiVersion`, `kind`, `metadata` and
            `status`.
        api_version: API version, `example.com/v1`.
        kind: The kind; empty means the name of the model.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
        ready: Type of the condition that is True once an object is operational.
        failing: Type of the condition that is True while its controller cannot make progress; empty if there is none.

    Returns:
        The kind, with a builder per category.

    Example:
        >>> class Cache(BaseModel):
        ...     spec: dict[str, int]
        >>> caches = custom_kind(Cache, "example.com/v1")
        >>> def larger(m: CustomMutator[Cache]) -> None:
        ...     @m.edit_object
        ...     def _(cache: Cache) -> None:
        ...         cache.spec["replicas"] = 3
        >>> base = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"shards": 2}}
        >>> resource = caches.integration(base).with_mutation(caches.mutation("larger", larger)).build()
        >>> resource.identity, resource.render()["spec"]
        ('example.com/v1/Cache/shop/web', {'shards': 2, 'replicas': 3})
    """
    declaration: _Kind[ModelT] = _Kind(
        api_version, kind or model.__name__, "", CustomMutator, cluster_scoped=cluster_scoped, declared=model
    )
    return DeclaredKind(declaration, ConditionStatus(ready, failing))
