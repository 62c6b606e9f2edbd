"""Instance types from a document, for providers that have no catalog of their own, and for plans without a provider."""

from typing import Any

from ocf.errors import FieldProblem, ManifestError, QuantityError
from ocf.nodegroups import InstanceType, Offering
from ocf.nodegroups.snapshot.fields import Fields
from ocf.objects import Quantity

__all__ = ["read_types"]


def read_types(document: Any) -> list[InstanceType]:
    """Parse instance types.

    Args:
        document: A list of mappings with `name`, `allocatable` (quantities by resource), `labels` (optional) and
            `offerings`, each with `zone`, `price` per hour and `available` (by default true).

    Raises:
        ManifestError: If fields are invalid; it contains all of them with their paths.

    Example:
        >>> small = {"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "fra"}]}
        >>> read_types([small])[0].allocatable["cpu"].nano // 10**6
        2000
    """
    problems: list[FieldProblem] = []
    found = [
        _read(entry, f"[{index}]", problems)
        for index, entry in enumerate(document if isinstance(document, list) else ())
    ]
    if not found:
        problems.append(FieldProblem("", "must be a list of instance types, at least one"))
    names = [each.name for each in found]
    problems += [FieldProblem(f"[{index}].name", "required value") for index, name in enumerate(names) if not name]
    if len(set(names)) < len(names):
        problems.append(FieldProblem("", "the names of instance types must be unique"))
    if problems:
        raise ManifestError("instance types", problems)
    return found


def _read(entry: Any, path: str, problems: list[FieldProblem]) -> InstanceType:
    fields = Fields(entry, path, problems)
    # A kubelet allows 110 pods by default.
    amounts = {"pods": Quantity.parse(110), **_quantities(fields)}
    return InstanceType(
        fields.text("name"),
        amounts,
        offerings=tuple(_offering(each) for each in fields.items("offerings")),
        labels=fields.labels("labels"),
    )


def _quantities(fields: Fields) -> dict[str, Quantity]:
    found = {}
    for name, value in fields.child("allocatable").value.items():
        try:
            found[str(name)] = Quantity.parse(value)
        except QuantityError as error:
            fields.reject(str(error), f"allocatable.{name}")
    return found


def _offering(fields: Fields) -> Offering:
    price = fields.value.get("price", 0) if isinstance(fields.value, dict) else 0
    if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price < float("inf"):
        fields.reject(f"must be a number of at least 0, got {price!r}", "price")
        price = 0
    available = fields.value.get("available", True) is True if isinstance(fields.value, dict) else True
    return Offering(fields.text("zone"), float(price), available=available)
