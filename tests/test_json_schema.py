"""The validator of recorded schemas."""

from typing import Any

import pytest

from tests.json_schema import problems

SCHEMA: dict[str, Any] = {
    "$ref": "#/definitions/Shop",
    "definitions": {
        "Shop": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "size": {"anyOf": [{"type": "number"}, {"enum": ["small", "large"]}]},
                "tags": {"type": "array", "items": {"const": "x"}},
                "open": {"type": ["boolean", "null"]},
                "more": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param({"name": "a", "size": 1, "tags": ["x"], "open": None, "more": {"y": 1.5}}, [], id="valid"),
        pytest.param({"name": "a", "size": "small", "open": True}, [], id="the other type"),
        pytest.param([], ["$: [] is not of type object"], id="another type"),
        pytest.param({}, ["$.name: required"], id="required"),
        pytest.param({"name": "a", "nam": 1}, ["$.nam: not allowed"], id="not allowed"),
        pytest.param({"name": "a", "size": "big"}, ["$.size: 'big' is not of type number"], id="neither"),
        pytest.param({"name": "a", "size": True}, ["$.size: True is not of type number"], id="a boolean"),
        pytest.param({"name": "a", "tags": ["x", "y"]}, ["$.tags[1]: 'y' is none of ['x']"], id="an item"),
        pytest.param({"name": "a", "more": {"y": "1"}}, ["$.more.y: '1' is not of type number"], id="a value"),
    ],
)
def test_each_keyword_is_checked(value: object, found: list[str]) -> None:
    assert problems(SCHEMA, value) == found


def test_a_keyword_that_is_not_supported_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="pattern"):
        problems({"type": "string", "pattern": "a+"}, "a")
