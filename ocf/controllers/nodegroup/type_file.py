"""Instance types from a document, for providers that have no catalog of their own, and for plans without a provider."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ocf.errors import FieldProblem, ManifestError, QuantityError
from ocf.nodegroups import InstanceType, Offering
from ocf.nodegroups.snapshot.fields import Fields
from ocf.objects import Quantity
from ocf.objects.suggestions import nearest

__all__ = ["read_types"]

_FIELDS: Final = ("name", "allocatable", "labels", "offerings")
_OFFERING_FIELDS: Final = ("zone", "price", "available")
_REQUIRED: Final = ("cpu", "memory")


def read_types(document: Any) -> list[InstanceType]:
    """Parse instance types.

    Args:
        document: A list of mappings with `name`, `allocatable` (quantities by resource), `labels` (optional) and
            `offerings`, each with `zone`, `price` per hour and `available` (by default true).

    Example:
        >>> small = {"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "fra"}]}
        >>> read_types([small])[0].allocatable["cpu"].nano // 10**6
        2000
    """
    problems: list[FieldProblem] = []
    found = []
    for index, entry in enumerate(document if isinstance(document, list) else ()):
        if isinstance(entry, Mapping):
            found.append(_read(Fields(entry, f"[{index}]", problems)))
        else:
            problems.append(FieldProblem(f"[{index}]", f"must be a map, not {entry!r}"))
    if not found and not problems:
        problems.append(FieldProblem("", "must be a list of instance types, at least one"))
    names = [each.name for each in found if each.name]
    if len(set(names)) < len(names):
        problems.append(FieldProblem("", "the names of instance types must be unique"))
    if problems:
        raise ManifestError("instance types", problems)
    return found


def _read(fields: Fields) -> InstanceType:
    _reject_unknown(fields, _FIELDS)
    name = fields.text("name")
    if not name:
        fields.reject("required value", "name")
    # A kubelet allows 110 pods by default.
    amounts = {"pods": Quantity.parse(110), **_quantities(fields)}
    return InstanceType(
        name,
        amounts,
        offerings=tuple(_offering(each) for each in fields.items("offerings")),
        labels=fields.labels("labels"),
    )


def _reject_unknown(fields: Fields, known: Sequence[str]) -> None:
    for key in fields.value:
        if key not in known:
            found = nearest(str(key), known)
            fields.reject(f'unknown field, did you mean "{found}"?' if found else "unknown field", str(key))


def _quantities(fields: Fields) -> dict[str, Quantity]:
    allocatable = fields.child("allocatable").value
    found = {}
    for name, value in allocatable.items():
        try:
            found[str(name)] = amount = Quantity.parse(value)
        except QuantityError as error:
            fields.reject(str(error), f"allocatable.{name}")
        else:
            if amount.nano < 0:
                fields.reject(f"must not be negative, got {value}", f"allocatable.{name}")
    for name in _REQUIRED:
        if name not in allocatable:
            fields.reject("required value", f"allocatable.{name}")
        elif name in found and found[name].nano == 0:
            fields.reject("must be more than 0", f"allocatable.{name}")
    return found


def _offering(fields: Fields) -> Offering:
    _reject_unknown(fields, _OFFERING_FIELDS)
    price = fields.value.get("price", 0)
    if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price < float("inf"):
        fields.reject(f"must be a number of at least 0, got {price!r}", "price")
        price = 0
    return Offering(fields.text("zone"), float(price), available=fields.value.get("available", True) is True)
