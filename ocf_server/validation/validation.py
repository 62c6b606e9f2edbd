"""The validation of one kind, as declared by the modules of this package."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError

__all__ = ["CreateRule", "UpdateRule", "Validation"]

CreateRule: TypeAlias = Callable[[Manifest], Iterator[FieldError]]
"""Yields the errors of a new object, those of its metadata first; `Validate` of a registry strategy."""

UpdateRule: TypeAlias = Callable[[Manifest, Manifest], Iterator[FieldError]]
"""Yields the errors of an update from the new and the stored object; `ValidateUpdate` of a registry strategy."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Validation of a kind.

    The caller validates what is the same for an update of any kind, so an update rule starts with what
    `ValidateUpdate` of the kind's registry strategy does.

    Args:
        update: The rule for updates of the object, and of its scale.
        subresources: The rules for updates of other subresources; without one, only the metadata is validated.
    """

    create: CreateRule
    update: UpdateRule
    subresources: Mapping[Subresource, UpdateRule] = field(default_factory=dict)
