"""Validation of custom resources by their schemas.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation. The
error texts, including the unhelpful ones, are those of a real API server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ocf.embedded.api.status_errors import go_json
from ocf.embedded.apiextensions.formats import is_known, is_of_format
from ocf.errors import FieldProblem
from ocf.objects.json_equality import equal_json

if TYPE_CHECKING:
    from ocf.embedded.cel.regexp import Regexp

__all__ = ["SchemaViolation", "duplicate_faults", "schema_faults", "value_faults"]

_Schema = Mapping[str, Any]

_LIMITS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


_FORMS: Final = {"integer": "int64", "number": "float64"}
"""Formats of numbers without a declared format."""


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """Violation of a schema.

    Args:
        problem: The violation, as it is reported.
        place: Location: field names and indices from the root of the checked value.
    """

    problem: FieldProblem
    place: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Location:
    """A location in an object, with its path in the field of a violation and its name in the text."""

    path: str
    name: str
    place: tuple[str | int, ...] = field(default=())
    whole: str = "<nil>"

    def child(self, key: str) -> "_Location":
        joined = f"{self.name}.{key}" if self.name else key
        return _Location(f"{self.path}.{key}" if self.path else key, joined, (*self.place, key), self.whole)

    def item(self, index: int) -> "_Location":
        return _Location(f"{self.path}[{index}]", f"{self.name}[{index}]", (*self.place, index), self.whole)

    def violation(self, detail: str) -> SchemaViolation:
        return SchemaViolation(FieldProblem(self.path, detail), self.place)

    def body_violation(self, shown: Any, what: str) -> SchemaViolation:
        return self.violation(f"Invalid value: {go_json(shown)}: {self.name} in body {what}")

    def root_violation(self, what: str) -> SchemaViolation:
        """Return a violation that a real API server reports for the root of the checked value."""
        return SchemaViolation(FieldProblem(self.whole, f'Invalid value: "": {what}'), self.place)


def schema_faults(value: Any, schema: _Schema, *, path: str = "", name: str | None = None) -> list[SchemaViolation]:
    """Validate a value by a schema.

    Args:
        value: The value.
        schema: Its schema.
        path: Path of the value, for the fields of violations.
        name: Name of the value, for the texts of violations; None for the path.

    Returns:
        The violations; empty if the value is valid.

    Example:
        >>> print(schema_faults({"size": 0}, {"properties": {"size": {"minimum": 1}}}, path="spec")[0].problem)
        spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
    """
    location = _located(path, name)
    return [*_check(value, schema, location), *_lists(value, schema, location)]


def value_faults(value: Any, schema: _Schema, *, path: str = "", name: str | None = None) -> list[SchemaViolation]:
    """Validate a value by a schema as `schema_faults` does, except for duplicate items."""
    return list(_check(value, schema, _located(path, name)))


def duplicate_faults(value: Any, schema: _Schema) -> list[SchemaViolation]:
    """Return the duplicate items of sets and keyed lists in a value.

    Args:
        value: The value.
        schema: Its schema.

    Returns:
        The violations, in the order of the lists.

    Example:
        >>> print(duplicate_faults(["a", "a"], {"x-kubernetes-list-type": "set"})[0].problem)
        [1]: Duplicate value: "a"
    """
    return list(_lists(value, schema, _located("", None)))


def _located(path: str, name: str | None) -> _Location:
    return _Location(path, path if name is None else name, whole=path or "<nil>")


def _check(value: Any, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    if value is None and schema.get("nullable"):
        return
    yield from _type(value, schema, location)
    yield from _combined(value, schema, location)
    if isinstance(value, str):
        yield from _text(value, schema, location)
    elif isinstance(value, list):
        yield from _list(value, schema, location)
    elif isinstance(value, dict):
        yield from _map(value, schema, location)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, location)
    allowed = schema.get("enum")
    if allowed is not None and not any(equal_json(value, item) for item in allowed):
        listed = ", ".join(map(go_json, allowed))
        yield location.violation(f"Unsupported value: {go_json(value)}: supported values: {listed}")


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return {str: "string", int: "integer", list: "array", dict: "object"}.get(type(value), "null")


def _type(value: Any, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    either = schema.get("x-kubernetes-int-or-string")
    wanted = "integer,string" if either else schema.get("type")
    if not wanted:
        return
    found = _type_name(value)
    allowed = wanted.split(",")
    if found not in allowed and not (found == "integer" and "number" in allowed):
        form = schema.get("format") or ""
        if is_known(form) and found in ("string", "array"):
            if not {"integer", "number"} & {*allowed}:
                # A real API server checks only the format of these values, and only if they are strings.
                return
        elif is_known(form) and found != "null":
            found, wanted = _FORMS.get(found, ""), form
        shown = go_json(found)
        yield location.violation(f"Invalid value: {shown}: {location.name} in body must be of type {wanted}: {shown}")


def _text(value: str, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    longest, shortest, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if longest is not None and len(value) > longest:
        yield location.violation(f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(value) < shortest:
        yield location.body_violation(value, f"should be at least {shortest} chars long")
    if pattern and not _parsed(pattern).matches(value):
        yield location.body_violation(value, f"should match '{pattern}'")
    form = schema.get("format")
    if form and not is_of_format(value, form):
        shown = go_json(value)
        yield location.violation(f"Invalid value: {shown}: {location.name} in body must be of type {form}: {shown}")


@lru_cache(maxsize=1024)
def _parsed(pattern: str) -> "Regexp":
    from ocf.embedded.cel.regexp import Regexp

    return Regexp.parse(pattern)


def _number(value: float, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    if schema.get("type") == "integer":
        form = schema.get("format") or ""
        low, high = _LIMITS.get(form, _LIMITS["int64"])
        if not float(value).is_integer() or not low <= value <= high:
            which = f"with format {form}" if form else "(default format)"
            yield location.root_violation(f"Checked value must be of type integer {which} in {location.name}")
    factor, most, least = (schema.get(key) for key in ("multipleOf", "maximum", "minimum"))
    if factor is not None and not (value / factor).is_integer():
        yield location.body_violation(value, f"should be a multiple of {factor}")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        yield location.body_violation(
            value, f"should be less than{'' if schema.get('exclusiveMaximum') else ' or equal to'} {most}"
        )
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        than = f"greater than{'' if schema.get('exclusiveMinimum') else ' or equal to'}"
        yield location.body_violation(value, f"should be {than} {least}")


def _list(value: list[Any], schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _check(item, items, location.item(index))
    if most is not None and len(value) > most:
        yield location.violation(f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    if least is not None and len(value) < least:
        yield location.body_violation(len(value), f"should have at least {least} items")


def _map(value: dict[str, Any], schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if least is not None and len(value) < least:
        yield location.body_violation(len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        yield location.violation(f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    for name in schema.get("required") or ():
        if name not in value:
            yield SchemaViolation(FieldProblem(location.child(name).path, "Required value"), location.place)
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        below = known.get(name, extra if isinstance(extra, dict) else None)
        if below is not None:
            yield from _check(item, below, location.child(name))
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                yield SchemaViolation(FieldProblem(location.child(name).path, "Required value"), location.place)


def _combined(value: Any, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    if schema.get("anyOf") and not (schema.get("x-kubernetes-int-or-string") and _is_int_or_string(schema["anyOf"])):
        outcomes = [list(_check(value, option, location)) for option in schema["anyOf"]]
        if all(outcomes):
            yield location.root_violation(f'"{location.name}" must validate at least one schema (anyOf)')
            yield from outcomes[0]
    if schema.get("oneOf"):
        outcomes = [list(_check(value, option, location)) for option in schema["oneOf"]]
        passed = outcomes.count([])
        if passed != 1:
            found = f"Found {passed} valid alternatives" if passed else "Found none valid"
            yield location.root_violation(f'"{location.name}" must validate one and only one schema (oneOf). {found}')
            if not passed:
                yield from outcomes[0]
    outcomes = [list(_check(value, option, location)) for option in schema.get("allOf") or ()]
    if any(outcomes):
        yield from (fault for outcome in outcomes for fault in outcome)
        yield location.root_violation(f'"{location.name}" must validate all the schemas (allOf)')
    if schema.get("not") and not list(_check(value, schema["not"], location)):
        yield location.root_violation(f'"{location.name}" must not validate the schema (not)')


def _is_int_or_string(options: Any) -> bool:
    return bool(options == [{"type": "integer"}, {"type": "string"}])


def _lists(value: Any, schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    """Yield duplicate items of sets and keyed lists."""
    if isinstance(value, dict):
        known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            below = known.get(name, extra if isinstance(extra, dict) else None)
            if below is not None:
                yield from _lists(item, below, location.child(name))
    elif isinstance(value, list):
        yield from _duplicates(value, schema, location)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                yield from _lists(item, items, location.item(index))


def _duplicates(value: list[Any], schema: _Schema, location: _Location) -> Iterator[SchemaViolation]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    names = schema.get("x-kubernetes-list-map-keys") or () if kind == "map" else ()
    seen: set[str] = set()
    for index, item in enumerate(value):
        if names and not isinstance(item, dict):
            continue
        shown = go_json({name: item[name] for name in sorted(names) if name in item} if names else item)
        if shown in seen:
            yield location.item(index).violation(f"Duplicate value: {shown}")
        seen.add(shown)
