"""Random sequences of requests for kinds whose versions have different schemas, for `scripts/record/sequences.py`."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]

GROUP: Final = "versions.example.com"
NAMESPACE: Final = "versions"
SEQUENCES_OF_EACH: Final = 36
STEPS: Final = (4, 8)
FORCED: Final = 0.5
VALID: Final = 0.85
SENT: Final = 0.6

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "integer"}


def _spec(**properties: Any) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def _items(**properties: Any) -> Json:
    item = {"type": "object", "required": ["name"], "properties": {"name": TEXT, **properties}}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item}


_NESTED: Final = {"type": "object", "properties": {"a": TEXT, "b": NUMBER}}

SCHEMAS: Final[Mapping[str, Mapping[str, Json]]] = {
    "Same": {"v1": _spec(size=NUMBER, color=TEXT), "v2": _spec(size=NUMBER, color=TEXT)},
    "Grown": {"v1": _spec(size=NUMBER), "v2": _spec(size=NUMBER, color=TEXT)},
    "Shrunk": {"v1": _spec(size=NUMBER, color=TEXT), "v2": _spec(size=NUMBER)},
    "Renamed": {"v1": _spec(size=NUMBER, color=TEXT), "v2": _spec(size=NUMBER, paint=TEXT)},
    "Defaulted": {
        "v1": _spec(size={**NUMBER, "default": 1}, color=TEXT),
        "v2": _spec(size={**NUMBER, "default": 2}, color={**TEXT, "default": "red"}, extra={**TEXT, "default": "x"}),
    },
    "Listed": {"v1": _spec(items=_items(port=NUMBER)), "v2": _spec(items=_items(port=NUMBER, protocol=TEXT))},
    "Nested": {
        "v1": _spec(part=_NESTED, size=NUMBER),
        "v2": _spec(part={"type": "object", "x-kubernetes-preserve-unknown-fields": True}, size=NUMBER),
    },
}

_VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "size": (3, 4),
    "color": ("green", "blue"),
    "paint": ("matte",),
    "extra": ("y",),
    "items": (
        [{"name": "a", "port": 1}],
        [{"name": "a", "port": 2}, {"name": "b", "port": 3}],
        [{"name": "b", "protocol": "TCP"}],
    ),
    "part": ({"a": "1"}, {"b": 2}, {"a": "2", "b": 3}, {"a": "1", "c": "unknown"}),
}


def _definition(kind: str, schemas: Mapping[str, Json]) -> Json:
    plural = f"{kind.lower()}s"
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}
        for name, schema in schemas.items()
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


class _Sequence:
    """Builds the requests for one object."""

    def __init__(self, kind: str, index: int, chance: random.Random) -> None:
        self._kind, self._name, self._chance = kind, f"one-{index}", chance
        self._fields = sorted({name for schema in SCHEMAS[kind].values() for name in _properties(schema)})

    def request(self, verb: str) -> Json:
        """Return a request with the verb, in a random version and with random fields."""
        version = self._chance.choice(("v1", "v2"))
        manager = self._chance.choice(("ann", "bob"))
        collection = f"/apis/{GROUP}/{version}/namespaces/{NAMESPACE}/{self._kind.lower()}s"
        path = f"{collection}/{self._name}"
        query = f"?fieldManager={manager}"
        match verb:
            case "get":
                return _request("GET", path)
            case "create":
                return _request("POST", collection + query, self._object(version))
            case "update":
                manifest = self._object(version)
                manifest["metadata"]["resourceVersion"] = "$rv"
                return _request("PUT", path + query, manifest)
            case "patch":
                body = {"spec": self._some() or {"size": 5}}
                return _request("PATCH", path + query, body, "application/merge-patch+json")
            case _:
                force = "&force=true" if self._chance.random() < FORCED else ""
                return _request("PATCH", path + query + force, self._object(version), "application/apply-patch+yaml")

    def _object(self, version: str) -> Json:
        head = {"apiVersion": f"{GROUP}/{version}", "kind": self._kind}
        allowed = _properties(SCHEMAS[self._kind][version])
        spec = self._some()
        if self._chance.random() < VALID:
            spec = {name: value for name, value in spec.items() if name in allowed}
        return {**head, "metadata": {"name": self._name, "namespace": NAMESPACE}, "spec": spec}

    def _some(self) -> Json:
        chosen = [name for name in self._fields if self._chance.random() < SENT]
        return {name: self._chance.choice(_VALUES[name]) for name in chosen}


def _properties(schema: Json) -> Json:
    found: Json = schema["properties"]["spec"]["properties"]
    return found


def _request(method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
    return {"method": method, "path": path, "body": body, "kind": kind}


def cases() -> Iterator[Json]:
    """Yield the sequences; the first one of each kind creates its definition."""
    chance = random.Random(15)  # noqa: S311 (test data)
    for kind, schemas in SCHEMAS.items():
        made = [_request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(kind, schemas))]
        for index in range(SEQUENCES_OF_EACH):
            sequence = _Sequence(kind, index, chance)
            verbs = [chance.choice(("create", "apply"))]
            verbs += chance.choices(("apply", "update", "patch", "get"), (5, 2, 2, 2), k=chance.randint(*STEPS))
            yield {
                "title": f"{kind} {index}",
                "namespace": NAMESPACE if not index else "",
                "setup": made if not index else [],
                "requests": [sequence.request(verb) for verb in verbs],
            }
