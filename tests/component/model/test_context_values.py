"""Values of one reconcile under typed keys; https://github.com/operator-framework/java-operator-sdk/issues/1922."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.component import ContextKey
from ocf.component.model.context_values import ContextValues
from ocf.errors import ConfigError

VISITORS = ContextKey[int]("visitors")


@pytest.mark.parametrize("value", [3, 0, None], ids=["a number", "zero", "None"])
def test_a_value_that_was_set_is_there_whatever_it_is(value: Any) -> None:
    values = ContextValues()
    assert VISITORS not in values
    assert values.get(VISITORS, 7) == 7
    values[VISITORS] = value
    assert VISITORS in values
    assert values[VISITORS] == values.get(VISITORS, 7) == value
    values[VISITORS] = 4
    assert values[VISITORS] == 4


def test_keys_of_one_name_are_two_keys() -> None:
    values = ContextValues()
    values[VISITORS] = 3
    assert values.get(ContextKey[int]("visitors")) is None


def test_a_value_that_was_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match=r"ContextKey\('visitors'\) was not set in this reconcile"):
        ContextValues()[VISITORS]


def test_a_key_without_a_type_is_refused() -> None:
    values: Any = ContextValues()
    with pytest.raises(ConfigError, match="must be a ContextKey, got 'visitors'"):
        values["visitors"] = 3
