"""How a request wants to be treated, besides what it asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ocf.cluster.protocol import Subresource

__all__ = ["FieldValidation", "WriteOptions"]


class FieldValidation(StrEnum):
    """What becomes of fields that the kind does not declare, and of fields that are there twice.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level.
    """

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


def _unheard(_text: str) -> None:
    """Let a warning pass."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write wants to be treated.

    Args:
        field_manager: Who writes.
        force: Of an apply: take fields from their owners.
        subresource: What the request goes through; None for the object itself.
        dry_run: Only say what would be stored.
        validation: What becomes of undeclared fields.
        duplicates: Fields that the body has more than once, `metadata.name`; only who reads the body's text can know.
        warn: Called with every warning.
    """

    field_manager: str = ""
    force: bool = False
    subresource: Subresource | None = None
    dry_run: bool = False
    validation: FieldValidation = FieldValidation.IGNORE
    duplicates: tuple[str, ...] = ()
    warn: Callable[[str], None] = _unheard
