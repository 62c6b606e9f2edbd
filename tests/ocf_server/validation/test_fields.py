"""Rules for single fields say what the API server says."""

from collections.abc import Iterator
from typing import Any

import pytest

from ocf.objects.field_errors import FieldError
from ocf_server.validation import fields

_PORT_RANGE = "must be between 1 and 65535, inclusive"


@pytest.mark.parametrize(
    ("errors", "texts"),
    [
        pytest.param(fields.nonnegative(0, "f"), [], id="zero is not negative"),
        pytest.param(fields.nonnegative(None, "f"), [], id="a missing number is not negative"),
        pytest.param(
            fields.nonnegative(-1, "f"), ["f: Invalid value: -1: must be greater than or equal to 0"], id="negative"
        ),
        pytest.param(
            fields.positive(0, "f"), ["f: Invalid value: 0: must be greater than zero"], id="zero, not positive"
        ),
        pytest.param(fields.port_number(65536, "f"), [f"f: Invalid value: 65536: {_PORT_RANGE}"], id="port"),
        pytest.param(fields.port_number_or_name("http", "f"), [], id="name of a port"),
        pytest.param(
            fields.port_number_or_name("8--0", "f"),
            [
                'f: Invalid value: "8--0": must contain at least one letter (a-z)',
                'f: Invalid value: "8--0": must not contain consecutive hyphens',
            ],
            id="wrong name of a port",
        ),
        pytest.param(
            fields.required_enumeration("", ("A",), "f"), ["f: Required value"], id="an empty value is missing"
        ),
        pytest.param(
            fields.enumeration("a", ("A", "B"), "f"),
            ['f: Unsupported value: "a": supported values: "A", "B"'],
            id="enumeration",
        ),
        pytest.param(
            fields.quantity_not_negative("-1000m", "f"),
            ['f: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative quantity",
        ),
        pytest.param(
            fields.positive_int_or_percent("10", "f"),
            [
                (
                    'f: Invalid value: "10": a valid percent string must be a numeric string followed by an ending '
                    "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                )
            ],
            id="percentage",
        ),
        pytest.param(fields.immutable([], None, "f"), [], id="an empty list is a missing list"),
        pytest.param(fields.immutable(0, None, "f"), ["f: Invalid value: 0: field is immutable"], id="zero is set"),
        pytest.param(fields.immutable(None, 3, "f"), ["f: Invalid value: null: field is immutable"], id="removed"),
        pytest.param(
            fields.label_selector({"matchExpressions": [{"key": "a", "operator": "In"}]}, "f"),
            ["f.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
            id="In without values",
        ),
        pytest.param(
            fields.label_selector({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}, "f"),
            [
                (
                    "f.matchExpressions[0].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            ],
            id="Exists with values",
        ),
        pytest.param(
            fields.label_selector({"matchExpressions": [{"key": "a", "operator": "is", "values": ["b"]}]}, "f"),
            ['f.matchExpressions[0].operator: Invalid value: "is": not a valid selector operator'],
            id="operator",
        ),
    ],
)
def test_a_rule_finds_what_the_api_server_finds(errors: Iterator[FieldError], texts: list[str]) -> None:
    assert list(map(str, errors)) == texts


@pytest.mark.parametrize(
    ("selector", "shown"),
    [
        pytest.param(None, None, id="missing"),
        pytest.param({}, {}, id="empty"),
        pytest.param(
            {"matchExpressions": [{"operator": "Exists", "key": "a", "values": []}]},
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            id="expression",
        ),
    ],
)
def test_a_selector_is_shown_in_the_order_of_its_struct(selector: Any, shown: Any) -> None:
    assert fields.shown_selector(selector) == shown
    assert str(fields.shown_selector(selector)) == str(shown)
