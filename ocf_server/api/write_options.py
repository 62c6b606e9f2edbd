"""Options of write requests."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ocf.cluster.protocol import Subresource
from ocf.errors import FieldProblem
from ocf.objects.field_errors import FieldError, required, too_long
from ocf.objects.field_errors import invalid as invalid_value
from ocf_server.api.status_errors import invalid
from ocf_server.api.users import ADMINISTRATOR, User

__all__ = ["FieldValidation", "WarningLog", "WriteOptions", "default_manager", "require_manager"]

_LONGEST_MANAGER: Final = 128
_log: Final = logging.getLogger(__name__)


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
        force: Apply only: take over fields that other managers own, instead of a conflict.
        subresource: Subresource of the request; None for the object itself.
        dry_run: Compute and validate the result, but do not store it.
        duplicates: Paths of duplicate fields in the body, `metadata.name`; only the parser of the body finds them.
        warn: Called with every warning.
        user: The user of the request.
    """

    field_manager: str = ""
    force: bool = False
    subresource: Subresource | None = None
    dry_run: bool = False
    validation: FieldValidation = FieldValidation.IGNORE
    duplicates: tuple[str, ...] = ()
    warn: Callable[[str], None] = _discard_warning
    user: User = ADMINISTRATOR


_MAX_TEXTS: Final = 1000
"""Texts of warnings that a cluster remembers; some contain names of objects."""


class WarningLog:
    """Logs the warnings of a cluster without HTTP, as a client logs those of responses: each text once."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def __call__(self, text: str) -> None:
        """Log a warning."""
        if text not in self._texts:
            if len(self._texts) >= _MAX_TEXTS:
                del self._texts[next(iter(self._texts))]
            self._texts[text] = None
            _log.warning("the embedded API server warns: %s", text)


def require_manager(field_manager: str, options: str, *, is_apply: bool = False) -> None:
    """Check the field manager of a request.

    Args:
        options: Kind of the request's options: `CreateOptions`, `UpdateOptions`, `PatchOptions`.
        is_apply: Whether the request is an apply, which requires a field manager.

    Raises:
        InvalidError: If the name is missing in an apply, has more than 128 bytes, or is not printable.
    """
    errors: list[FieldError] = []
    if is_apply and not field_manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if len(field_manager.encode(errors="surrogatepass")) > _LONGEST_MANAGER:
        errors.append(too_long("fieldManager", _LONGEST_MANAGER))
    for index, character in enumerate(field_manager):
        if not character.isprintable():
            position = len(field_manager[:index].encode(errors="surrogatepass"))
            problem = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(invalid_value("fieldManager", field_manager, problem))
    if errors:
        problems = [FieldProblem(error.path, error.message) for error in errors]
        raise invalid(f"{options}.meta.k8s.io", "", problems)


def default_manager(user_agent: str) -> str:
    """Return the default field manager of a client.

    Args:
        user_agent: The `User-Agent` header.

    Returns:
        The name of the program, without characters that are not printable, cut at 128 bytes.

    Example:
        >>> default_manager("kubectl/v1.36.3 (linux/amd64) kubernetes/abc")
        'kubectl'
    """
    name = "".join(filter(str.isprintable, user_agent.partition("/")[0]))
    return name.encode()[:_LONGEST_MANAGER].decode(errors="ignore")
