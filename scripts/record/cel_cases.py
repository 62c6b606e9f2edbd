"""Expressions in CEL, as rules of CustomResourceDefinitions, for `scripts/record/sequences.py`.

Each expression that can be evaluated is a rule that fails, with the formatted value in its message, so that one create
shows the values of all of them, and the texts of those that fail. All invalid expressions are rejected with their
definition. The expressions are in `cel_expressions.txt`.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.record.admission_cases.policies import binding, create, policy

Json = dict[str, Any]

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUP: Final = "cel.example.com"
_SHORT: Final[Json] = {"type": "string", "maxLength": 40}
_FIELDS: Final[Json] = {
    "text": _SHORT,
    "gone": _SHORT,
    "number": {"type": "integer"},
    "share": {"type": "number"},
    "flag": {"type": "boolean"},
    "either": {"x-kubernetes-int-or-string": True, "maxLength": 40},
    "at": {"type": "string", "format": "date-time", "maxLength": 40},
    "wait": {"type": "string", "format": "duration", "maxLength": 40},
    "raw": {"type": "string", "format": "byte", "maxLength": 40},
    "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    "list": {"type": "array", "maxItems": 5, "items": _SHORT},
    "keyed": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": _SHORT, "v": _SHORT}},
    },
    "nested": {"type": "object", "properties": {"a": _SHORT, "b": {"type": "object", "properties": {"c": _SHORT}}}},
    "no-de": _SHORT,
}
_SPEC: Final[Json] = {
    "text": "abc",
    "number": 7,
    "share": 1.5,
    "flag": True,
    "either": "50%",
    "at": "2026-01-02T03:04:05Z",
    "wait": "90s",
    "raw": "YWJj",
    "map": {"x": 1, "y": 2},
    "list": ["b", "a", "b"],
    "keyed": [{"name": "one", "v": "1"}, {"name": "two"}],
    "nested": {"a": "A"},
    "no-de": "dash",
}

_EXPRESSIONS: Final = Path(__file__).parent / "cel_expressions.txt"
_RULES_OF_A_DEFINITION: Final = 60


def _expressions() -> dict[str, list[str]]:
    """Return the expressions by the headings of the file; no rule has the estimated cost of `only in policies`."""
    found: dict[str, list[str]] = {}
    for line in filter(None, _EXPRESSIONS.read_text(encoding="utf-8").splitlines()):
        if heading := re.fullmatch(r"\[([a-z ]+)\]", line):
            found[heading[1]] = []
        else:
            found[next(reversed(found))].append(line)
    return found


def _request(method: str, path: str, body: Json) -> Json:
    return {"method": method, "path": path, "body": body, "kind": "application/json"}


def _definition(plural: str, rules: Sequence[Json]) -> Json:
    spec = {"type": "object", "properties": _FIELDS, "x-kubernetes-validations": list(rules)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    kind = plural.capitalize()
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{kind}List"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    return _request("POST", _CRDS, body)


def _object(plural: str, spec: Json, name: str = "one") -> Json:
    head = {"apiVersion": f"{_GROUP}/v1", "kind": plural.capitalize()}
    return {**head, "metadata": {"name": name, "resourceVersion": "$rv"}, "spec": spec}


def _create(plural: str, spec: Json) -> Json:
    body = _object(plural, spec)
    del body["metadata"]["resourceVersion"]
    return _request("POST", f"/apis/{_GROUP}/v1/{plural}", body)


def _shown(expression: str) -> Json:
    text = f"'%s'.format([{expression}])"
    return {"rule": f"{text} == ''", "messageExpression": text}


def _previous() -> Iterator[Json]:
    """Yield cases with the optional previous value."""
    rules = (
        "!oldSelf.hasValue() || oldSelf.value().number <= self.number",
        "oldSelf.optMap(o, o.text == self.text).orValue(true)",
        "oldSelf.?text.orValue('abc') == 'abc'",
    )
    plural = "previous"
    made = _definition(plural, [{"rule": rule, "optionalOldSelf": True} for rule in rules])
    path = f"/apis/{_GROUP}/v1/{plural}/one"
    updates = ({"number": 2, "text": "abc"}, {"number": 1, "text": "abc"}, {"number": 3, "text": "x"}, {"number": 2})
    requests = [_create(plural, {"number": 1, "text": "abc"})]
    requests += [_request("PUT", path, _object(plural, spec)) for spec in updates]
    yield {"title": "an optional previous value", "namespace": "", "setup": [made], "requests": requests}
    wrong = (("self.number == 1", True), ("oldSelf == 1", True), ("oldSelf.hasValue()", False))
    for index, (rule, optional) in enumerate(wrong):
        bad = _definition(f"previous{index}", [{"rule": rule, "optionalOldSelf": optional}])
        yield {"title": f"a bad optional previous value: {rule}", "namespace": "", "setup": [bad], "requests": []}


def _in_policies(expressions: Sequence[str]) -> Iterator[Json]:
    """Yield cases with a policy for each expression."""
    for index, expression in enumerate(expressions):
        name = f"cel-{index}"
        shown = _shown(expression)
        validation = {"expression": shown["rule"], "messageExpression": shown["messageExpression"]}
        made = [policy(name, validation), binding(name, name)]
        yield {"title": expression, "namespace": name, "setup": made, "requests": [create(name, text="abc")]}


def cases() -> Iterator[Json]:
    """Yield all cases: a definition with rules, and the creation of an object that shows their values."""
    expressions = _expressions()
    invalid, costly = expressions.pop("invalid"), expressions.pop("only in policies")
    for title, texts in expressions.items():
        for start in range(0, len(texts), _RULES_OF_A_DEFINITION):
            plural = f"{title.replace(' ', '')}{start}"
            made = _definition(plural, [_shown(text) for text in texts[start : start + _RULES_OF_A_DEFINITION]])
            yield {"title": plural, "namespace": "", "setup": [made], "requests": [_create(plural, _SPEC)]}
    for start in range(0, len(invalid), _RULES_OF_A_DEFINITION):
        rules = [{"rule": text} for text in invalid[start : start + _RULES_OF_A_DEFINITION]]
        made = _definition(f"invalid{start}", rules)
        yield {"title": f"invalid expressions from {start}", "namespace": "", "setup": [made], "requests": []}
    yield from _in_policies(costly)
    yield from _previous()
