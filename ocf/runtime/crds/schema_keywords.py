"""Keywords and types that conversions to structural schemas share."""

from typing import Final

__all__ = ["ANNOTATIONS", "INT_OR_STRING", "PRESERVE", "SCALARS"]

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
ANNOTATIONS: Final = frozenset(
    {"contentMediaType", "deprecated", "example", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a schema without restricting values."""
SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
