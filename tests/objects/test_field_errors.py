"""Findings print as the API server prints them."""

from typing import Any

import pytest

from ocf.errors import StatusCause
from ocf.objects.field_errors import (
    OMITTED,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_message,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(required("f"), "Required value", id="required"),
        pytest.param(required("f", "must be set"), "Required value: must be set", id="required with a reason"),
        pytest.param(forbidden("f", "not here"), "Forbidden: not here", id="forbidden"),
        pytest.param(too_long("f", 10), "Too long: may not be more than 10 bytes", id="too long"),
        pytest.param(too_long("f", 1), "Too long: may not be more than 1 byte", id="too long, one byte"),
        pytest.param(too_many("f", 21, 20), "Too many: 21: must have at most 20 items", id="too many"),
        pytest.param(too_many("f", 2, 1), "Too many: 2: must have at most 1 item", id="too many, one item"),
        pytest.param(not_found("f", "a"), 'Not found: "a"', id="not found"),
        pytest.param(invalid("f", OMITTED, "no"), "Invalid value: no", id="value left out"),
        pytest.param(duplicate("f", "a"), 'Duplicate value: "a"', id="duplicate"),
        pytest.param(invalid("f", -1, "no"), "Invalid value: -1: no", id="number"),
        pytest.param(invalid("f", "a", "no"), 'Invalid value: "a": no', id="text"),
        pytest.param(
            not_supported("f", "a", ("B", "C")), 'Unsupported value: "a": supported values: "B", "C"', id="set"
        ),
        pytest.param(invalid("f", [{"a": True}], "no"), 'Invalid value: [{"a":true}]: no', id="JSON"),
    ],
)
def test_the_message_says_the_kind_the_value_and_the_reason(error: FieldError, message: str) -> None:
    assert error.message == message
    assert str(error) == f"f: {message}"
    assert error.to_cause() == StatusCause(error.type.value, message, "f")


@pytest.mark.parametrize(
    ("text", "literal", "as_json"),
    [
        pytest.param('quo"te\\', r'"quo\"te\\"', r'"quo\"te\\"', id="quotes"),
        pytest.param("<&>", '"<&>"', r'"\u003c\u0026\u003e"', id="HTML"),
        pytest.param("\a\v\x7f", r'"\a\v\x7f"', '"\\u0007\\u000b\x7f"', id="controls"),
        pytest.param("\n\t", r'"\n\t"', r'"\n\t"', id="blanks"),
        pytest.param("\u200b\u2028", r'"\u200b\u2028"', '"\u200b\\u2028"', id="invisible"),
        pytest.param("\U000e0001", r'"\U000e0001"', '"\U000e0001"', id="beyond 16 bits"),
        pytest.param("ä€😀", '"ä€😀"', '"ä€😀"', id="letters and symbols"),
    ],
)
def test_a_text_prints_as_a_literal_or_as_json(text: str, literal: str, as_json: str) -> None:
    assert invalid("f", text, "").message == f"Invalid value: {literal}"
    assert invalid("f", text, "", as_json=True).message == f"Invalid value: {as_json}"


def test_errors_can_be_counted_even_with_values_that_cannot() -> None:
    error = invalid("f", [{"a": 1}], "no")

    assert len({error, invalid("f", [{"a": 1}], "no"), invalid("f", [], "no")}) == 2


def test_the_json_form_is_stable() -> None:
    assert invalid("spec.x", -1, "no").to_json() == {
        "path": "spec.x",
        "type": "FieldValueInvalid",
        "value": -1,
        "detail": "no",
        "message": "Invalid value: -1: no",
    }


class TestInvalidMessage:
    @pytest.mark.parametrize(
        ("errors", "said"),
        [
            pytest.param([required("a")], "a: Required value", id="one"),
            pytest.param([required("a"), required("b")], "[a: Required value, b: Required value]", id="two"),
            pytest.param([required("a"), required("a")], "a: Required value", id="one twice"),
        ],
    )
    def test_each_finding_is_said_once(self, errors: list[FieldError], said: str) -> None:
        assert invalid_message("web", errors) == f'HorizontalPodAutoscaler.autoscaling "web" is invalid: {said}'

    def test_the_kind_can_be_another(self) -> None:
        assert invalid_message("web", [required("a")], kind="Pod", group="").startswith('Pod "web" is invalid')
        assert invalid_message("web", [required("a")], kind="Scale").startswith('Scale.autoscaling "web" is invalid')


@pytest.mark.parametrize("kind", list(ErrorType))
def test_every_type_has_words(kind: ErrorType) -> None:
    assert FieldError("f", kind, "v").message.startswith(kind.words)


def test_a_finding_cannot_be_changed() -> None:
    error: Any = required("a")

    with pytest.raises(AttributeError):
        error.path = "b"
