"""Plan, then apply: how a mutation's edits are recorded and later run.

A mutator is what a mutation's function receives. Recording stores a callable and touches nothing; applying runs what
was recorded, category by category, in the order in which the mutator class declares its categories, whatever the
order of recording. There is one mutator per mutation and pass, so nothing is ever replayed.

A kind declares its categories as class attributes::

    class Mutator(BaseMutator):
        edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
        edit_hpa_spec = Edits(HPASpecEditor, "spec")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, get_args, overload

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "BaseMutator",
    "BoundRecorder",
    "CategoryDescriptor",
    "EditError",
    "Edits",
    "SubObject",
    "call_edit",
    "require_callable",
]

EditorT = TypeVar("EditorT")
RecorderT = TypeVar("RecorderT")


class EditError(Exception):
    """An edit failed; the engine turns this into an `ocf.errors.MutationError`.

    Args:
        category: The category of the edit.

    The edit's own error is `__cause__`.
    """

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

    def record(self, category: str, record: Any) -> None:
        """Keep a record for when the plan is applied; what a record is, only its category knows."""
        self._records.setdefault(category, []).append(record)

    @property
    def has_edits(self) -> bool:
        """Whether anything was recorded."""
        return bool(self._records)

    def recorded(self, category: str) -> list[Any]:
        """Return what was recorded under a category, in order."""
        return self._records.get(category, [])

    def apply(self, target: Any) -> None:
        """Run everything recorded, in the order of the categories, on the model of the whole object.

        Raises:
            EditError: Naming the category of the edit that failed; the target is then half-edited and must be thrown
                away.
        """
        for category in self.categories:
            records = self.recorded(category.name)
            if records:
                try:
                    category.apply(target, records)
                except Exception as error:
                    raise EditError(category.name) from error


class BoundRecorder:
    """What a category gives to a mutation's function: it records under the category's name."""

    __slots__ = ("_category", "_mutator")

    def __init__(self, mutator: BaseMutator, category: str) -> None:
        self._mutator = mutator
        self._category = category

    def _record(self, record: Any) -> None:
        self._mutator.record(self._category, record)


class CategoryDescriptor(Generic[RecorderT]):
    """Base of the category declarations: learns its name from the class attribute, and hands out recorders.

    Args:
        recorder: Makes the recorder for a mutator and the category's name.
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
        """Return the recorder of this category; the declaration itself when asked of the class."""
        return self if instance is None else self._recorder(instance, self.name)

    def apply(self, target: Any, records: list[Any]) -> None:
        """Run the records, in order, on the model of the whole object."""
        raise NotImplementedError


class SubObject:
    """A place inside a model.

    Args:
        path: Attribute names joined by dots, `spec.template.metadata`; what leads to the last one is never absent.
            Empty for the object itself.
    """

    __slots__ = ("_name", "_parents", "path")

    def __init__(self, path: str) -> None:
        self.path: Final = path
        *self._parents, self._name = path.split(".")

    def of(self, target: Any) -> Any:
        """Return the model at this place; one that is absent is made, and has to be kept afterwards."""
        if not self._name:
            return target
        parent = self._parent(target)
        model = getattr(parent, self._name)
        return _type_of(parent, self._name)() if model is None else model

    def keep(self, target: Any, model: Any) -> None:
        """Put a model that was made into its place, unless nothing was set in it."""
        if not self._name or not model.model_fields_set:
            return
        parent = self._parent(target)
        if getattr(parent, self._name) is None:
            setattr(parent, self._name, model)

    def _parent(self, target: Any) -> Any:
        for name in self._parents:
            target = getattr(target, name)
        return target


def _type_of(parent: Any, name: str) -> Any:
    """Return the model class of an optional field."""
    return next(arm for arm in get_args(type(parent).model_fields[name].annotation) if arm is not type(None))


class CategoryRecorder(BoundRecorder, Generic[EditorT]):
    """Records edits of one category."""

    __slots__ = ()

    def __call__(self, edit: Callable[[EditorT], object]) -> Callable[[EditorT], object]:
        """Record an edit.

        Args:
            edit: Called with the editor when the plan is applied; what it returns is ignored, an awaitable is an error.

        Returns:
            The edit itself.

        Raises:
            ConfigError: If it is not callable.
        """
        self._record(require_callable(edit, self._category))
        return edit


class Edits(CategoryDescriptor[CategoryRecorder[EditorT]], Generic[EditorT]):
    """A category of edits of one part of the object.

    Read from a mutator it is a function that records an edit and returns it, so it serves with a lambda, with a
    function defined elsewhere, and as a decorator.

    Args:
        editor: Makes the editor of the part's live model.
        path: Where the part is, as attributes of the model: `spec.template.metadata`; empty for the object itself,
            where a kind keeps its content at the top. A part that is absent is made for the edits and taken away
            again if it stays empty.
    """

    def __init__(self, editor: Callable[[Any], EditorT], path: str) -> None:
        super().__init__(CategoryRecorder)
        self._editor = editor
        self._part = SubObject(path)

    def apply(self, target: Any, records: list[Callable[[EditorT], object]]) -> None:
        """Run the edits, in order, on one editor of the part."""
        model = self._part.of(target)
        editor = self._editor(model)
        for edit in records:
            call_edit(edit, editor)
        self._part.keep(target, model)


def require_callable(edit: EditorT, category: str) -> EditorT:
    """Return an edit that can be called, and refuse anything else at the place where it is recorded."""
    if not callable(edit):
        raise ConfigError(f"{category} takes a function, got {edit!r}")
    return edit


def call_edit(edit: Callable[[EditorT], object], editor: EditorT) -> None:
    """Run an edit; one that only returns a coroutine has not edited anything, and is refused.

    Raises:
        ConfigError: If the edit is asynchronous.
    """
    result = edit(editor)
    if result is not None and inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        name = getattr(edit, "__qualname__", repr(edit))
        raise ConfigError(f"the edit {name} is asynchronous; write it as a plain function that changes its editor")
