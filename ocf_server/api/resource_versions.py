"""Resource versions in requests.

Source: `ParseResourceVersion` in https://pkg.go.dev/k8s.io/apiserver/pkg/storage.
"""

from typing import Final

from ocf.objects.field_errors import invalid
from ocf.objects.go_strings import go_quoted

__all__ = ["parse_problem", "version_problem"]

_DIGITS: Final = 20  # of the largest integer of 64 bits
_END: Final = 2**64


def version_problem(text: str) -> str:
    """Return the text of the error for a resource version that is not an unsigned integer of 64 bits.

    Args:
        text: The version; an empty text is valid and means any version.

    Returns:
        The text; empty if the version is valid.

    Example:
        >>> version_problem("12")
        ''
        >>> print(version_problem("1.2"))
        resourceVersion: Invalid value: "1.2": strconv.ParseUint: parsing "1.2": invalid syntax
    """
    problem = parse_problem(text) if text else ""
    return str(invalid("resourceVersion", text, problem)) if problem else ""


def parse_problem(text: str) -> str:
    """Return the text of Go's error for what is not an unsigned integer of 64 bits; empty if it is one."""
    if not (text.isascii() and text.isdecimal()):
        problem = "invalid syntax"
    elif len(text.lstrip("0")) > _DIGITS or int(text) >= _END:
        problem = "value out of range"
    else:
        return ""
    return f"strconv.ParseUint: parsing {go_quoted(text)}: {problem}"
