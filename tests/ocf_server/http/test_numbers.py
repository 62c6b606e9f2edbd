"""Numbers of custom resources, on the embedded server and on a real one.

A whole number is stored as an integer however it is written, so that no client sees a change where there is none:
https://github.com/pipe-cd/pipecd/pull/1875, https://github.com/customcrud/terraform-provider-customcrud/issues/42
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from tests.support import eventually

if TYPE_CHECKING:
    from tests.ocf_server.http.conftest import Either, Reply

GROUP: Final = "numbers.example.com"
LIMITED: Final = {"type": "number", "multipleOf": 0.5, "minimum": 1.0, "maximum": 7.5}
PROPERTIES: Final[dict[str, Any]] = {
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "either": {"x-kubernetes-int-or-string": True},
    "text": {"type": "string"},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
    "given": {"type": "number", "default": 2.0},
    "limited": LIMITED,
    "checked": {
        "type": "object",
        "properties": {"number": {"type": "number"}, "whole": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.number) || self.number < 100.0", "message": "number"},
            {"rule": "!has(self.whole) || self.whole < 100", "message": "whole"},
        ],
    },
}
SPEC: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": PROPERTIES}
STATUS: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gauges.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gauges", "kind": "Gauge"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
            }
        ],
    },
}
HEAD: Final = f'"apiVersion": "{GROUP}/v1", "kind": "Gauge", "metadata": {{"name": "a"}}'
JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


@pytest_asyncio.fixture
async def gauges(either: Either) -> str:
    """Return the path of the gauges of a namespace."""
    await either.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await eventually(lambda: either.ask("GET", f"/apis/{GROUP}/v1/gauges"), lambda reply: reply.status == 200)
    return f"/apis/{GROUP}/v1/namespaces/{either.path.rpartition('/')[2]}/gauges"


def typed(value: Any) -> Any:
    """Return a value as text, in which 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True)


async def create(either: Either, gauges: str, spec: str, **query: str) -> Reply:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return await either.ask("POST", f"{gauges}?{asked}", f'{{{HEAD}, "spec": {spec}}}')


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        pytest.param('{"whole": 1.0}', {"whole": 1}, id="an integer with a fraction of zero"),
        pytest.param('{"whole": 1e2}', {"whole": 100}, id="an integer with an exponent"),
        pytest.param('{"number": 1.0}', {"number": 1}, id="a number"),
        pytest.param('{"number": -0.0}', {"number": 0}, id="minus zero"),
        pytest.param('{"number": 1e18}', {"number": 10**18}, id="a large number"),
        pytest.param('{"number": 1.50}', {"number": 1.5}, id="a fraction"),
        pytest.param('{"number": 1e300}', {"number": 1e300}, id="a number of more than 64 bits"),
        pytest.param('{"either": 1.0}', {"either": 1}, id="an integer or a text"),
        pytest.param('{"other": [1.0, {"a": 2.0}]}', {"other": [1, {"a": 2}]}, id="undeclared fields"),
        pytest.param('{"set": [1.5, 1]}', {"set": [1.5, 1]}, id="a set"),
        pytest.param('{"set": [1, 1.0]}', {"set": [1, 1]}, id="a set of two equal numbers"),
        pytest.param('{"checked": {"number": 5, "whole": 5}}', {"checked": {"number": 5, "whole": 5}}, id="rules"),
    ],
)
async def test_whole_numbers_are_stored_as_integers(
    either: Either, gauges: str, sent: str, stored: dict[str, Any]
) -> None:
    expected = typed({"given": 2, **stored})
    tried = await create(either, gauges, sent, dryRun="All")
    assert (tried.status, typed(tried.json["spec"])) == (201, expected)
    created = await create(either, gauges, sent)
    assert (created.status, typed(created.json["spec"])) == (201, expected)
    assert typed((await either.ask("GET", f"{gauges}/a")).json["spec"]) == expected
    assert typed((await either.ask("GET", gauges)).json["items"][0]["spec"]) == expected


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        pytest.param('{"text": 1.0}', 'must be of type string: "number"', id="a number for a text"),
        pytest.param('{"text": 1}', 'must be of type string: "integer"', id="an integer for a text"),
        pytest.param('{"whole": 9223372036854775808}', 'must be of type integer: "number"', id="more than 64 bits"),
        pytest.param('{"limited": 0.5}', "should be greater than or equal to 1", id="a minimum"),
        pytest.param('{"limited": 8.0}', "should be less than or equal to 7.5", id="a maximum"),
        pytest.param('{"limited": 8}', "must be positive: 0", id="an integer and a factor below 1"),
        pytest.param('{"limited": 1.25}', "should be a multiple of 0.5", id="a factor"),
        pytest.param('{"checked": {"number": 100}}', "number", id="a rule for a number"),
        pytest.param('{"checked": {"whole": 100.0}}', "whole", id="a rule for an integer"),
    ],
)
async def test_numbers_are_validated_as_they_were_sent(either: Either, gauges: str, sent: str, problem: str) -> None:
    reply = await create(either, gauges, sent)
    assert reply.status == 422
    assert problem in reply.json["message"]


@pytest.mark.parametrize("values", ['"whole": 1, "other": 3', '"whole": 1.0, "other": 3.0'])
async def test_an_apply_of_equal_numbers_changes_nothing(either: Either, gauges: str, values: str) -> None:
    created = (await create(either, gauges, '{"whole": 1.0, "other": 3.0}')).json
    body = f'{{{HEAD}, "spec": {{{values}}}}}'
    reply = await either.ask("PATCH", f"{gauges}/a?fieldManager=a", body, kind=APPLY)
    assert (reply.status, reply.json["metadata"]["generation"]) == (200, 1)
    assert typed(reply.json["spec"]) == typed(created["spec"])


@pytest.mark.parametrize(("value", "generation"), [("1", 1), ("1.0", 2)])
async def test_a_merge_is_compared_before_it_is_stored(
    either: Either, gauges: str, value: str, generation: int
) -> None:
    created = (await create(either, gauges, '{"whole": 1.0}')).json
    reply = await either.ask("PATCH", f"{gauges}/a", f'{{"spec": {{"whole": {value}}}}}', kind=MERGE)
    assert (reply.status, reply.json["metadata"]["generation"]) == (200, generation)
    assert typed(reply.json["spec"]) == typed(created["spec"])


async def test_another_number_is_a_conflict(either: Either, gauges: str) -> None:
    await create(either, gauges, '{"number": 2.0}')
    for value, status in (("2", 200), ("2.0", 200), ("2.5", 409)):
        body = f'{{{HEAD}, "spec": {{"number": {value}}}}}'
        assert (await either.ask("PATCH", f"{gauges}/a?fieldManager=b", body, kind=APPLY)).status == status


async def test_a_status_has_integers(either: Either, gauges: str) -> None:
    await create(either, gauges, "{}")
    reply = await either.ask("PATCH", f"{gauges}/a/status", '{"status": {"n": 2.0, "f": 7.50}}', kind=MERGE)
    assert typed(reply.json["status"]) == typed({"n": 2, "f": 7.5})


@pytest.mark.parametrize(("value", "status"), [("2", 200), ("2.0", 422), ("2e0", 422)])
async def test_a_json_patch_compares_the_texts_of_numbers(either: Either, gauges: str, value: str, status: int) -> None:
    await create(either, gauges, '{"number": 2.0}')
    test = f'[{{"op": "test", "path": "/spec/number", "value": {value}}}]'
    assert (await either.ask("PATCH", f"{gauges}/a", test, kind=JSON_PATCH)).status == status
