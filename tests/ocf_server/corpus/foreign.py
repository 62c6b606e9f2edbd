"""Definitions of other projects as requests, with samples of these projects and what changes to them make of those.

The definitions and samples are those that the tests of `ocf new kind` have recorded.
"""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, Final

from ocf.objects import copy_json
from tests.ocf_server.corpus.requests import DEFINITIONS, NAMESPACE, Definition, Json, Request, writes
from tests.scaffold.foreign_kind import corpus

__all__ = ["FOREIGN", "foreign"]

FOREIGN: Final = 60
"""Number of definitions."""
_OBJECTS: Final = 27
"""Number of requests for objects of each."""
_CHANGES: Final = (0, 1, 1, 2, 3)
_TEXTS: Final = ("", "a", "A b", "10m", "1.5", "x" * 70, "https://example.com/a", "2026-01-02T03:04:05Z", "10.0.0.1")
_NUMBERS: Final = (-1, 0, 1, 7, 70_000, 2**33)
_WRONG: Final = (None, "text", 7, 1.5, True, {"other": {"deep": 1}}, [{"other": 1}, None])
_DEEPEST: Final = 8


@cache
def _lines() -> tuple[tuple[Json, tuple[Json, ...]], ...]:
    pairs = zip(corpus.definitions(), corpus.cases(), strict=True)
    return tuple((definition, case.samples) for (definition, _), case in pairs)


def foreign(index: int) -> Definition:
    """Return a definition of another project, without the webhook that converts, with objects."""
    definition, samples = _lines()[index]
    spec = {name: value for name, value in definition["spec"].items() if name != "conversion"}
    return Definition(
        Request("POST", DEFINITIONS, {**definition, "spec": spec}), tuple(_requests(spec, samples, index))
    )


def _requests(spec: Json, samples: tuple[Json, ...], seed: int) -> Iterator[Request]:
    random = Random(seed)  # noqa: S311 (test data)
    (version,) = spec["versions"]
    place = f"/namespaces/{NAMESPACE}" if spec["scope"] == "Namespaced" else ""
    api_version = f"{spec['group']}/{version['name']}"
    path = f"/apis/{api_version}{place}/{spec['names']['plural']}"
    head = {"apiVersion": api_version, "kind": spec["names"]["kind"]}
    for number in range(_OBJECTS):
        body = copy_json(random.choice(samples)) if samples else {}
        for _ in range(random.choice(_CHANGES) if samples else 5):
            _change(body, version["schema"]["openAPIV3Schema"], random, 0)
        yield writes(path, number, {**body, **head, "metadata": {"name": f"o{number // 3}"}})


def _change(body: Json, schema: Json, random: Random, depth: int) -> None:
    """Change one place of an object, most often one that it has, to what its schema allows or to something else."""
    known = {
        name: below for name, below in (schema.get("properties") or {}).items() if depth or name in ("spec", *body)
    }
    extra = schema.get("additionalProperties")
    present = [name for name in body if name in known or isinstance(extra, dict)]
    names = present if present and random.random() < 0.7 else sorted(known)
    names = [name for name in names if name not in ("apiVersion", "kind", "metadata")]
    if not names:
        body["unknown"] = copy_json(random.choice(_WRONG))
        return
    name = random.choice(names)
    below = known.get(name) or extra or {}
    value = body.get(name)
    if isinstance(value, list) and value and isinstance(value[0], dict) and random.random() < 0.8:
        value, below = random.choice(value), below.get("items") or {}
    if isinstance(value, dict) and depth < _DEEPEST and random.random() < 0.85:
        _change(value, below, random, depth + 1)
    elif (choice := random.random()) < 0.2:
        body.pop(name, None)
    elif choice < 0.4:
        body[name] = copy_json(random.choice(_WRONG))
    else:
        body[name] = _value(below, random, depth + 1)


def _value(schema: Json, random: Random, depth: int) -> Any:
    """Return a value of the type of a schema; its limits and rules may forbid it."""
    if schema.get("enum"):
        return random.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            known = sorted(schema.get("properties") or {})
            some = random.sample(known, min(len(known), random.randint(0, 3))) if depth < _DEEPEST else []
            names = sorted({*some, *(schema.get("required") or ())})
            return {name: _value((schema.get("properties") or {}).get(name) or {}, random, depth + 1) for name in names}
        case "array":
            return [_value(schema.get("items") or {}, random, depth + 1) for _ in range(random.randint(0, 2))]
        case "integer" | "number":
            return random.choice(_NUMBERS)
        case "boolean":
            return random.random() < 0.5
        case _:
            return random.choice(_TEXTS)
