"""Types of expressions and their errors, compared with the type checker of the API server (1.36.3).

`scripts/record/expression_types.py` records the answers.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from ocf_server.cel.compiler import CompiledRule, compiled
from ocf_server.cel.expressions import ExpressionError, checked_expression
from ocf_server.cel.runtime import Frame, StepMeter
from ocf_server.cel.types import schema_kind
from tests.ocf_server.cel.drawn import SCHEMA

FILE: Final = Path(__file__).parent / "recorded" / "types.jsonl.gz"
_SELF: Final = schema_kind(SCHEMA)
_NAMES: Final = {"null_type": "null", "google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


def ours(text: str) -> dict[str, str]:
    """Return the type of an expression, or its errors, in the form of a record."""
    assert _SELF is not None
    try:
        return {"type": str(checked_expression(text, {"self": _SELF, "oldSelf": _SELF}).checked.kind)}
    except ExpressionError as error:
        return {"error": error.text.removeprefix("compilation failed: ")}


def is_same(text: str, real: dict[str, str]) -> bool:
    """Return whether we agree on an expression: on its type, or, if it has one error, on its text."""
    found = ours(text)
    if "type" in real:
        wanted = real["type"]
        for name, shown in _NAMES.items():
            wanted = wanted.replace(name, shown)
        return found == {"type": wanted}
    # After the first error, and with type variables, the texts depend on how the checker of Go goes on.
    error = real["error"]
    is_single = error.count("ERROR: ") == 1 and "_var" not in error and "Syntax error" not in error
    return found == real if is_single else "error" in found


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).decode().splitlines()]


def test_drawn_expressions_have_the_types_and_errors_of_the_api_server() -> None:
    cases = recorded()
    different = [case for case in cases if not is_same(case["expression"], case["real"])]
    assert not different, f"{len(different)} of {len(cases)}, such as {different[:3]}"


def test_the_record_has_values_and_errors() -> None:
    answers = [case["real"] for case in recorded()]
    assert min(sum(name in answer for answer in answers) for name in ("type", "error")) > 300


def rule(text: str) -> CompiledRule:
    kind = schema_kind(SCHEMA)
    assert kind is not None
    return compiled({"rule": text}, SCHEMA, kind)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("self.?gone == null", False, id="an optional value without a value"),
        pytest.param("self.?gone != null", True, id="not null"),
        pytest.param("null == optional.none()", False, id="on the right side"),
        pytest.param("[self.?gone] == [null]", False, id="in a list"),
        pytest.param("int(duration('1s')) == 1000000000", True, id="nanoseconds of a duration"),
    ],
)
def test_an_optional_value_is_compared_with_null(text: str, *, value: bool) -> None:
    assert rule(text).run(Frame({"self": {}, "oldSelf": {}}, StepMeter())) is value
