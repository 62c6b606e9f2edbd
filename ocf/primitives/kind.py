"""Declaration of a kind: its name in the API, its model, its mutator and its default handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from ocf.concepts import ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.errors import FieldProblem, ManifestError
from ocf.feature.mutation import PlainResult, is_deferred_function
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, read_live, write_model
from ocf.objects.field_errors import FieldError
from ocf.objects.model_fields import client_model
from ocf.objects.models import read_base, read_reference, validate_kept
from ocf.primitives.mutator import BaseMutator

__all__ = [
    "GraceHandler",
    "Handlers",
    "Kind",
    "ModelT",
    "MutatorT",
    "OnManifest",
    "StatusHandler",
    "StatusT",
    "SuspensionHandler",
    "function_problems",
]

ModelT = TypeVar("ModelT", bound="BaseModel")
MutatorT = TypeVar("MutatorT", bound=BaseMutator)
StatusT = TypeVar("StatusT", bound=StrEnum)

StatusHandler = Callable[[ApplyOperation, ModelT], StatusReport[StatusT]]
GraceHandler = Callable[[ModelT], StatusReport[GraceStatus]]
SuspensionHandler = Callable[[ModelT], StatusReport[SuspensionStatus]]


def _accept(_manifest: Manifest) -> Iterator[FieldError]:
    """Yield no errors: the API server validates the object."""
    yield from ()


# Not slotted: a cached property needs a `__dict__`.
@dataclass(frozen=True)
class Kind(Generic[ModelT, MutatorT]):
    """A kind of object.

    Args:
        api_version: `autoscaling/v2`.
        name: The kind, `HorizontalPodAutoscaler`.
        model_name: Name of the client's model, or module and name of another one, `package.module:Model`; it is loaded
            on first use.
        mutator: The mutator class, which declares the categories of edits and their order.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
        validate: Yields why the API server would reject an object of the kind, or another part of the control plane
            would revert it; for its baseline and after each edit.
        selector: Path of the labels in its selector, such as `("spec", "selector", "matchLabels")`, which a component
            gives objects that have no selector; empty for a kind without one.
    """

    api_version: str
    name: str
    model_name: str
    mutator: type[MutatorT]
    cluster_scoped: bool = False
    validate: Callable[[Manifest], Iterator[FieldError]] = _accept
    selector: tuple[str, ...] = ()

    @cached_property
    def model(self) -> type[ModelT]:
        """The model, loaded on first use."""
        module, _, name = self.model_name.rpartition(":")
        return cast("type[ModelT]", getattr(import_module(module), name) if module else client_model(name))

    def read_base(self, source: object) -> Manifest:
        """Return a baseline as a manifest, after strict checks.

        Args:
            source: A model, a manifest, or a YAML text with one document.

        Raises:
            ManifestError: If it is not a valid object of the kind.
        """
        return read_base(source, self.model, api_version=self.api_version, kind=self.name)

    def read_reference(self, source: Manifest) -> Manifest:
        """Return kind and metadata of an object that is never applied, after strict checks.

        Raises:
            ManifestError: If it is of another kind, or its metadata is invalid.
        """
        return read_reference(source, api_version=self.api_version, kind=self.name)

    def open(self, manifest: Manifest) -> Any:
        """Return a manifest in the form that the edits of the mutator change.

        Raises:
            ValueError: If it is not a valid object of the kind.
        """
        return validate_kept(manifest, self.model)

    def view(self, opened: Any) -> ModelT:
        """Return what `open` returned, after any edits, as the model."""
        model: ModelT = opened
        return model

    def read_live(self, manifest: Manifest) -> ModelT:
        """Return an object that the API server sent as the model that handlers receive.

        Raises:
            ManifestError: If a known field has a type that the model does not accept.
        """
        return read_live(manifest, self.model, keep_unknown=self.model.model_config.get("extra") == "allow")

    def write(self, opened: Any) -> Manifest:
        """Return what `open` returned, after any edits, as a manifest that the kind accepts.

        Raises:
            ManifestError: If the model contains an invalid value.
        """
        manifest = write_model(opened)
        self.check(manifest)
        return manifest

    def check(self, manifest: Manifest) -> None:
        """Check a manifest with `validate`.

        Raises:
            ManifestError: With every error.
        """
        problems = [FieldProblem(error.path, error.message) for error in self.validate(manifest)]
        if problems:
            metadata = manifest.get("metadata") or {}
            place = [metadata.get(part) for part in ("namespace", "name")]
            raise ManifestError(f"{self.name} {'/'.join(part for part in place if part)}", problems)


@dataclass(frozen=True)
class OnManifest(Generic[StatusT]):
    """A handler that reads the live manifest itself, so that no model of the whole object is built for it."""

    # It must not change the manifest, which a cache may share.
    handler: Callable[..., StatusReport[StatusT]]


def _default_grace(_live: Any) -> StatusReport[GraceStatus]:
    return StatusReport(GraceStatus.HEALTHY, "default grace status")


def _default_suspension(_live: Any) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")


def _no_edit(_mutator: Any) -> None:
    """Record no edits: suspending this kind does not change the object."""


def function_problems(name: str, function: object) -> Iterator[str]:
    """Yield why a function of the author cannot be called for its result; None is no function, and no problem.

    Example:
        >>> list(function_problems("guard", "closed"))
        ['guard must be a function, not of type str']
    """
    if function is None:
        return
    if not callable(function):
        yield f"{name} must be a function, not of type {type(function).__name__}"
    elif is_deferred_function(function):
        yield f"{name} must be a plain function, without async and yield"


# Not slotted: a cached property needs a `__dict__`.
@dataclass(frozen=True, kw_only=True)
class Handlers(Generic[ModelT, MutatorT, StatusT]):
    """Status handlers and suspension of a kind.

    Args:
        status: Returns the status of the live object; None only for a kind without a status.
        grace: Returns the status of the live object after the grace period.
        suspend: Records the suspension edit, which runs once, after all mutations.
        suspension: Returns the suspension status of the live object.
        delete_on_suspend: Returns whether suspending deletes the object; called with a copy of the baseline. None
            means no.
    """

    status: StatusHandler[ModelT, StatusT] | OnManifest[StatusT] | None = None
    grace: GraceHandler[ModelT] | OnManifest[GraceStatus] | None = OnManifest(_default_grace)
    suspend: Callable[[MutatorT], PlainResult] | None = _no_edit
    suspension: SuspensionHandler[ModelT] | OnManifest[SuspensionStatus] | None = OnManifest(_default_suspension)
    delete_on_suspend: Callable[[ModelT], bool] | None = None

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Why handlers cannot be called; every resource of a kind is built with the same default handlers."""
        declared = ((field.name, getattr(self, field.name)) for field in fields(self))
        functions = ((name, one.handler if isinstance(one, OnManifest) else one) for name, one in declared)
        return tuple(problem for name, one in functions for problem in function_problems(f"{name} handler", one))
