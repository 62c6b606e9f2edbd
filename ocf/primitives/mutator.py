"""Mutators: objects that record the edits of a mutation and apply them later.

The function of a mutation receives a mutator. Recording stores a callable and changes nothing. Applying runs the
recorded edits category by category, in the order in which the mutator class declares its categories, regardless of the
order of recording. Every mutation gets a new mutator in every rendering, so no edit runs twice.

Recording ends when the function of the mutation returns. What would be lost is an error: an edit that is recorded
later, from inside a running edit or through a stored mutator, and a recorder that was read but never called.

A kind declares its categories as class attributes::

    class Mutator(BaseMutator):
        edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
        edit_hpa_spec = Edits(HPASpecEditor, "spec")

A category that only methods of the mutator record is a private attribute; its name has no underscore.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar, get_args, overload

from ocf.editors import ObjectMetaEditor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import api_name
from ocf.errors import ConfigError
from ocf.feature.mutation import PlainResult
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import write_model
from ocf.objects.managed_fields import fields_path
from ocf.objects.model_fields import api_names, client_model
from ocf.objects.models import copy_model, validate_kept
from ocf.objects.owned_paths import OwnedPath
from ocf.primitives.cleared import EditedPart

__all__ = [
    "BaseMutator",
    "BoundRecorder",
    "CategoryDescriptor",
    "EditError",
    "Edits",
    "ListEdits",
    "MetadataEdits",
    "SubObject",
    "call_edit",
    "require_callable",
]

EditorT = TypeVar("EditorT")
EntryT = TypeVar("EntryT", bound="BaseModel")
RecorderT = TypeVar("RecorderT", bound="BoundRecorder")


class EditError(Exception):
    """An edit of a category failed with `__cause__`; the renderer converts this into an `ocf.errors.MutationError`."""

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(category)


class BaseMutator:
    """Records the edits of one mutation."""

    categories: ClassVar[tuple[CategoryDescriptor[Any], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = [value for value in vars(cls).values() if isinstance(value, CategoryDescriptor)]
        cls.categories = (*cls.categories, *declared)

    def __init__(self) -> None:
        self._records: dict[str, list[Any]] = {}
        self._recorders: list[BoundRecorder] = []
        self._ended = False

    def record(self, category: str, record: Any) -> None:
        """Store a record of a category until the edits are applied; only the category knows its type.

        Raises:
            ConfigError: If recording has ended.
        """
        self._require_recording(category)
        self._records.setdefault(category, []).append(record)

    def hand_out(self, recorder: RecorderT) -> RecorderT:
        """Return a recorder to the function of the mutation, which must call it before recording ends.

        Raises:
            ConfigError: If recording has ended.
        """
        self._require_recording(recorder.category)
        self._recorders.append(recorder)
        return recorder

    def end_recording(self) -> None:
        """End recording; from now on, recording an edit is an error.

        Raises:
            ConfigError: If a recorder was read but never called, so that an edit is lost.
        """
        self._ended = True
        unused = [recorder.lost_edit for recorder in self._recorders if not recorder.is_used]
        self._recorders.clear()
        if unused:
            raise ConfigError("; ".join(dict.fromkeys(unused)))

    def _require_recording(self, category: str) -> None:
        if self._ended:
            raise ConfigError(
                f"{category}: this mutation has ended, so the edit would be lost; record all edits before the function "
                "of the mutation returns, and not from inside another edit"
            )

    @property
    def has_edits(self) -> bool:
        """Whether anything was recorded."""
        return bool(self._records)

    def recorded(self, category: str) -> list[Any]:
        """Return the records of a category, in order of recording."""
        return self._records.get(category, [])

    def apply(self, target: Any) -> None:
        """Apply all recorded edits, in the order of the categories, to the model of the whole object.

        Raises:
            EditError: If an edit fails; it names the category. The target is then partly edited and must be discarded.
            ConfigError: If recording had not ended, and a recorder was read but never called.
        """
        self.end_recording()
        for category in self.categories:
            records = self.recorded(category.name)
            if records:
                try:
                    category.apply(target, records)
                except Exception as error:
                    raise EditError(category.name) from error


class BoundRecorder:
    """Base class of the recorders: records under the name of a category."""

    __slots__ = ("_category", "_mutator", "is_used")

    def __init__(self, mutator: BaseMutator, category: str) -> None:
        self._mutator = mutator
        self._category = category
        self.is_used = False

    @property
    def category(self) -> str:
        """The name of its category."""
        return self._category

    @property
    def lost_edit(self) -> str:
        """The problem to report if it was never called."""
        category = self._category
        return (
            f"{category} was read but not called, so an edit is lost: call it, m.{category}(edit), or use it as a "
            f'decorator, @m.{category}; to test for it, use hasattr(type(m), "{category}")'
        )

    def _record(self, record: Any) -> None:
        self.is_used = True
        self._mutator.record(self._category, record)


class CategoryDescriptor(Generic[RecorderT]):
    """Base class of the category declarations: a descriptor that returns the recorder of its category.

    The name of the category is the name of the attribute, without the underscore of a private one.

    Args:
        recorder: Builds the recorder from a mutator and the name of the category.
    """

    name: str = ""

    def __init__(self, recorder: Callable[[BaseMutator, str], RecorderT]) -> None:
        self._recorder = recorder

    def __set_name__(self, owner: type[BaseMutator], name: str) -> None:
        self.name = name.removeprefix("_")

    @overload
    def __get__(self, instance: None, owner: type[BaseMutator]) -> Self: ...
    @overload
    def __get__(self, instance: BaseMutator, owner: type[BaseMutator]) -> RecorderT: ...
    def __get__(self, instance: BaseMutator | None, owner: type[BaseMutator]) -> Self | RecorderT:
        """Return the recorder of this category; the declaration itself if read from the class."""
        return self if instance is None else instance.hand_out(self._recorder(instance, self.name))

    def apply(self, target: Any, records: list[Any]) -> None:
        """Apply the records, in order, to the model of the whole object."""
        raise NotImplementedError

    def parts(self, target: Any) -> Iterator[EditedPart]:  # noqa: ARG002 (categories that change lists have none)
        """Yield the parts of the whole object of which edits change, or clear, single fields."""
        yield from ()


class SubObject:
    """A part of a model by its attributes, `spec.template.metadata`, of which only the last one may be unset.

    An empty path is the object itself.
    """

    __slots__ = ("_name", "_parents", "path")

    def __init__(self, path: str) -> None:
        self.path: Final = path
        *self._parents, self._name = path.split(".")

    def of(self, target: Any) -> Any:
        """Return the part of a model; a new one if it is unset, which `keep` has to store after the edits."""
        if not self._name:
            return target
        parent = self._parent(target)
        model = getattr(parent, self._name)
        return _type_of(parent, self._name)() if model is None else model

    def placed(self, target: Any) -> tuple[Any, OwnedPath]:
        """Return the part of a model and its place; None if it is unset, or not a model."""
        place: list[str] = []
        for name in filter(None, (*self._parents, self._name)):
            in_api = api_names(target.__class__).get(name)
            if in_api is None:
                return None, ()
            place.append(in_api)
            target = getattr(target, name)
        return target, fields_path(place)

    def keep(self, target: Any, model: Any) -> None:
        """Store a part that `of` created, unless it is still empty."""
        if not self._name or not model.model_fields_set:
            return
        parent = self._parent(target)
        if getattr(parent, self._name) is None:
            setattr(parent, self._name, model)

    def _parent(self, target: Any) -> Any:
        passed: list[tuple[Any, str]] = []
        for name in self._parents:
            passed.append((target, name))
            target = getattr(target, name)
            if target is None:
                path = ".".join(api_name(owner, part) for owner, part in passed)
                raise ConfigError(f"{path}: required value, because a part of it is edited")
        return target


def _type_of(parent: Any, name: str) -> Any:
    """Return the model class of an optional field, without `None`."""
    return next(arm for arm in get_args(type(parent).model_fields[name].annotation) if arm is not type(None))


class CategoryRecorder(BoundRecorder, Generic[EditorT]):
    """Records edits of one category."""

    __slots__ = ()

    def __call__(self, edit: Callable[[EditorT], PlainResult]) -> Callable[[EditorT], PlainResult]:
        """Record an edit.

        Args:
            edit: Called with the editor when the edits are applied; its result is ignored. An asynchronous function is
                an error.

        Returns:
            The edit itself, so that this method can be used as a decorator.

        Raises:
            ConfigError: If the edit is not callable or recording has ended.
        """
        self._record(require_callable(edit, self._category))
        return edit


class Edits(CategoryDescriptor[CategoryRecorder[EditorT]], Generic[EditorT]):
    """A category of edits of one part of the object.

    On a mutator it is a function that records an edit and returns it. It accepts a lambda or any other function, and
    can be used as a decorator.

    Args:
        editor: Builds the editor of the live part.
        path: Path of the part as attributes of the model, `spec.template.metadata`; empty for the object itself, for
            kinds with their fields at the top level. A part that is unset is created for the edits, and stored only if
            an edit sets one of its fields.
    """

    def __init__(self, editor: Callable[[Any], EditorT], path: str) -> None:
        super().__init__(CategoryRecorder)
        self._editor = editor
        self._part = SubObject(path)

    def parts(self, target: Any) -> Iterator[EditedPart]:
        """Yield the part, unless it is metadata, whose maps many writers share."""
        model, place = self._part.placed(target)
        if model is not None and self._editor is not ObjectMetaEditor:
            yield EditedPart(model, place, getattr(self._editor, "parts", ()))

    def apply(self, target: Any, records: list[Callable[[EditorT], object]]) -> None:
        """Apply the edits, in order, to one editor of the part."""
        model = self._part.of(target)
        editor = self._editor(model)
        for edit in records:
            call_edit(edit, editor)
        self._part.keep(target, model)


class ListEdits(CategoryDescriptor["ListEditsRecorder[EntryT]"], Generic[EntryT]):
    """A category that adds and removes entries of a list, in order of recording.

    Args:
        entries: The list to change, with the key of its entries.
        path: Path of the part that has the list.
    """

    def __init__(self, entries: KeyedList[Any, EntryT], path: str) -> None:
        super().__init__(ListEditsRecorder)
        self._entries = entries
        self._part = SubObject(path)

    def apply(self, target: Any, records: list[_Record]) -> None:
        """Add and remove entries, in order of recording."""
        owner = self._part.of(target)
        for record in records:
            if record.entry is not None:
                self._entries.ensure(owner, record.entry)
            else:
                self._entries.remove(owner, *record.removed)
        self._part.keep(target, owner)


class _Record(NamedTuple):
    """Either an entry to ensure, or keys to remove."""

    entry: Any
    removed: tuple[str, ...] = ()


class ListEditsRecorder(BoundRecorder, Generic[EntryT]):
    """Records entries to ensure and keys to remove."""

    __slots__ = ()

    def ensure(self, entry: EntryT) -> None:
        """Record an entry that the list must contain."""
        # Copied now, so that later changes by the caller have no effect.
        self._record(_Record(copy_model(entry)))

    def remove(self, *keys: str) -> None:
        """Record the keys of entries that the list must not contain."""
        self._record(_Record(None, keys))


class MetadataEdits(Edits[ObjectMetaEditor]):
    """A category of edits of the metadata, which has the same model in all kinds.

    The object that is edited has its manifest as `root`.
    """

    def __init__(self) -> None:
        super().__init__(ObjectMetaEditor, "metadata")

    def apply(self, target: Any, records: list[Callable[[ObjectMetaEditor], object]]) -> None:
        """Apply the edits, in order, to a model of the metadata, and store the result."""
        metadata: Any = validate_kept(target.root.get("metadata") or {}, client_model("V1ObjectMeta"))
        editor = ObjectMetaEditor(metadata)
        for edit in records:
            call_edit(edit, editor)
        target.root["metadata"] = write_model(metadata)


def require_callable(edit: EditorT, category: str) -> EditorT:
    """Return an edit if it is callable, so that any other value is rejected while it is recorded."""
    if not callable(edit):
        raise ConfigError(f"{category} takes a function, got {edit!r}")
    return edit


def call_edit(edit: Callable[[EditorT], object], editor: EditorT) -> object:
    """Run an edit, return its result, and reject an asynchronous one, which has not edited anything."""
    result = edit(editor)
    if result is not None and inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        name = getattr(edit, "__qualname__", repr(edit))
        raise ConfigError(f"the edit {name} is asynchronous; write it as a plain function that changes its editor")
    return result
