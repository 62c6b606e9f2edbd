"""Laws of the generated models, for any structural schema: an object that the schema allows is kept as it is."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.objects import write_model
from ocf.scaffold.foreign_kind import ForeignKind
from ocf.scaffold.foreign_kind.sample import minimal_sample
from tests.scaffold.foreign_kind.execution import compiled

Json = dict[str, Any]
Case = tuple[Json, st.SearchStrategy[Any]]

NAMES: Final = st.one_of(
    st.sampled_from(
        ["name", "class", "isCA", "items", "metadata", "spec", "status", "kind", "int", "fooBar", "foo_bar"]
    ),
    st.text(min_size=1, max_size=8),
)
TEXTS: Final = st.text(max_size=8)
ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


def enumerated(values: list[str]) -> Case:
    return {"type": "string", "enum": values}, st.sampled_from(values)


def bounded(low: int, size: int) -> Case:
    return {"type": "integer", "minimum": low, "maximum": low + size}, st.integers(low, low + size)


def sized(low: int, size: int) -> Case:
    return {"type": "string", "minLength": low, "maxLength": low + size}, st.text(min_size=low, max_size=low + size)


SCALARS: Final[st.SearchStrategy[Case]] = st.one_of(
    st.just(({"type": "string"}, TEXTS)),
    st.just(({"type": "boolean"}, st.booleans())),
    st.just(({"type": "number"}, st.integers() | st.floats(allow_nan=False, allow_infinity=False))),
    st.just(({"x-kubernetes-int-or-string": True}, st.integers() | TEXTS)),
    st.just(({"x-kubernetes-preserve-unknown-fields": True}, ANYTHING.filter(lambda value: value is not None))),
    st.just(({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, st.dictionaries(TEXTS, ANYTHING))),
    st.just(({"type": "string", "format": "byte"}, TEXTS)),
    st.lists(TEXTS, min_size=1, max_size=20, unique=True).map(enumerated),
    st.builds(bounded, st.integers(-(2**40), 2**40), st.integers(0, 9)),
    st.builds(sized, st.integers(0, 3), st.integers(0, 9)),
)


def listed(case: Case) -> Case:
    return {"type": "array", "items": case[0]}, st.lists(case[1], max_size=3)


def mapped(case: Case) -> Case:
    return {"type": "object", "additionalProperties": case[0]}, st.dictionaries(TEXTS, case[1], max_size=3)


def nullable(case: Case) -> Case:
    return {**case[0], "nullable": True}, case[1] | st.none()


def described(case: Case, text: str) -> Case:
    return {**case[0], "description": text}, case[1]


def an_object(properties: dict[str, Case], required: list[bool]) -> Case:
    wanted = [name for name, chosen in zip(properties, required, strict=False) if chosen]
    schema: Json = {"type": "object", "properties": {name: case[0] for name, case in properties.items()}}
    values = {name: case[1] for name, case in properties.items()}
    optional = {name: value for name, value in values.items() if name not in wanted}
    objects = st.fixed_dictionaries({name: values[name] for name in wanted}, optional=optional)
    return schema | ({"required": wanted} if wanted else {}), objects


def objects_of(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    return st.builds(an_object, st.dictionaries(NAMES, inner, min_size=1, max_size=5), st.lists(st.booleans()))


SCHEMAS: Final = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(listed),
        inner.map(mapped),
        inner.map(nullable),
        st.builds(described, inner, st.text(max_size=300)),
        objects_of(inner),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(objects_of(SCHEMAS), st.data())
def test_an_object_that_the_schema_allows_is_kept(case: Case, data: st.DataObject) -> None:
    schema, specs = case
    model = compiled("Cache", {"type": "object", "properties": {"spec": schema}})
    manifest = {"apiVersion": "example.com/v1", "kind": "Cache", "spec": data.draw(specs)}

    assert write_model(model.model_validate(manifest)) == manifest


@settings(deadline=None, max_examples=60)
@given(objects_of(SCHEMAS))
def test_the_smallest_object_is_accepted(case: Case) -> None:
    schema = {"type": "object", "properties": {"spec": case[0]}}
    kind = ForeignKind(group="example.com", version="v1", kind="Cache", cluster_scoped=True, schema=schema, ready="")
    sample = minimal_sample(kind)

    assert write_model(compiled("Cache", schema).model_validate(sample)) == sample
