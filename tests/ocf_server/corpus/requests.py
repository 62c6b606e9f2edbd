"""Definitions of custom kinds and objects of them, as requests, and the facts of the answers that tests compare.

A definition is drawn, and its objects are created, replaced and applied; some are wrong.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from random import Random
from typing import Any, Final, NamedTuple

from tests.ocf_server.apiextensions.drawn import Drawn

Json = dict[str, Any]

GROUP: Final = "corpus.example.com"
NAMESPACE: Final = "corpus"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRAWN: Final = 220
"""Number of definitions."""
OBJECTS: Final = 15
"""Number of requests for objects of each definition."""
CREATED: Final = 201
_MASKED: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


class Request(NamedTuple):
    """A request.

    Args:
        body: The body; `$rv` in it stands for the resourceVersion in the last answer.
    """

    method: str
    path: str
    body: Json
    kind: str = "application/json"


class Definition(NamedTuple):
    """A definition with requests for its objects."""

    create: Request
    requests: tuple[Request, ...]

    @property
    def name(self) -> str:
        """The name of the definition."""
        return str(self.create.body["metadata"]["name"])

    @property
    def digest(self) -> str:
        """What changes if the generator draws other requests."""
        return sha256(json.dumps(self, sort_keys=True).encode()).hexdigest()[:12]


def drawn(seed: int) -> Definition:
    """Return a definition with its objects; equal seeds draw equal ones."""
    draw, names = Drawn(seed, limits=0.15 * (seed % 4)), Random(seed)  # noqa: S311 (test data)
    schema = draw.schema()
    schema["properties"] |= _ruled(schema["properties"], names)
    plural, kind = f"things{seed}", f"Thing{seed}"
    version: Json = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if seed % 3:
        version["subresources"] = {"status": {}}
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        "versions": [version],
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec,
    }
    return Definition(Request("POST", DEFINITIONS, definition), tuple(_requests(draw, schema, plural, kind)))


def _ruled(properties: Mapping[str, Json], random: Random) -> dict[str, Json]:
    """Return the parts of a schema that get a rule."""
    found = {}
    for name, part in properties.items():
        fields = [each for each, below in (part.get("properties") or {}).items() if below.get("type") == "integer"]
        if fields and random.random() < 0.7:
            field = random.choice(fields)
            rule = {"rule": f"!has(self.{field}) || self.{field} != 1", "message": f"{field} is one"}
            found[name] = {**part, "x-kubernetes-validations": [rule]}
    return found


def _requests(draw: Drawn, schema: Json, plural: str, kind: str) -> Iterator[Request]:
    path = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{plural}"
    for index in range(OBJECTS):
        wrong = 0.0 if index % 5 < 2 else 0.1
        name = f"o{index // 3}"
        body = draw.object(schema, wrong=wrong)
        body |= {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}}
        yield writes(path, index, body)


def writes(path: str, number: int, body: Json) -> Request:
    """Return one of the three writes that follow each other: a create, a replacement, an apply."""
    name = body["metadata"]["name"]
    match number % 3:
        case 0:
            return Request("POST", path, body)
        case 1:
            return Request("PUT", f"{path}/{name}", {**body, "metadata": {"name": name, "resourceVersion": "$rv"}})
        case _:
            apply = f"{path}/{name}?fieldManager=applier&force=true"
            return Request("PATCH", apply, body, "application/apply-patch+yaml")


def facts(status: int, warnings: list[str], answer: Any) -> Json:
    """Return what is compared of an answer: the code, the warnings, and the stored object or the problems."""
    found: Json = {"code": status, "warnings": sorted(warnings)}
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        causes = (answer.get("details") or {}).get("causes") or ()
        listed = sorted(f"{each.get('field')}: {each.get('message')}" for each in causes)
        # The message lists the causes in no order, and an apply stops at one of several undeclared fields.
        message = str(answer.get("message")).partition(" (" if "typed patch object" in str(answer) else "\0")[0]
        return found | {"reason": answer.get("reason"), "problems": listed or [message]}
    if isinstance(answer, dict) and answer.get("kind") != "CustomResourceDefinition":
        metadata = {name: value for name, value in answer.get("metadata", {}).items() if name not in _MASKED}
        found["object"] = {**answer, "metadata": metadata}
    return found


def version_of(answer: Any) -> str:
    """Return the resourceVersion in an answer; empty if it has none."""
    return str((answer.get("metadata") or {}).get("resourceVersion") or "") if isinstance(answer, dict) else ""


def filled(body: Json, version: str) -> Json:
    """Return the body of a request with the resourceVersion of the last answer."""
    metadata = body["metadata"]
    if metadata.get("resourceVersion") != "$rv":
        return body
    return {**body, "metadata": {**metadata, "resourceVersion": version or "1"}}
