"""Hypothesis strategies of custom resources, built from the schemas of their models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

from ocf.errors import ConfigError, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, read_live
from ocf.runtime.crds import VersionedResource
from ocf.runtime.crds.model_manifests import write_nullable

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError:
    raise ConfigError("random objects need the package hypothesis: pip install 'ocf[testing]'") from None

__all__ = ["objects_of"]

_MOST_ITEMS: Final = 3
_LONGEST: Final = 8
_LARGEST: Final = 2**31

_Schema = Mapping[str, Any]


def objects_of(
    resource: VersionedResource, version: str = "", *, fields: Mapping[str, SearchStrategy[Any]] | None = None
) -> SearchStrategy[Manifest]:
    """Return a strategy of objects, for property tests.

    The objects comply with the schema of their version, and its model can read them. Rules in CEL are not considered:
    filter the objects, or give strategies of the fields.

    Args:
        resource: The resource with its versions.
        version: The version of the objects; empty for any of them.
        fields: Strategies of fields that the schema does not describe well enough, by their paths: `spec.schedule`,
            `spec.ports[].name`, `spec.limits.*` for the values of a map.

    Raises:
        ConfigError: If the package hypothesis is not installed, or a path of `fields` is in no version.

    Example:
        >>> from hypothesis import given
        >>> from ocf.runtime.crds import CRDVersion, VersionedResource
        >>> from pydantic import BaseModel, Field
        >>> class Quota(BaseModel):
        ...     limit: int = Field(ge=1, le=9)
        >>> quotas = VersionedResource("example.com", [CRDVersion("v1", Quota)])
        >>> @given(objects_of(quotas))
        ... def test_limits(quota):
        ...     assert quota["kind"] == "Quota" and 1 <= quota["limit"] <= 9
        >>> test_limits()
    """
    given = dict(fields or {})
    used: set[str] = set()
    schemas = {one["name"]: one["schema"]["openAPIV3Schema"] for one in resource.definition()["spec"]["versions"]}
    names = [resource.version(version).name] if version else list(schemas)
    drawn = []
    for name in names:
        content = _Builder(given, used).build(schemas[name], "")
        drawn.append(content.map(_reader(resource, name)).filter(bool))
    if unknown := sorted(given.keys() - used):
        raise ConfigError(f"{resource.name} has no field {', '.join(unknown)} in {', '.join(names)}")
    return st.one_of(drawn)


def _reader(resource: VersionedResource, version: str) -> Callable[[Manifest], Manifest]:
    """Return a function that completes an object; it returns an empty one if the model cannot read the content."""
    model: type[BaseModel] = resource.version(version).model
    head: Manifest = {"apiVersion": f"{resource.group}/{version}", "kind": resource.kind, "metadata": {"name": "any"}}

    def read(content: Manifest) -> Manifest:
        try:
            written = write_nullable(read_live({**content, **head}, model))
        except ManifestError:
            return {}
        return {**written, **head}

    return read


class _Builder:
    """Builds strategies of the values of a schema."""

    def __init__(self, fields: Mapping[str, SearchStrategy[Any]], used: set[str]) -> None:
        self._fields, self._used = fields, used

    def build(self, schema: _Schema, path: str) -> SearchStrategy[Any]:
        """Return the strategy of the values at a path."""
        if path in self._fields:
            self._used.add(path)
            return self._fields[path]
        found = self._value(schema, path)
        return st.none() | found if schema.get("nullable") else found

    def _value(self, schema: _Schema, path: str) -> SearchStrategy[Any]:
        if "enum" in schema:
            return st.sampled_from(list(schema["enum"]))
        if schema.get("x-kubernetes-int-or-string"):
            return _numbers(schema) | _texts(schema)
        kinds: dict[Any, Callable[[], SearchStrategy[Any]]] = {
            "object": lambda: self._object(schema, path),
            "array": lambda: self._list(schema, path),
            "integer": lambda: _numbers(schema),
            "number": lambda: _numbers(schema),
            "boolean": st.booleans,
            "string": lambda: _texts(schema),
        }
        return kinds[schema["type"]]() if "type" in schema else _anything()

    def _object(self, schema: _Schema, path: str) -> SearchStrategy[Any]:
        properties: Mapping[str, _Schema] = schema.get("properties", {})
        if not properties and "additionalProperties" in schema:
            values = self.build(schema["additionalProperties"], f"{path}.*")
            least, most = _sizes(schema, "Properties")
            return st.dictionaries(_words(), values, min_size=least, max_size=most)
        if not properties:
            return st.dictionaries(_words(), _anything(), max_size=_MOST_ITEMS)
        made = {name: self.build(each, f"{path}.{name}".lstrip(".")) for name, each in properties.items()}
        required = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: each for name, each in made.items() if name in required},
            optional={name: each for name, each in made.items() if name not in required},
        )

    def _list(self, schema: _Schema, path: str) -> SearchStrategy[Any]:
        items = self.build(schema["items"], f"{path}[]")
        keys: list[str] = schema.get("x-kubernetes-list-map-keys", [])
        unique: Callable[[Any], Any] | None = None
        if keys:
            unique = lambda item: str([item.get(key) for key in keys])  # noqa: E731 (a value, as the other branch)
        elif schema.get("x-kubernetes-list-type") == "set":
            unique = repr
        least, most = _sizes(schema, "Items")
        return st.lists(items, unique_by=unique, min_size=least, max_size=most)


def _sizes(schema: _Schema, what: str) -> tuple[int, int]:
    least = int(schema.get(f"min{what}", 0))
    most = least + _MOST_ITEMS
    return least, min(int(schema.get(f"max{what}", most)), most)


def _numbers(schema: _Schema) -> SearchStrategy[Any]:
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    if schema.get("type") == "number":
        return st.floats(least, most, exclude_min=above, exclude_max=below, allow_nan=False, allow_infinity=False)
    step = schema.get("multipleOf", 1)
    found = st.integers(
        -_LARGEST if least is None else int(least) + above, _LARGEST if most is None else int(most) - below
    )
    return found if step == 1 else found.map(lambda value: value - value % int(step))


def _texts(schema: _Schema) -> SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return st.datetimes(timezones=st.just(UTC)).map(lambda time: time.isoformat().replace("+00:00", "Z"))
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        pattern = str(schema["pattern"])
        # In Python, $ also matches before a line feed at the end.
        exact = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
        found = st.from_regex(exact, alphabet=_characters())
        return found.filter(lambda text: least <= len(text) and (most is None or len(text) <= most))
    return st.text(_characters(), min_size=least, max_size=max(least, min(most or _LONGEST, least + _LONGEST)))


def _words() -> SearchStrategy[str]:
    return st.text("abc-", min_size=1, max_size=_LONGEST)


def _characters() -> SearchStrategy[str]:
    return st.characters(codec="ascii", exclude_categories=["Cc"])


def _anything() -> SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers(-9, 9) | _words()
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words(), inner, max_size=2)
    )
