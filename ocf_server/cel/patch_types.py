"""Object literals of MutatingAdmissionPolicies: `Object{…}`, `Object.spec{…}` and `JSONPatch{…}`.

Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/.
"""

from typing import Final

from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import ANY, STRING, CelType, list_of

__all__ = ["APPLY_CONFIGURATION", "JSON_PATCH", "OPERATION", "PATCH_FUNCTIONS", "field_kind", "struct_kind"]

APPLY_CONFIGURATION: Final = CelType("Object", fields={})
"""Type of an apply configuration."""
OPERATION: Final = CelType(
    "JSONPatch",
    fields={"op": ("op", STRING), "path": ("path", STRING), "from": ("from", STRING), "value": ("value", ANY)},
)
JSON_PATCH: Final = list_of(OPERATION)
"""Type of a JSON patch."""


def struct_kind(name: str) -> CelType | None:
    """Return the type of an object literal; None if there is none with the name.

    Args:
        name: Its name, `Object.spec.template`, of which every part is a field.
    """
    if name == OPERATION.name:
        return OPERATION
    is_object = name == APPLY_CONFIGURATION.name or name.startswith(f"{APPLY_CONFIGURATION.name}.")
    return CelType(name, fields={}) if is_object else None


def field_kind(kind: CelType, name: str) -> CelType | None:
    """Return the type of a field; an object has fields of any name, of the type `dyn`."""
    if kind.name == OPERATION.name:
        found = (kind.fields or {}).get(name)
        return found and found[1]
    return ANY


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


PATCH_FUNCTIONS: Final[tuple[Function, ...]] = (overload("jsonpatch.escapeKey: string -> string", _escaped),)
"""The functions that only the mutations of a policy can use."""
