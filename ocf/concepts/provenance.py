"""Provenance of a rendered object: which mutation set which field.

It contains no secrets: values of Secrets, and of environment variables with names like those of secrets, are replaced
by digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ocf.errors import ConfigError

__all__ = ["Effect", "FieldOrigin", "MutationEffect", "Provenance", "Setting", "Source", "SourceKind"]


class SourceKind(StrEnum):
    """Kinds of sources that can set or remove a field."""

    BASE = "base"
    MUTATION = "mutation"
    IGNORED = "ignored"
    GENERATED = "generated"
    """A value that is generated once, for an object without it, and that no explanation knows."""
    SUSPENSION = "suspension"
    NEVER_SENT = "never sent"
    COMPONENT = "component"
    """What the component adds: name, namespace and selector of its owner, common labels and annotations."""
    RESOURCE = "resource"
    """The whole resource, if it does not provide its provenance."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of the value of a field.

    Args:
        kind: Kind of the source.
        mutation: Name of the mutation, for a mutation.
        category: Category of the edit, `edit_hpa_spec`, for a mutation or a suspension.

    Example:
        >>> str(Source(SourceKind.MUTATION, "tracing", "edit_containers")), str(Source(SourceKind.BASE))
        ('mutation tracing, edit_containers', 'base')
    """

    kind: SourceKind
    mutation: str = ""
    category: str = ""

    def __str__(self) -> str:
        name = f"{self.kind} {self.mutation}" if self.mutation else str(self.kind)
        return f"{name}, {self.category}" if self.category else name


@dataclass(frozen=True, slots=True)
class Setting:
    """One change of a field: a new value or its removal.

    Args:
        source: Source of the change.
        value: The value, as JSON; None if the field was removed.
        removed: Whether the field was removed.
    """

    source: Source
    value: Any = None
    removed: bool = False


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """One field with its history.

    A field is a scalar value, an empty map or an empty list.

    Args:
        path: The field, `spec.template.spec.containers[0].image`. In the path of a removed field, entries of lists are
            named by their keys, because they do not have a position: `spec.template.spec.containers[name=a].image`.
        settings: All changes of the field, oldest first; at least one. The last one is in effect.
    """

    path: str
    settings: tuple[Setting, ...]

    @property
    def value(self) -> Any:
        """The current value; None if the field was removed."""
        return self.settings[-1].value

    @property
    def source(self) -> Source:
        """Source of the current value or of the removal."""
        return self.settings[-1].source

    @property
    def previous(self) -> Setting | None:
        """The previous value with its source; None if the field did not exist before."""
        return self.settings[-2] if len(self.settings) > 1 else None


class Effect(StrEnum):
    """Effect of a mutation on an object."""

    CHANGED = "changed"
    NOTHING = "changed nothing"
    CLOSED = "gate closed"


@dataclass(frozen=True, slots=True)
class MutationEffect:
    """A mutation with its effect.

    Args:
        name: Name of the mutation.
        reason: Why its gate is closed or it changed nothing; empty if it changed the object.
    """

    name: str
    effect: Effect
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which mutation set which field of an object.

    Args:
        resource: Identity of the resource.
        fields: The fields of the rendered object, in its order.
        removed: Fields that a step removed, in order of removal.
        mutations: All mutations, in order of registration.
    """

    resource: str
    fields: tuple[FieldOrigin, ...]
    removed: tuple[FieldOrigin, ...] = ()
    mutations: tuple[MutationEffect, ...] = ()

    def field(self, path: str) -> FieldOrigin:
        """Return one present or removed field.

        Args:
            path: The field, in the form of `FieldOrigin.path`.

        Raises:
            ConfigError: If the field does not exist.
        """
        for origin in (*self.fields, *self.removed):
            if origin.path == path:
                return origin
        raise ConfigError(f'{self.resource} has no field "{path}"; a field is a single value, not a map or a list')

    def set_by(self, mutation: str) -> tuple[FieldOrigin, ...]:
        """Return the fields whose current value a mutation set, and the fields it removed.

        Args:
            mutation: Name of the mutation.
        """
        return tuple(origin for origin in (*self.fields, *self.removed) if origin.source.mutation == mutation)
