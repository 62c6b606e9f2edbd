"""Options of write requests."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ocf.cluster.protocol import Subresource

__all__ = ["FieldValidation", "WriteOptions"]


class FieldValidation(StrEnum):
    """Field validation: how the API server handles unknown and duplicate fields of a request.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level.
    """

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


def _discard_warning(_text: str) -> None:
    """Discard a warning."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write request.

    Args:
        field_manager: Field manager of the request.
        force: Apply only: take over fields that other managers own, instead of a conflict.
        subresource: Subresource of the request; None for the object itself.
        dry_run: Compute and validate the result, but do not store it.
        validation: How to handle unknown and duplicate fields.
        duplicates: Paths of duplicate fields in the body, `metadata.name`; only the parser of the body finds them.
        warn: Called with every warning.
    """

    field_manager: str = ""
    force: bool = False
    subresource: Subresource | None = None
    dry_run: bool = False
    validation: FieldValidation = FieldValidation.IGNORE
    duplicates: tuple[str, ...] = ()
    warn: Callable[[str], None] = _discard_warning
