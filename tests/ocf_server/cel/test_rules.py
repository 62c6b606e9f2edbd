"""CEL rules: every rule and every object gives a result, within the cost limits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import BadRequestError
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.cel import broken_rules, compiled_rules, evaluator, rule_problems, rule_texts
from ocf_server.cel.conversions import shown
from ocf_server.cel.functions import FUNCTIONS
from ocf_server.cel.macros import MACROS
from ocf_server.cel.types import schema_kind
from ocf_server.cel.values import value_of

RULES: Final = "x-kubernetes-validations"
TEXT: Final = {"type": "string"}
KEYED: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
ITEM: Final = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "v": TEXT}}
FIELDS: Final[dict[str, Any]] = {
    "text": TEXT,
    "number": {"type": "integer"},
    "share": {"type": "number"},
    "flag": {"type": "boolean"},
    "either": {"x-kubernetes-int-or-string": True},
    "at": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "wait": {"type": "string", "format": "duration"},
    "raw": {"type": "string", "format": "byte"},
    "maybe": {"type": "object", "nullable": True, "properties": {"a": TEXT}},
    "map": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
    "list": {"type": "array", "items": {"type": "string", "nullable": True}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "keyed": {"type": "array", **KEYED, "items": ITEM},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
}
SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}


def ruled(*rules: Any, **fields: Any) -> dict[str, Any]:
    """Return the schema of an object with rules for its spec."""
    given = [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]
    spec = {"type": "object", "properties": fields or FIELDS, RULES: given}
    return {"type": "object", "properties": {"spec": spec}}


def violations(schema: dict[str, Any], spec: Any, old: Any = None) -> list[str]:
    """Return the violations of the rules for an object."""
    rules = compiled_rules(schema)
    assert rules is not None
    before = None if old is None else {"spec": old}
    return [str(problem) for problem in broken_rules(rules, {"spec": spec}, before, [])]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2)
OBJECTS = st.dictionaries(st.sampled_from(sorted(FIELDS)), JSON, max_size=3)
ATOMS = st.sampled_from(
    [
        *(f"self.{name}" for name in FIELDS),
        *("oldSelf.number", "self", "1", "-2", "0.5", "'a'", "r'\\d'", "b'x'", "true", "null", "[]", "{}", "[1, 2]"),
        *("self.?text", "self.map[?'a']", "[?self.?number, 1]", "{?'a': self.?either}", "ip('::1')", "url('/x')", "3u"),
        *(
            "{'a': 1}",
            "duration('1h')",
            "timestamp('2026-01-01T00:00:00Z')",
            "quantity('1')",
            "x",
            "int",
            "9223372036854775807",
        ),
    ]
)
OPERATORS = ("<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "%", "in", "&&", "||")
NAMES = sorted({name for name in FUNCTIONS if name.replace(".", "").isalnum()} | {"has", "type", "foo"})
METHODS = sorted({name for name, member, _ in MACROS if member})


def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions that contain other expressions."""
    return st.one_of(
        st.builds("({} {} {})".format, below, st.sampled_from(OPERATORS), below),
        st.builds("{}.{}({})".format, below, st.sampled_from(NAMES), st.lists(below, max_size=2).map(", ".join)),
        st.builds("{}({})".format, st.sampled_from(NAMES), st.lists(below, max_size=2).map(", ".join)),
        st.builds("{}.{}(x, {})".format, below, st.sampled_from(METHODS), below),
        st.builds("({} ? {} : {})".format, below, below, below),
        st.builds("{}[{}]".format, below, below),
        st.builds("{}[?{}]".format, below, below),
        st.builds("{}.?a".format, below),
        st.builds("{}.{}(x, y, {})".format, below, st.sampled_from(METHODS), below),
        st.builds("[{}, {}]".format, below, below),
        st.builds("!{}".format, below),
        st.builds("-{}".format, below),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=4)


def is_valid(schema: dict[str, Any]) -> bool:
    """Return whether a schema is valid; an unsupported feature in it is also an acceptable result."""
    try:
        return not rule_texts(schema, "schema") and not rule_problems(schema, "schema")
    except BadRequestError as error:
        assert error.message.startswith("the embedded cluster cannot evaluate ")  # noqa: PT017
        return False


@given(expression=EXPRESSIONS, new=OBJECTS, old=st.none() | OBJECTS)
def test_every_expression_is_evaluated_or_rejected(expression: str, new: dict[str, Any], old: Any) -> None:
    for rule in (f"dyn({expression}) == 1", f"[{expression}].size() > 2", expression):
        schema = ruled(rule)
        if is_valid(schema):
            violations(schema, new, old)


@given(rule=st.text(max_size=20), message=st.text(max_size=5), path=st.text(max_size=8))
def test_every_text_is_compiled_or_rejected(rule: str, message: str, path: str) -> None:
    schema = ruled({"rule": rule, "message": message, "messageExpression": rule, "fieldPath": path})
    if is_valid(schema):
        violations(schema, {})


@given(new=OBJECTS)
def test_every_value_is_converted(new: dict[str, Any]) -> None:
    assert schema_kind(SCHEMA) is not None
    value_of({"spec": new}, SCHEMA)


@settings(max_examples=50)
@given(left=OBJECTS, right=OBJECTS)
def test_equality_is_symmetric(left: dict[str, Any], right: dict[str, Any]) -> None:
    one, other = (violations(ruled("self == oldSelf"), *pair) for pair in ((left, right), (right, left)))
    assert bool(one) == bool(other)


class TestSteps:
    """Cost limits of rules."""

    LONG: Final = {"list": {"type": "array", "items": {"type": "integer"}}}

    @pytest.mark.parametrize(
        "rule",
        [
            pytest.param("self.list.all(x, self.list.all(y, x + y < 0 || true))", id="loops in loops"),
            pytest.param("self.list.all(x, self.list == self.list)", id="comparing again and again"),
            pytest.param("self.list.all(x, !(-1 in self.list))", id="searching again and again"),
            pytest.param("self.list.map(x, self.list).size() > 0 && self.list.all(x, self.list.sum() >= 0)", id="sums"),
        ],
    )
    def test_a_rule_that_exceeds_the_limit_is_stopped(self, rule: str) -> None:
        (problem,) = violations(ruled(rule, **self.LONG), {"list": [*range(5000)]})
        assert problem == (
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation "
            f"rules will be run due to call cost exceeds limit for rule: {rule}"
        )

    def test_no_rule_is_evaluated_after_an_exceeded_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evaluator, "MAX_STEPS", 10_000)
        schema = ruled("self.list.all(x, self.list.all(y, true))", "false", **self.LONG)
        assert len(violations(schema, {"list": [*range(5000)]})) == 1

    def test_all_rules_together_have_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evaluator, "_MAX_TOTAL_STEPS", 100_000)
        item = {"type": "integer", RULES: [{"rule": f"[{', '.join(map(str, range(2000)))}].all(x, x >= 0)"}]}
        problems = violations(
            {"type": "object", "properties": {"spec": {"type": "array", "items": item}}}, [*range(3000)]
        )
        assert len(problems) == 1
        assert "cost" in problems[0]

    def test_a_regular_expression_takes_linear_time(self) -> None:
        text = {"type": "string", RULES: [{"rule": "self.matches('^(a+)+$')"}]}
        (problem,) = violations({"type": "object", "properties": {"spec": text}}, "a" * 5000 + "b")
        assert problem.endswith("failed rule: self.matches('^(a+)+$')")


class TestParserLibrary:
    def test_the_library_is_imported_with_the_first_rule(self) -> None:
        code = (
            "import sys, ocf_server, ocf.cli\n"
            "ocf_server.EmbeddedCluster()\n"
            "names = 'lark', 'ocf_server.cel'\n"
            "print([name for name in names if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
        assert done.stdout == "[]\n"

    async def test_a_definition_with_rules_is_rejected_without_the_library(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "lark", None)
        message = "the embedded cluster cannot evaluate CEL expressions; install ocf[cel], or remove them"
        with pytest.raises(BadRequestError) as caught:
            await EmbeddedCluster().create(definition(ruled("self.number > 1")), field_manager="author")
        assert caught.value.message == message

    def test_a_schema_without_rules_compiles_to_none(self) -> None:
        assert compiled_rules(SCHEMA) is None


def definition(schema: dict[str, Any]) -> Manifest:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Gizmo", "plural": "gizmos"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_an_error_at_a_letter_beyond_ascii_has_a_fullwidth_mark() -> None:
    (problem,) = rule_problems(ruled("'é' == é"), "schema")
    pointer = ".\N{FULLWIDTH FULL STOP}.....\N{FULLWIDTH CIRCUMFLEX ACCENT}"
    assert str(problem).endswith(f"the expression cannot be read here\n | 'é' == é\n | {pointer}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-123456.5, "-123456.5"),
        (1234567.0, "1.234567e+06"),
        (1e100, "1e+100"),
        (float("inf"), "+Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_have_the_format_of_go(value: float, text: str) -> None:
    assert shown(value) == text
