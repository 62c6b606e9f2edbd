"""Checking a custom resource against its schema, in the words of a server.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation. The
texts, the unhelpful ones included, are recorded ones.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ocf.embedded.api.status_errors import go_json
from ocf.embedded.apiextensions.formats import is_known, is_of_format
from ocf.errors import FieldProblem
from ocf.objects.json_equality import equal_json

__all__ = ["SchemaViolation", "custom_update_problems", "schema_faults"]

_Schema = Mapping[str, Any]

_LIMITS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


_FORMS: Final = {"integer": "int64", "number": "float64"}
"""Formats that numbers have by themselves."""


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """Something that a schema refuses.

    Args:
        problem: What is wrong, as it is reported.
        place: Where: field names and indices from the root of the checked value.
    """

    problem: FieldProblem
    place: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in an object, as problems and as texts name it."""

    path: str
    name: str
    place: tuple[str | int, ...] = field(default=())
    whole: str = "<nil>"

    def child(self, key: str) -> "_Spot":
        joined = f"{self.name}.{key}" if self.name else key
        return _Spot(f"{self.path}.{key}" if self.path else key, joined, (*self.place, key), self.whole)

    def item(self, index: int) -> "_Spot":
        return _Spot(f"{self.path}[{index}]", f"{self.name}[{index}]", (*self.place, index), self.whole)

    def refuse(self, detail: str) -> SchemaViolation:
        return SchemaViolation(FieldProblem(self.path, detail), self.place)

    def body(self, shown: Any, what: str) -> SchemaViolation:
        return self.refuse(f"Invalid value: {go_json(shown)}: {self.name} in body {what}")

    def aside(self, what: str) -> SchemaViolation:
        """Refuse something that a server does not know the field of, but that of the whole."""
        return SchemaViolation(FieldProblem(self.whole, f'Invalid value: "": {what}'), self.place)


def schema_faults(value: Any, schema: _Schema, *, path: str = "", name: str | None = None) -> list[SchemaViolation]:
    """Check a value.

    Args:
        value: The value.
        schema: Its schema.
        path: Where it is, for the field of a problem.
        name: Where it is, for the text of a problem; None is the path.

    Returns:
        What is wrong with it.

    Example:
        >>> print(schema_faults({"size": 0}, {"properties": {"size": {"minimum": 1}}}, path="spec")[0].problem)
        spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
    """
    spot = _Spot(path, path if name is None else name, whole=path or "<nil>")
    return [*_check(value, schema, spot), *_lists(value, schema, spot)]


def _check(value: Any, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    if value is None and schema.get("nullable"):
        return
    yield from _type(value, schema, spot)
    yield from _combined(value, schema, spot)
    if isinstance(value, str):
        yield from _text(value, schema, spot)
    elif isinstance(value, list):
        yield from _list(value, schema, spot)
    elif isinstance(value, dict):
        yield from _map(value, schema, spot)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, spot)
    allowed = schema.get("enum")
    if allowed is not None and not any(equal_json(value, item) for item in allowed):
        listed = ", ".join(map(go_json, allowed))
        yield spot.refuse(f"Unsupported value: {go_json(value)}: supported values: {listed}")


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return {str: "string", int: "integer", list: "array", dict: "object"}.get(type(value), "null")


def _type(value: Any, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
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
                # A server leaves these to the check of the format, which looks at texts alone.
                return
        elif is_known(form) and found != "null":
            found, wanted = _FORMS.get(found, ""), form
        shown = go_json(found)
        yield spot.refuse(f"Invalid value: {shown}: {spot.name} in body must be of type {wanted}: {shown}")


def _text(value: str, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    longest, shortest, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if longest is not None and len(value) > longest:
        yield spot.refuse(f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(value) < shortest:
        yield spot.body(value, f"should be at least {shortest} chars long")
    if pattern and not _compiled(pattern).search(value):
        yield spot.body(value, f"should match '{pattern}'")
    form = schema.get("format")
    if form and not is_of_format(value, form):
        shown = go_json(value)
        yield spot.refuse(f"Invalid value: {shown}: {spot.name} in body must be of type {form}: {shown}")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _number(value: float, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    if schema.get("type") == "integer":
        form = schema.get("format") or ""
        low, high = _LIMITS.get(form, _LIMITS["int64"])
        if not float(value).is_integer() or not low <= value <= high:
            which = f"with format {form}" if form else "(default format)"
            yield spot.aside(f"Checked value must be of type integer {which} in {spot.name}")
    factor, most, least = (schema.get(key) for key in ("multipleOf", "maximum", "minimum"))
    if factor is not None and not (value / factor).is_integer():
        yield spot.body(value, f"should be a multiple of {factor}")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        yield spot.body(value, f"should be less than{'' if schema.get('exclusiveMaximum') else ' or equal to'} {most}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        than = f"greater than{'' if schema.get('exclusiveMinimum') else ' or equal to'}"
        yield spot.body(value, f"should be {than} {least}")


def _list(value: list[Any], schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _check(item, items, spot.item(index))
    if most is not None and len(value) > most:
        yield spot.refuse(f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    if least is not None and len(value) < least:
        yield spot.body(len(value), f"should have at least {least} items")


def _map(value: dict[str, Any], schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if least is not None and len(value) < least:
        yield spot.body(len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        yield spot.refuse(f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    for name in schema.get("required") or ():
        if name not in value:
            yield SchemaViolation(FieldProblem(spot.child(name).path, "Required value"), spot.place)
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        below = known.get(name, extra if isinstance(extra, dict) else None)
        if below is not None:
            yield from _check(item, below, spot.child(name))
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                yield SchemaViolation(FieldProblem(spot.child(name).path, "Required value"), spot.place)


def _combined(value: Any, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    if schema.get("anyOf") and not (schema.get("x-kubernetes-int-or-string") and _is_int_or_string(schema["anyOf"])):
        outcomes = [list(_check(value, option, spot)) for option in schema["anyOf"]]
        if all(outcomes):
            yield spot.aside(f'"{spot.name}" must validate at least one schema (anyOf)')
            yield from outcomes[0]
    if schema.get("oneOf"):
        outcomes = [list(_check(value, option, spot)) for option in schema["oneOf"]]
        passed = outcomes.count([])
        if passed != 1:
            found = f"Found {passed} valid alternatives" if passed else "Found none valid"
            yield spot.aside(f'"{spot.name}" must validate one and only one schema (oneOf). {found}')
            if not passed:
                yield from outcomes[0]
    outcomes = [list(_check(value, option, spot)) for option in schema.get("allOf") or ()]
    if any(outcomes):
        yield from (fault for outcome in outcomes for fault in outcome)
        yield spot.aside(f'"{spot.name}" must validate all the schemas (allOf)')
    if schema.get("not") and not list(_check(value, schema["not"], spot)):
        yield spot.aside(f'"{spot.name}" must not validate the schema (not)')


def _is_int_or_string(options: Any) -> bool:
    return bool(options == [{"type": "integer"}, {"type": "string"}])


def _lists(value: Any, schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
    """Find items that are twice in a set, or in a list with keys."""
    if isinstance(value, dict):
        known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            below = known.get(name, extra if isinstance(extra, dict) else None)
            if below is not None:
                yield from _lists(item, below, spot.child(name))
    elif isinstance(value, list):
        yield from _twice(value, schema, spot)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                yield from _lists(item, items, spot.item(index))


def _twice(value: list[Any], schema: _Schema, spot: _Spot) -> Iterator[SchemaViolation]:
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
            yield spot.item(index).refuse(f"Duplicate value: {shown}")
        seen.add(shown)


def custom_update_problems(
    manifest: Mapping[str, Any], live: Mapping[str, Any], schema: _Schema, subresource: str | None
) -> list[FieldProblem]:
    """Check a custom resource that replaces another; what was wrong before and has not changed is let pass.

    Args:
        manifest: The new object.
        live: The one it replaces.
        schema: Schema of its version.
        subresource: What the request goes through; through the status, only the status is looked at.

    Returns:
        What is wrong with it.
    """
    if subresource == "status":
        below = (schema.get("properties") or {}).get("status")
        if below is None or "status" not in manifest:
            return []
        faults = schema_faults(manifest["status"], below, path="status", name="")
        before, after = live.get("status"), manifest["status"]
    else:
        faults = schema_faults(manifest, schema)
        before, after = live, manifest
    return [fault.problem for fault in faults if not _is_old(fault.place, before, after)]


def _is_old(place: tuple[str | int, ...], before: Any, after: Any) -> bool:
    for step in place:
        before, after = _below(before, step), _below(after, step)
    return before is not None and after is not None and equal_json(before, after)


def _below(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    return value[step] if isinstance(value, list) and step < len(value) else None
