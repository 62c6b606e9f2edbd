"""Who set what: the values that an explanation of a rendered object is made of.

They are for people and for tools, so they hold no secrets: values of Secrets, and of environment variables that are
named like secrets, are digests already.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ocf.errors import ConfigError

__all__ = ["Effect", "FieldOrigin", "MutationEffect", "Provenance", "Setting", "Source", "SourceKind"]


class SourceKind(StrEnum):
    """What can have set a field, or taken it away."""

    BASE = "base"
    MUTATION = "mutation"
    IGNORED = "ignored"
    SUSPENSION = "suspension"
    NEVER_SENT = "never sent"
    OWNER = "owner"
    RESOURCE = "resource"
    """A resource that cannot explain itself, as a whole."""


@dataclass(frozen=True, slots=True)
class Source:
    """Who set a field.

    Args:
        kind: What it is.
        mutation: Name of the mutation, for a mutation.
        category: Category of the edit inside it, `edit_hpa_spec`; of a suspension, too.

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
    """That somebody gave a field a value, or took it away.

    Args:
        source: Who.
        value: The value, as JSON; None when it was taken away.
        removed: Whether it was taken away.
    """

    source: Source
    value: Any = None
    removed: bool = False


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """One field, and who set it.

    A field is a value that is neither a map nor a list, or an empty one.

    Args:
        path: The field, `spec.template.spec.containers[0].image`. Of a field that is not there any more, entries of
            lists are named by their keys, because they have no position: `spec.template.spec.containers[name=a].image`.
        settings: Who set it to what, oldest first; the last one counts. There is at least one.
    """

    path: str
    settings: tuple[Setting, ...]

    @property
    def value(self) -> Any:
        """The value; None if it is not there any more."""
        return self.settings[-1].value

    @property
    def source(self) -> Source:
        """Who gave it this value, or took it away."""
        return self.settings[-1].source

    @property
    def previous(self) -> Setting | None:
        """What it was before, and who had set that; None if it was not there."""
        return self.settings[-2] if len(self.settings) > 1 else None


class Effect(StrEnum):
    """What a mutation did to an object."""

    CHANGED = "changed"
    NOTHING = "changed nothing"
    CLOSED = "gate closed"


@dataclass(frozen=True, slots=True)
class MutationEffect:
    """What became of a mutation.

    Args:
        name: Its name.
        effect: What it did.
        reason: Why its gate is closed, or why it changed nothing; empty if it changed something.
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
        removed: Fields that were there on the way and are not any more, in the order in which they went.
        mutations: All mutations, in order of registration.
    """

    resource: str
    fields: tuple[FieldOrigin, ...]
    removed: tuple[FieldOrigin, ...] = ()
    mutations: tuple[MutationEffect, ...] = ()

    def field(self, path: str) -> FieldOrigin:
        """Return one field, there or removed.

        Args:
            path: The field, as `FieldOrigin.path` spells it.

        Raises:
            ConfigError: If there is no such field.
        """
        for origin in (*self.fields, *self.removed):
            if origin.path == path:
                return origin
        raise ConfigError(f'{self.resource} has no field "{path}"; a field is a single value, not a map or a list')

    def set_by(self, mutation: str) -> tuple[FieldOrigin, ...]:
        """Return the fields whose present value a mutation set, and those that it took away.

        Args:
            mutation: Name of the mutation.
        """
        return tuple(origin for origin in (*self.fields, *self.removed) if origin.source.mutation == mutation)
