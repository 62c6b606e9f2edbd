"""For models of any shape: the server accepts what the model reads, refuses the rest, and defaults as it does."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf.runtime.crds import CRDVersion, GoDuration, crd
from ocf.runtime.crds.go_duration import GO_DURATION_PATTERN
from ocf.runtime.crds.markers import DECIMAL_PATTERN, DURATION_PATTERN
from ocf_server import EmbeddedCluster

names = st.sampled_from(["a", "b", "maxSize", "some_name"])
# Each type with a default that fits it.
scalars = st.sampled_from(
    [
        (int, 1),
        (Annotated[int, Field(ge=0, lt=3)], 2),
        (bool, True),
        (float, 0.5),
        (Annotated[str, Field(max_length=2)], "x"),
        (Annotated[str, Field(pattern="^[ab]*$")], "ab"),
        (int | str, "1"),
        (int | Literal["a", "ab"], "ab"),
        (Literal["a", "xyz"], "xyz"),
        (int | None, 3),
        (int | None, None),
    ]
)


def _model(fields: dict[str, tuple[tuple[Any, Any], bool]]) -> tuple[Any, Any]:
    declared: dict[str, Any] = {
        name: (kind, default if has else ...) for name, ((kind, default), has) in fields.items()
    }
    model = create_model("Part", **declared)
    given = {name: default for name, ((_, default), has) in fields.items() if not has}
    return model, model(**given)


def _grown(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.one_of(
        inner.map(lambda one: (GenericAlias(list, one[0]), [one[1]])),
        inner.map(lambda one: (GenericAlias(dict, (str, one[0])), {"k": one[1]})),
        st.dictionaries(names, st.tuples(inner, st.booleans()), max_size=3).map(_model),
    )


types = st.recursive(scalars, _grown, max_leaves=6)
models = st.dictionaries(names, st.tuples(types, st.booleans()), min_size=1, max_size=3).map(_model)
values = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 5, -1, 0.5, "", "a", "ab", "abc", "xyz"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names | st.just("k"), inner, max_size=3),
    max_leaves=5,
)


def _read(model: type[BaseModel], value: Any) -> BaseModel | None:
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return None


async def _stored(definition: Manifest, value: Any) -> Any:
    """Return the spec as it is stored; None if it is refused."""
    cluster = EmbeddedCluster()
    await cluster.apply(definition, field_manager="test")
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a", "namespace": "default"}}
    try:
        answer = await cluster.create({**shop, "spec": value}, field_manager="test")
    except InvalidError:
        return None
    return answer["spec"]


def _without_null(value: Any) -> Any:
    """Leave out what is null: whether that is absence or a value depends on the field."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value if item is not None] if isinstance(value, list) else value


@given(drawn=models, data=st.data())
def test_the_server_and_the_model_agree(drawn: tuple[type[BaseModel], BaseModel], data: st.DataObject) -> None:
    model, example = drawn
    definition = crd("example.com", CRDVersion("v1", create_model("Shop", spec=(model, ...))))
    value = data.draw(st.dictionaries(names, values, max_size=3) | st.just(json.loads(example.model_dump_json())))
    value = _without_null(value)
    wanted = _read(model, value)

    stored = asyncio.run(_stored(definition, value))

    if wanted is None:
        assert stored is None
    else:
        assert stored is not None
        assert model.model_validate(stored) == wanted


TEXTS: dict[str, tuple[TypeAdapter[Any], str, st.SearchStrategy[Any]]] = {
    "duration": (
        TypeAdapter(timedelta),
        DURATION_PATTERN,
        st.timedeltas(timedelta(days=-3_000_000), timedelta(days=3_000_000)),
    ),
    "Go duration": (
        TypeAdapter(GoDuration),
        GO_DURATION_PATTERN,
        st.timedeltas(timedelta(0), timedelta(days=3_000_000)),
    ),
    "decimal": (TypeAdapter(Decimal), DECIMAL_PATTERN, st.decimals(allow_nan=False, allow_infinity=False)),
}


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
def test_a_value_is_written_as_a_text_that_the_server_accepts_and_the_model_reads_again(
    name: str, data: st.DataObject
) -> None:
    adapter, pattern, drawn = TEXTS[name]
    value = data.draw(drawn)

    text = adapter.dump_python(value, mode="json")

    assert re.search(pattern, text)
    assert adapter.validate_python(text) == value


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
def test_the_model_reads_every_text_that_the_server_accepts(name: str, data: st.DataObject) -> None:
    adapter, pattern, _ = TEXTS[name]

    adapter.validate_python(data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)))
