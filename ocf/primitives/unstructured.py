"""Objects of any kind, including custom resources: built from a manifest, with fields edited by path.

There is a builder per category; the mutator is the same. A static object is ready as soon as it exists; for the other
categories the user provides the status handler, because only the user knows how the kind reports its status. A kind
with a pydantic model is better declared with `ocf.primitives.custom_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from pydantic import BaseModel, RootModel, field_validator

from ocf import feature
from ocf.concepts import AliveStatus, CompletionStatus, OperationalStatus
from ocf.editors import UnstructuredContentEditor
from ocf.editors.content import own_json
from ocf.errors import ConfigError, ManifestError
from ocf.objects import copy_json, load_document
from ocf.objects.models import write_parts
from ocf.primitives import builder, resource
from ocf.primitives.kind import Kind, StatusT
from ocf.primitives.mutator import BaseMutator, Edits, MetadataEdits

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = [
    "IntegrationBuilder",
    "IntegrationResource",
    "Mutation",
    "Mutator",
    "StaticBuilder",
    "StaticResource",
    "TaskBuilder",
    "TaskResource",
    "Unstructured",
    "WorkloadBuilder",
    "WorkloadResource",
]


class Unstructured(RootModel[dict[str, Any]]):
    """An object of any kind; `root` is its manifest.

    Example:
        >>> Unstructured({"kind": "Shop", "spec": {"size": 3}}).root["spec"]
        {'size': 3}
    """

    @field_validator("root", mode="before")
    @classmethod
    def _copied(cls, root: Any) -> Any:
        """Return a deep copy of the input: pydantic does not copy nested maps."""
        return copy_json(root)


class Mutator(BaseMutator):
    """Records edits of an object of any kind: first its metadata, then its content."""

    edit_object_metadata = MetadataEdits()
    edit_content = Edits(lambda model: UnstructuredContentEditor(model.root), "")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an object of any kind."""

StaticResource: TypeAlias = resource.StaticResource[Unstructured, Mutator]
"""An object that is ready as soon as it exists."""

WorkloadResource: TypeAlias = resource.WorkloadResource[Unstructured, Mutator]
"""An object that runs until it is deleted."""

TaskResource: TypeAlias = resource.TaskResource[Unstructured, Mutator]
"""An object that runs to completion."""

IntegrationResource: TypeAlias = resource.IntegrationResource[Unstructured, Mutator]
"""An object that another controller makes operational."""


@dataclass(frozen=True)
class _Kind(Kind[Unstructured, Mutator]):
    """A kind without a model."""

    @cached_property
    def model(self) -> type[Unstructured]:
        """The model of all such kinds."""
        return Unstructured


class _Builder(builder._Builder[Unstructured, Mutator, StatusT]):  # noqa: SLF001 (shared by the builders of this module)
    """Builder that reads the kind from the baseline."""

    def __init__(self, base: Manifest | str | BaseModel, *, cluster_scoped: bool = False) -> None:
        # `build` reports a base that cannot be read, with all other problems.
        read: Any = base
        with suppress(ManifestError):
            read = _manifest(base)
        super().__init__(read, _Kind(*_type_of(read), "Unstructured", Mutator, cluster_scoped))

    def _read_base(self, problems: list[str]) -> Manifest:
        if not isinstance(self._base, Mapping):
            return super()._read_base(problems)
        found = list(_problems_of(self._base, self._kind))
        if not found:
            return super()._read_base(problems)
        metadata = self._base.get("metadata") or {}
        problems.extend([*found, *(self._naming_problems(metadata) if isinstance(metadata, dict) else ())])
        return {}


def _type_of(base: object) -> tuple[str, str]:
    named = base if isinstance(base, Mapping) else {}
    return str(named.get("apiVersion") or ""), str(named.get("kind") or "")


def _problems_of(base: Mapping[str, Any], kind: Kind[Unstructured, Mutator]) -> Iterator[str]:
    """Yield the problems that a model would have reported."""
    if not kind.api_version:
        yield "object apiVersion cannot be empty"
    if not kind.name:
        yield "object kind cannot be empty"
    if not isinstance(base.get("metadata", {}), dict):
        yield f"metadata: must be a map, not of type {type(base['metadata']).__name__}"
    try:
        own_json(dict(base), ())
    except ConfigError as error:
        yield f"{kind.name}: {error}"


def _manifest(base: object) -> object:
    if isinstance(base, str):
        return load_document(base)
    return write_parts(base) if isinstance(base, BaseModel | dict) else base


class StaticBuilder(_Builder[Never], builder.StaticBuilder[Unstructured, Mutator]):
    """Builds an object that is ready as soon as it exists.

    Args:
        base: The desired baseline: a manifest, a YAML text with one document, or a pydantic model of the user.
        cluster_scoped: Whether objects of the kind are cluster-scoped.

    Example:
        >>> monitor = StaticBuilder('''
        ...     apiVersion: monitoring.coreos.com/v1
        ...     kind: PodMonitor
        ...     metadata: {name: web, namespace: shop}
        ...     spec: {podMetricsEndpoints: [{port: metrics}]}
        ... ''').build()
        >>> monitor.identity
        'monitoring.coreos.com/v1/PodMonitor/shop/web'
    """


class WorkloadBuilder(_Builder[AliveStatus], builder.WorkloadBuilder[Unstructured, Mutator]):
    """Builds an object that runs until it is deleted; it needs a status handler.

    Args:
        base: As for `StaticBuilder`.
        cluster_scoped: As for `StaticBuilder`.
    """


class TaskBuilder(_Builder[CompletionStatus], builder.TaskBuilder[Unstructured, Mutator]):
    """Builds an object that runs to completion; it needs a status handler.

    Args:
        base: As for `StaticBuilder`.
        cluster_scoped: As for `StaticBuilder`.
    """


class IntegrationBuilder(_Builder[OperationalStatus], builder.IntegrationBuilder[Unstructured, Mutator]):
    """Builds an object that another controller makes operational; it needs a status handler.

    Args:
        base: As for `StaticBuilder`.
        cluster_scoped: As for `StaticBuilder`.
    """
