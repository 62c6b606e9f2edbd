"""Expressions of CEL, drawn from a seeded generator: functions and operators of values of all types."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

_TEXT: Final = {"type": "string"}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "gone": _TEXT,
        "number": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": True},
        "at": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list": {"type": "array", "items": _TEXT},
        "keyed": {"type": "array", "items": {"type": "object", "properties": {"name": _TEXT}}},
        "nested": {"type": "object", "properties": {"a": _TEXT}},
        "other": {"type": "object", "properties": {"a": _TEXT}},
    },
}
"""The schema of `self`."""

VALUES: Final = (
    *(f"self.{name}" for name in SCHEMA["properties"] if name != "gone"),
    *("self", "null", "[]", "{}", "1u", "'a'", "b'a'", "1", "1.0", "true", "int", "type(1)", "type([])"),
    *("dyn(1)", "dyn([])", "[1]", "[null]", "[[]]", "[dyn(1)]", "{'a': 1}", "{1: null}", "[self.nested]"),
    *("quantity('1')", "url('http://a')", "ip('1.1.1.1')", "semver('1.0.0')"),
    *("optional.of(1)", "optional.none()", "optional.of(null)", "optional.of([])", "optional.of(dyn(1))"),
    *("optional.of(self.nested)", "[optional.of(1)]", "self.?gone", "self.?nested", "self.nested.?a"),
    *("{}.?a", "[].first()"),
)
ONE: Final = (
    *("type({0})", "size({0})", "{0}.size()", "!{0}", "-{0}", "{0}.a", "has({0}.a)", "{0}.?a", "{0}[0]"),
    *("{0}.hasValue()", "{0}.value()", "string({0})", "int({0})", "[{0}].sum()", "[{0}].min()", "{0}.map(x, x)"),
    *("{0}.all(x, x == null)", "{0}.exists_one(x, true)", "{0}.transformList(i, v, v)", "{0}.transformMap(i, v, v)"),
    *("optional.ofNonZeroValue({0})", "optional.unwrap([{0}])", "{0}.first()", "{0}.sortBy(x, x)", "dyn({0})"),
    *("{0}.startsWith('a')", "{0}.getHours()", "[{0}].isSorted()", "{0}.join()", "{0}.flatten()", "{0}.slice(0, 1)"),
)
TWO: Final = (
    *("{0} == {1}", "{0} in {1}", "{0} + {1}", "{0} < {1}", "{0} && {1}", "self.flag ? {0} : {1}", "{0}[{1}]"),
    *("[{0}, {1}]", "[?{0}, {1}]", "{{'a': {0}, 'b': {1}}}", "{{{0}: {1}}}", "{0}[?{1}]", "{0}.orValue({1})"),
    *("{0}.or({1})", "[{0}].map(x, [x, {1}])", "[{0}].exists(x, x == {1})", "{0}.optMap(x, x == {1})"),
    *("{0}.optFlatMap(x, {1})", "[{0}].indexOf({1})", "sets.contains([{0}], [{1}])", "[{0}].filter(x, {1})"),
)


def expressions(count: int, seed: int = 0) -> Iterator[str]:
    """Yield expressions of one or two functions; equal seeds draw equal expressions."""
    random = Random(seed)  # noqa: S311 (test data)

    def value(depth: int) -> str:
        if not depth or random.random() < 0.2:
            return random.choice(VALUES)
        if random.random() < 0.4:
            return random.choice(ONE).format(value(depth - 1))
        return f"({random.choice(TWO).format(value(depth - 1), value(depth - 1))})"

    for index in range(count):
        if index % 3:
            yield random.choice(TWO).format(random.choice(VALUES), random.choice(VALUES))
        else:
            yield value(2)
