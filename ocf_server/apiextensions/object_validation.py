"""Validation of custom resources by their schemas.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation. The
error texts, including the unhelpful ones, are those of a real API server.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ocf.errors import FieldProblem
from ocf.objects.go_strings import go_quoted
from ocf.objects.json_equality import equal_json
from ocf.objects.paths import FieldPath
from ocf.schema.builtin import MISSING
from ocf_server.api.numbers import go_int64, go_number, is_multiple, is_whole
from ocf_server.api.status_errors import go_value
from ocf_server.apiextensions.embedded_objects import embedded_problems
from ocf_server.apiextensions.formats import is_of_format, is_supported

if TYPE_CHECKING:
    from ocf_server.cel.regexp import Regexp

__all__ = ["SchemaViolation", "duplicate_faults", "schema_faults", "value_faults"]

_Schema = Mapping[str, Any]

_LIMITS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


_FORMS: Final[Mapping[str, str]] = {"integer": "int64", "number": "float64"}
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

    def add_at(self, path: str, detail: str) -> None:
        self.found.append(SchemaViolation(FieldProblem(path, detail), ()))

    def add_in_body(self, place: FieldPath, shown: Any, what: str) -> None:
        self.add(place, f"Invalid value: {go_value(shown)}: {self.name_of(place)} in body {what}")

    def add_number(self, place: FieldPath, shown: float, what: str) -> None:
        self.add(place, f"Invalid value: {go_number(shown)}: {self.name_of(place)} in body {what}")

    def add_for_root(self, place: FieldPath, what: str) -> None:
        """Add a violation that a real API server reports for the root of the checked value."""
        problem = FieldProblem(self.path or "<nil>", f'Invalid value: "": {what}')
        self.found.append(SchemaViolation(problem, place))

    def add_invalid_type(self, place: FieldPath, wanted: str, found: str) -> None:
        shown = go_quoted(found)
        self.add(place, f"Invalid value: {shown}: {self.name_of(place)} in body must be of type {wanted}: {shown}")

    def distinct(self) -> list["SchemaViolation"]:
        """Return the violations without those whose text is known, which several schemas of one value report."""
        if len(self.found) > 1:
            self.found = list({str(each.problem): each for each in reversed(self.found)}.values())[::-1]
        return self.found

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
    report.distinct()
    report.found += (SchemaViolation(problem, ()) for problem in embedded_problems(value, schema, path))
    _check_lists(value, schema, path, report)
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
    return report.distinct()


def duplicate_faults(value: Any, schema: _Schema, *, before: Any = MISSING) -> list[SchemaViolation]:
    """Return the duplicate items of sets and keyed lists in a value.

    Args:
        before: As for `value_faults`.

    Example:
        >>> print(duplicate_faults(["a", "a"], {"x-kubernetes-list-type": "set"})[0].problem)
        [1]: Duplicate value: "a"
    """
    report = _Report("", "")
    _check_lists(value, schema, "", report, before)
    return report.found


def _check(value: Any, schema: _Schema, place: FieldPath, report: _Report, before: Any = MISSING) -> None:
    """Add violations in the order of `SchemaValidator` in k8s.io/kube-openapi/pkg/validation/validate."""
    _check_type(value, schema, place, report)
    if value is not None:
        if not _COMBINATIONS.isdisjoint(schema):
            _check_combinations(value, schema, place, report)
        if isinstance(value, str):
            _check_text(value, schema, place, report)
        elif isinstance(value, list):
            _check_list(value, schema, place, report)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(value, schema, place, report)
    allowed = schema.get("enum")
    if allowed and not any(_equals_option(value, option) for option in allowed):
        listed = ", ".join(go_quoted(item if isinstance(item, str) else go_value(item)) for item in allowed)
        report.add(place, f"Unsupported value: {go_value(value)}: supported values: {listed}")
    if isinstance(value, dict):
        _check_map(value, schema, place, report, before)


def _equals_option(value: Any, option: Any) -> bool:
    """Return whether a value equals an option of an enum, after Go's conversion to the type of the option."""
    if value is None or option is None:
        # No option equals a null, not even a null.
        return False
    if _is_number(value) and _is_number(option):
        return go_int64(value) == option if isinstance(option, int) else float(value) == option
    if isinstance(option, str) and isinstance(value, int) and not isinstance(value, bool):
        # Go converts an integer to the character of that number.
        return option == (chr(value) if _is_character(value) else "\ufffd")
    return equal_json(value, option)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SURROGATES: Final = (0xD800, 0xDFFF)


def _is_character(number: int) -> bool:
    return 0 <= number <= sys.maxunicode and not _SURROGATES[0] <= number <= _SURROGATES[1]


_COMBINATIONS: Final = frozenset({"anyOf", "oneOf", "allOf", "not"})
_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def _types(schema: _Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return _EITHER
    return (schema["type"],) if schema.get("type") else ()


_EITHER: Final = ("integer", "string")


def _format(schema: _Schema) -> str:
    """Return the format of a schema; empty if the API server does not validate it."""
    name = schema.get("format")
    if not name:
        return ""
    types = _types(schema)
    return str(name) if is_supported(name, types[0] if len(types) == 1 else "") else ""


def _check_type(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> None:
    types = _types(schema)
    found = _TYPE_NAMES.get(value.__class__, "null")
    if found in types or (not types and "format" not in schema):
        return
    if found == "null":
        if types and not schema.get("nullable"):
            report.add_invalid_type(place, ",".join(types), found)
        return
    fits = (found == "number" and "integer" in types and is_whole(value)) or (found == "integer" and "number" in types)
    form, has_text = _format(schema), found in {"string", "array"}
    if form and not has_text and not fits and _FORMS.get(found, "") != form:
        report.add_invalid_type(place, form, _FORMS.get(found, ""))
    elif form and has_text and "number" not in types and "integer" not in types:
        # Only the format of these values is checked, and only if they are strings.
        return
    elif not fits:
        report.add_invalid_type(place, ",".join(types), found)


def _check_text(value: str, schema: _Schema, place: FieldPath, report: _Report) -> None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    # Of these, the first violation is reported only.
    if longest is not None and len(value) > longest:
        report.add(place, f"Too long: may not be more than {longest} bytes")
    elif shortest is not None and len(value) < shortest:
        report.add_in_body(place, value, f"should be at least {shortest} chars long")
    elif pattern and not _parsed(pattern).matches(value):
        report.add_in_body(place, value, f"should match '{pattern}'")
    form = _format(schema)
    if form and not is_of_format(value, form):
        report.add_invalid_type(place, form, value)


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
    types, form = _types(schema), _format(schema)
    of_type = types[0] if len(types) == 1 else ""
    if of_type == "integer":
        low, high = _LIMITS.get(form, _LIMITS["int64"])
        fits = float(number).is_integer() and low <= number <= high
    else:
        fits = of_type != "number" or form != "float" or abs(number) <= _MOST_SINGLE
    if not fits:
        which = f"with format {form}" if form else "(default format)"
        report.add_for_root(place, f"{what} value must be of type {of_type} {which} in {report.name_of(place)}")
    return fits


_MOST_SINGLE: Final = (2 - 2.0**-23) * 2.0**127


def _check_list(value: list[Any], schema: _Schema, place: FieldPath, report: _Report) -> None:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            _check(item, items, (*place, index), report)
    if least is not None and len(value) < least:
        report.add_in_body(place, len(value), f"should have at least {least} items")
    if most is not None and len(value) > most:
        report.add(place, f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")


def _check_map(value: dict[str, Any], schema: _Schema, place: FieldPath, report: _Report, before: Any) -> None:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if least is not None and len(value) < least:
        report.add_in_body(place, len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        report.add(place, f"Too many: {len(value)}: must have at most {most} item{'' if most == 1 else 's'}")
    for name, item, below, earlier in _changed_fields(value, schema, before):
        _check(item, below, (*place, name), report, earlier)
    for name in schema.get("required") or ():
        if name not in value:
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


def _outcome(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> list[SchemaViolation]:
    apart = _Report(report.path, report.name)
    _check(value, schema, place, apart)
    return apart.found


def _check_combinations(value: Any, schema: _Schema, place: FieldPath, report: _Report) -> None:
    name = go_quoted(report.name_of(place))
    if options := schema.get("anyOf"):
        outcomes = [_outcome(value, option, place, report) for option in options]
        if all(outcomes):
            report.add_for_root(place, f"{name} must validate at least one schema (anyOf)")
            report.found += outcomes[_closest(value, options)]
    if options := schema.get("oneOf"):
        outcomes = [_outcome(value, option, place, report) for option in options]
        passed = outcomes.count([])
        if passed != 1:
            found = f"Found {passed} valid alternatives" if passed else "Found none valid"
            report.add_for_root(place, f"{name} must validate one and only one schema (oneOf). {found}")
            if not passed:
                report.found += outcomes[_closest(value, options)]
    if options := schema.get("allOf"):
        outcomes = [_outcome(value, option, place, report) for option in options]
        if any(outcomes):
            report.found += (fault for outcome in outcomes for fault in outcome)
            none = ". None validated" if all(outcomes) else ""
            report.add_for_root(place, f"{name} must validate all the schemas (allOf){none}")
    if isinstance(schema.get("not"), dict) and not _outcome(value, schema["not"], place, report):
        report.add_for_root(place, f"{name} must not validate the schema (not)")


def _closest(value: Any, options: Sequence[_Schema]) -> int:
    """Return the index of the schema of which a value fulfils most; of several the first."""
    counts = [_fulfilled(value, option) for option in options] if len(options) > 1 else [0]
    return counts.index(max(counts))


def _fulfilled(value: Any, schema: _Schema) -> int:
    """Return how much of a schema a value fulfils, as the API server counts it (`MatchCount`)."""
    apart = _Report("", "")
    _check_type(value, schema, (), apart)
    of_type = not apart.found
    if value is None:
        return int(of_type)
    # One for the schema, for its combinations twice, and for its enum.
    count = 4 + (1 + of_type if _types(schema) or _format(schema) else 0)
    for keyword in ("anyOf", "oneOf", "allOf"):
        count += _fulfilled_options(value, keyword, schema.get(keyword) or ())
    if isinstance(value, str):
        return count + 1 + bool(_format(schema))
    if isinstance(value, list):
        items = schema.get("items")
        return count + 2 + (sum(_fulfilled(item, items) for item in value) if isinstance(items, dict) else 0)
    if isinstance(value, dict):
        return count + 1 + sum(_fulfilled(item, below) for _, item, below, _ in _changed_fields(value, schema, MISSING))
    return count + (0 if isinstance(value, bool) else 2)


def _fulfilled_options(value: Any, keyword: str, options: Sequence[_Schema]) -> int:
    if keyword == "allOf" or not options:
        return sum(_fulfilled(value, option) for option in options)
    apart = _Report("", "")
    valid = [option for option in options if not _outcome(value, option, (), apart)]
    if keyword == "oneOf" and len(valid) > 1:
        return 0
    return _fulfilled(value, valid[0] if valid else options[_closest(value, options)])


def _check_lists(value: Any, schema: _Schema, path: str, report: _Report, before: Any = MISSING) -> None:
    """Report duplicate items of sets and keyed lists; in the paths of these, the keys of maps are in brackets."""
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        for name, item, below, earlier in _changed_fields(value, schema, before):
            if isinstance(item, dict | list):
                start = f"{path}.{name}" if path else name
                _check_lists(item, below, start if name in known else f"{path}[{name}]", report, earlier)
    elif isinstance(value, list):
        _check_duplicates(value, schema, path, report)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _check_lists(item, items, f"{path}[{index}]", report)


def _check_duplicates(value: list[Any], schema: _Schema, path: str, report: _Report) -> None:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    names = schema.get("x-kubernetes-list-map-keys") or () if kind == "map" else ()
    if names:
        for index, item in enumerate(value):
            if not isinstance(item, dict | None):
                text = "must be an object for an array of list-type map"
                report.add_at(f"{path}[{index}]", f"Invalid value: {go_value(item)}: {text}")
                return
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        key = {name: item[name] for name in names if name in (item or ())} if names else item
        # Before they are stored, 1 and 1.0 differ, but for those in a value that is compared as a text.
        text = go_value(key) if len(names) > 1 or (isinstance(item, list | dict) and not names) else json.dumps(key)
        seen[text] = seen.get(text, 0) + 1
        # A third one is not reported.
        if seen[text] == _TWICE:
            report.add_at(f"{path}[{index}]", f"Duplicate value: {go_value(key)}")


_TWICE: Final = 2
