"""Validation of custom resources by their schemas.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation. The
error texts, including the unhelpful ones, are those of a real API server.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ocf.errors import FieldProblem
from ocf.objects.json_equality import equal_json
from ocf.objects.paths import FieldPath
from ocf.schema.builtin import MISSING
from ocf_server.api.numbers import go_int64, go_number, is_multiple
from ocf_server.api.status_errors import go_json
from ocf_server.apiextensions.formats import is_known, is_of_format

if TYPE_CHECKING:
    from ocf_server.cel.regexp import Regexp

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
    place: FieldPath


@dataclass(slots=True)
class _Report:
    """The violations that were found in a value.

    The path and the name of a location are texts that only a violation needs, so they are made from its place.

    Args:
        path: Path of the value, for the fields of violations.
        name: Name of the value, for the texts of violations.
    """

    path: str
    name: str
    found: list[SchemaViolation] = field(default_factory=list)

    def add(self, place: FieldPath, detail: str) -> None:
        self.found.append(SchemaViolation(FieldProblem(_joined(self.path, place), detail), place))

    def add_in_body(self, place: FieldPath, shown: Any, what: str) -> None:
        self.add(place, f"Invalid value: {go_json(shown)}: {self.name_of(place)} in body {what}")

    def add_number(self, place: FieldPath, shown: float, what: str) -> None:
        self.add(place, f"Invalid value: {go_number(shown)}: {self.name_of(place)} in body {what}")

    def add_for_root(self, place: FieldPath, what: str) -> None:
        """Add a violation that a real API server reports for the root of the checked value."""
        problem = FieldProblem(self.path or "<nil>", f'Invalid value: "": {what}')
        self.found.append(SchemaViolation(problem, place))

    def add_required(self, place: FieldPath, name: str) -> None:
        """Add a violation for an absent field of the object at a place."""
        self.found.append(SchemaViolation(FieldProblem(_joined(self.path, (*place, name)), "Required value"), place))

    def name_of(self, place: FieldPath) -> str:
        return _joined(self.name, place)


def _joined(start: str, place: FieldPath) -> str:
    text = start
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text = f"{text}.{step}" if text else step
    return text


def schema_faults(value: Any, schema: _Schema, *, path: str = "", name: str | None = None) -> list[SchemaViolation]:
    """Validate a value by a schema.

    Args:
        path: Path of the value, for the fields of violations.
        name: Name of the value, for the texts of violations; None for the path.

    Returns:
        The violations; empty if the value is valid.

    Example:
        >>> print(schema_faults({"size": 0}, {"properties": {"size": {"minimum": 1}}}, path="spec")[0].problem)
        spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
    """
    report = _Report(path, path if name is None else name)
    _check(value, schema, (), report)
    _check_lists(value, schema, (), report)
    return report.found


def value_faults(
    value: Any, schema: _Schema, *, path: str = "", name: str | None = None, before: Any = MISSING
) -> list[SchemaViolation]:
    """Validate a value by a schema as `schema_faults` does, except for duplicate items.

    Args:
        path: As for `schema_faults`.
        name: As for `schema_faults`.
        before: The previous value; fields that equal theirs are not validated. `MISSING` if there is none.

    Returns:
        The violations; empty if the value is valid.
    """
    report = _Report(path, path if name is None else name)
    _check(value, schema, (), report, before)
    return report.found


def duplicate_faults(value: Any, schema: _Schema, *, before: Any = MISSING) -> list[SchemaViolation]:
    """Return the duplicate items of sets and keyed lists in a value.

    Args:
        before: As for `value_faults`.

    Example:
        >>> print(duplicate_faults(["a", "a"], {"x-kubernetes-list-type": "set"})[0].problem)
        [1]: Duplicate value: "a"
    """
    report = _Report("", "")
    _check_lists(value, schema, (), report, before)
    return report.found


def _check(value: Any, schema: _Schema, place: FieldPath, report: _Report, before: Any = MISSING) -> None:
    if value is None and schema.get("nullable"):
        return
    _check_type(value, schema, place, report)
    if not _COMBINATIONS.isdisjoint(schema):
        _check_combinations(value, schema, place, report)
    if isinstance(value, str):
        _check_text(value, schema, place, report)
    elif isinstance(value, list):
        _check_list(value, schema, place, report)
    elif isinstance(value, dict):
        _check_map(value, schema, place, report, before)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, schema, place, report)
    allowed = schema.get("enum")
    if allowed is not None and not any(equal_json(value, item) for item in allowed):
        listed = ", ".join(map(go_json, allowed))
        report.add(place, f"Unsupported value: {go_json(value)}: supported values: {listed}")


_COMBINATIONS: Final = frozenset({"anyOf", "oneOf", "allOf", "not"})
_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    list: "array",
    dict: "object",
}


_LARGEST_WHOLE: Final = 2**53 - 1
"""The largest floating-point number that counts as an integer."""


def _type_name(value: Any) -> str:
    if isinstance(value, float):
        return "number"
    return _TYPE_NAMES.get(type(value), "null")


def _check_type(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> None:
    either = schema.get("x-kubernetes-int-or-string")
    wanted = "integer,string" if either else schema.get("type")
    found = _type_name(value)
    if not wanted or found == wanted:
        return
    allowed = wanted.split(",")
    is_whole = found == "number" and value.is_integer() and abs(value) <= _LARGEST_WHOLE and "integer" in allowed
    if found not in allowed and not is_whole and not (found == "integer" and "number" in allowed):
        form = schema.get("format") or ""
        if is_known(form) and found in ("string", "array"):
            if not {"integer", "number"} & {*allowed}:
                # A real API server checks only the format of these values, and only if they are strings.
                return
        elif is_known(form) and found != "null":
            found, wanted = _FORMS.get(found, ""), form
        shown = go_json(found)
        report.add(place, f"Invalid value: {shown}: {report.name_of(place)} in body must be of type {wanted}: {shown}")


def _check_text(value: str, schema: _Schema, place: FieldPath, report: _Report) -> None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        report.add(place, f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(value) < shortest:
        report.add_in_body(place, value, f"should be at least {shortest} chars long")
    if pattern and not _parsed(pattern).matches(value):
        report.add_in_body(place, value, f"should match '{pattern}'")
    form = schema.get("format")
    if form and not is_of_format(value, form):
        shown = go_json(value)
        report.add(place, f"Invalid value: {shown}: {report.name_of(place)} in body must be of type {form}: {shown}")


@lru_cache(maxsize=1024)
def _parsed(pattern: str) -> "Regexp":
    from ocf_server.cel.regexp import Regexp

    return Regexp.parse(pattern)


def _check_number(value: float, schema: _Schema, place: FieldPath, report: _Report) -> None:
    """Add violations in the order of `numberValidator` in k8s.io/kube-openapi/pkg/validation/validate."""
    _is_in_range(value, schema, "Checked", place, report)
    for keyword, what, check in _LIMITED:
        limit = schema.get(keyword)
        if limit is None:
            continue
        # An integer is compared as one, with limits whose fraction is cut. A limit that is not a number of the schema
        # makes every value invalid, and is compared as it is.
        if _is_in_range(limit, schema, what, place, report) and isinstance(value, int):
            check(value, go_int64(float(limit)), schema, place, report)
        else:
            check(float(value), float(limit), schema, place, report)


def _check_factor(value: float, factor: float, _: _Schema, place: FieldPath, report: _Report) -> None:
    if factor <= 0:
        problem = f"factor MultipleOf declared for {report.name_of(place)} must be positive: {go_number(factor)}"
        report.add(place, f"Invalid value: {go_number(factor)}: {problem}")
    elif not is_multiple(value, factor):
        report.add_number(place, value, f"should be a multiple of {go_number(factor)}")


def _check_least(value: float, least: float, schema: _Schema, place: FieldPath, report: _Report) -> None:
    excluded = bool(schema.get("exclusiveMinimum"))
    if value < least or (excluded and value == least):
        than = "greater than" if excluded else "greater than or equal to"
        report.add_number(place, value, f"should be {than} {go_number(least)}")


def _check_most(value: float, most: float, schema: _Schema, place: FieldPath, report: _Report) -> None:
    excluded = bool(schema.get("exclusiveMaximum"))
    if value > most or (excluded and value == most):
        than = "less than" if excluded else "less than or equal to"
        report.add_number(place, value, f"should be {than} {go_number(most)}")


_LIMITED: Final = (
    ("multipleOf", "MultipleOf", _check_factor),
    ("minimum", "Minimum boundary", _check_least),
    ("maximum", "Maximum boundary", _check_most),
)


def _is_in_range(number: float, schema: _Schema, what: str, place: FieldPath, report: _Report) -> bool:
    """Return whether a value or limit is a number of the type and format of a schema; add a violation if it is not."""
    of_type, form = schema.get("type"), schema.get("format") or ""
    if of_type == "integer":
        low, high = _LIMITS.get(form, _LIMITS["int64"])
        fits = float(number).is_integer() and low <= number <= high
    else:
        fits = form not in _SINGLE or abs(number) <= _MOST_SINGLE
    if not fits:
        which = f"with format {form}" if form else "(default format)"
        report.add_for_root(place, f"{what} value must be of type {of_type} {which} in {report.name_of(place)}")
    return fits


_SINGLE: Final = frozenset({"float", "float32"})
_MOST_SINGLE: Final = (2 - 2.0**-23) * 2.0**127


def _check_list(value: list[Any], schema: _Schema, place: FieldPath, report: _Report) -> None:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            _check(item, items, (*place, index), report)
    if most is not None and len(value) > most:
        report.add(place, f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    if least is not None and len(value) < least:
        report.add_in_body(place, len(value), f"should have at least {least} items")


def _check_map(value: dict[str, Any], schema: _Schema, place: FieldPath, report: _Report, before: Any) -> None:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if least is not None and len(value) < least:
        report.add_in_body(place, len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        report.add(place, f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    for name in schema.get("required") or ():
        if name not in value:
            report.add_required(place, name)
    for name, item, below, earlier in _changed_fields(value, schema, before):
        _check(item, below, (*place, name), report, earlier)
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                report.add_required(place, name)


def _changed_fields(value: dict[str, Any], schema: _Schema, before: Any) -> Iterator[tuple[str, Any, _Schema, Any]]:
    """Yield the fields with a schema that do not equal their previous value: name, value, schema, previous value."""
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    otherwise = extra if isinstance(extra, dict) else None
    previous = before if isinstance(before, dict) else {}
    for name, item in value.items():
        below, earlier = known.get(name, otherwise), previous.get(name, MISSING)
        if below is not None and (earlier is MISSING or not equal_json(item, earlier)):
            yield name, item, below, earlier


def _outcomes(value: Any, options: Sequence[_Schema], place: FieldPath, report: _Report) -> list[list[SchemaViolation]]:
    """Return the violations of each of several schemas."""
    return [_outcome(value, option, place, report) for option in options]


def _outcome(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> list[SchemaViolation]:
    apart = _Report(report.path, report.name)
    _check(value, schema, place, apart)
    return apart.found


def _check_combinations(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> None:
    name = report.name_of(place)
    if schema.get("anyOf") and not (schema.get("x-kubernetes-int-or-string") and _is_int_or_string(schema["anyOf"])):
        outcomes = _outcomes(value, schema["anyOf"], place, report)
        if all(outcomes):
            report.add_for_root(place, f'"{name}" must validate at least one schema (anyOf)')
            report.found += outcomes[0]
    if schema.get("oneOf"):
        outcomes = _outcomes(value, schema["oneOf"], place, report)
        passed = outcomes.count([])
        if passed != 1:
            found = f"Found {passed} valid alternatives" if passed else "Found none valid"
            report.add_for_root(place, f'"{name}" must validate one and only one schema (oneOf). {found}')
            if not passed:
                report.found += outcomes[0]
    outcomes = _outcomes(value, schema.get("allOf") or (), place, report)
    if any(outcomes):
        report.found += (fault for outcome in outcomes for fault in outcome)
        report.add_for_root(place, f'"{name}" must validate all the schemas (allOf)')
    if schema.get("not") and not _outcome(value, schema["not"], place, report):
        report.add_for_root(place, f'"{name}" must not validate the schema (not)')


def _is_int_or_string(options: Any) -> bool:
    return bool(options == [{"type": "integer"}, {"type": "string"}])


def _check_lists(value: Any, schema: _Schema, place: FieldPath, report: _Report, before: Any = MISSING) -> None:
    """Report duplicate items of sets and keyed lists."""
    if isinstance(value, dict):
        for name, item, below, earlier in _changed_fields(value, schema, before):
            if isinstance(item, dict | list):
                _check_lists(item, below, (*place, name), report, earlier)
    elif isinstance(value, list):
        _check_duplicates(value, schema, place, report)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _check_lists(item, items, (*place, index), report)


def _check_duplicates(value: list[Any], schema: _Schema, place: FieldPath, report: _Report) -> None:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    names = schema.get("x-kubernetes-list-map-keys") or () if kind == "map" else ()
    seen: set[str] = set()
    for index, item in enumerate(value):
        if names and not isinstance(item, dict):
            continue
        key = {name: item[name] for name in sorted(names) if name in item} if names else item
        # Before they are stored, 1 and 1.0 differ.
        text = json.dumps(key)
        if text in seen:
            report.add((*place, index), f"Duplicate value: {go_json(key)}")
        seen.add(text)
