"""CustomResourceDefinitions that change, end, and have a status of clients: the embedded API server and a real one.

Public reports of watches after a change of a definition: https://github.com/kubernetes/kubernetes/issues/74105,
https://github.com/kubernetes/kubernetes/issues/71138, https://github.com/kubernetes/kubernetes/pull/78029,
https://github.com/kubernetes/kubernetes/issues/113966; of definitions that end:
https://github.com/kubernetes/kubernetes/issues/121490, https://github.com/kubernetes/kubernetes/pull/60542,
https://github.com/chaos-mesh/chaos-mesh/issues/2109; of names that conflict later:
https://github.com/kubernetes/kubernetes/pull/46101; of factors with fractions:
https://github.com/ajv-validator/ajv/issues/2353, https://github.com/python-jsonschema/jsonschema/issues/666.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import aiohttp
import pytest

from ocf.objects import Manifest
from tests.ocf_server.http.conftest import Either
from tests.support import eventually

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE: Final = "application/merge-patch+json"
FREE: Final[Mapping[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"

Change: TypeAlias = Callable[[Manifest], object]
Event: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Things:
    """A kind that is served by an API server.

    Attributes:
        definition: The path of its definition.
        group: Its group.
    """

    either: Either
    definition: str
    group: str
    schema: Mapping[str, Any]

    def objects(self, version: str = "v1") -> str:
        namespace = self.either.path.rpartition("/")[2]
        return f"/apis/{self.group}/{version}/namespaces/{namespace}/things"

    def thing(self, name: str, **changed: Any) -> Manifest:
        return {"apiVersion": f"{self.group}/v1", "kind": "Thing", "metadata": {"name": name}, **changed}

    async def create(self, name: str, *finalizers: str) -> None:
        thing = self.thing(name, metadata={"name": name, "finalizers": list(finalizers)})
        # A real API server answers 429 while it sets up the storage of the kind.
        await eventually(lambda: self.either.ask("POST", self.objects(), thing), lambda reply: reply.status == 201)

    async def read(self) -> Manifest:
        found: Manifest = (await self.either.ask("GET", self.definition)).json
        return found

    async def replace(self, change: Change, *, subresource: str = "") -> int:
        live = await self.read()
        change(live)
        return (await self.either.ask("PUT", self.definition + subresource, live)).status

    async def delete(self, query: str = "") -> Manifest:
        reply = await self.either.ask("DELETE", self.definition + query)
        assert reply.status == 200
        found: Manifest = reply.json
        return found

    async def version(self) -> str:
        return str((await self.either.ask("GET", self.objects())).json["metadata"]["resourceVersion"])

    @asynccontextmanager
    async def watch(self, since: str, version: str = "v1") -> AsyncIterator[aiohttp.ClientResponse]:
        ask = self.either.ask
        query = {"watch": "true", "resourceVersion": since}
        async with ask.session.get(ask.url + self.objects(version), params=query) as response:
            assert response.status == 200
            yield response


async def until_the_end(response: aiohttp.ClientResponse) -> list[Event]:
    """Return the events until the server ends the watch."""
    async with asyncio.timeout(600):
        return [shown(line) async for line in response.content]


def shown(line: bytes) -> Event:
    event = json.loads(line)
    return event["type"], event["object"].get("metadata", {}).get("name") or event["object"].get("message", "")


@pytest.fixture
async def things(either: Either, request: pytest.FixtureRequest) -> AsyncIterator[Things]:
    """Return a kind with two served versions, and the schema that a test gives as parameter."""
    group = f"{either.path.rpartition('/')[2]}.example.com"
    schema = getattr(request, "param", FREE)
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
                for name in ("v1", "v2")
            ],
        },
    }
    found = Things(either, f"{DEFINITIONS}/things.{group}", group, schema)
    assert (await either.ask("POST", DEFINITIONS, definition)).status == 201
    await eventually(lambda: either.ask("GET", found.objects("v2")), lambda reply: reply.status == 200)
    yield found
    await either.ask("DELETE", found.definition)


def add_field(definition: Manifest) -> None:
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": dict(FREE)}


def add_column(definition: Manifest) -> None:
    column = {"name": "Size", "type": "string", "jsonPath": ".spec.size"}
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [column]


def add_short_name(definition: Manifest) -> None:
    definition["spec"]["names"]["shortNames"] = [f"t{definition['metadata']['name'].split('.')[1]}"]


def add_version(definition: Manifest) -> None:
    versions = definition["spec"]["versions"]
    versions.append({**versions[1], "name": "v3"})


def unserve(index: int) -> Change:
    return lambda definition: definition["spec"]["versions"][index].update(served=False)


def remove_version(definition: Manifest) -> None:
    del definition["spec"]["versions"][1]


def store_other_version(definition: Manifest) -> None:
    for version in definition["spec"]["versions"]:
        version["storage"] = not version["storage"]


def refuse_names(definition: Manifest) -> None:
    definition["status"]["acceptedNames"]["shortNames"] = ["other"]


@pytest.mark.parametrize("watched", ["v1", "v2"])
@pytest.mark.parametrize(
    ("change", "subresource"),
    [
        pytest.param(add_field, "", id="schema"),
        pytest.param(add_column, "", id="printer column"),
        pytest.param(add_short_name, "", id="short name"),
        pytest.param(add_version, "", id="a new version"),
        pytest.param(unserve(0), "", id="v1 is no longer served"),
        pytest.param(unserve(1), "", id="v2 is no longer served"),
        pytest.param(remove_version, "", id="v2 is removed"),
        pytest.param(store_other_version, "", id="the other version is stored"),
        pytest.param(refuse_names, "/status", id="accepted names"),
    ],
)
async def test_a_change_that_concerns_the_storage_ends_the_watches(
    things: Things, change: Change, subresource: str, watched: str
) -> None:
    """Without an event; what happened before is sent first, and the version that they had reached is too old then."""
    since = await things.version()
    async with things.watch(since, watched) as response:
        await things.create("one")
        assert shown(await response.content.readline()) == ("ADDED", "one")
        assert await things.replace(change, subresource=subresource) == 200
        assert await until_the_end(response) == []
    served = [version["name"] for version in (await things.read())["spec"]["versions"] if version["served"]]
    if watched not in served:
        return

    async def again() -> tuple[int, list[Event]]:
        ask = things.either.ask
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": "600"}
        async with ask.session.get(ask.url + things.objects(watched), params=query) as response:
            return response.status, await until_the_end(response) if response.status == 200 else []

    status, events = await eventually(again, lambda found: found[0] != 429)
    assert (status, len(events), events[0][0]) == (200, 1, "ERROR")
    assert events[0][1].startswith("too old resource version: ")


def add_label(definition: Manifest) -> None:
    definition["metadata"]["labels"] = {"a": "b"}


def add_condition(definition: Manifest) -> None:
    definition["status"]["conditions"].append({"type": "Checked", "status": "True"})


@pytest.mark.parametrize(
    ("change", "subresource"),
    [
        pytest.param(add_label, "", id="label"),
        pytest.param(add_condition, "/status", id="condition"),
        pytest.param(lambda _: None, "", id="nothing"),
    ],
)
async def test_other_changes_of_a_definition_end_no_watch(things: Things, change: Change, subresource: str) -> None:
    async with things.watch(await things.version()) as response:
        assert await things.replace(change, subresource=subresource) == 200
        await things.create("one")
        assert shown(await response.content.readline()) == ("ADDED", "one")


@pytest.mark.parametrize("watched", ["v1", "v2"])
async def test_the_objects_of_a_deleted_definition_are_deleted_before_the_watches_end(
    things: Things, watched: str
) -> None:
    """In both versions, although only one is stored."""
    await things.create("one")
    await things.create("two")
    async with things.watch(await things.version(), watched) as response:
        await things.delete()
        assert sorted(await until_the_end(response)) == [("DELETED", "one"), ("DELETED", "two")]
    ask = things.either.ask
    await eventually(lambda: ask("GET", things.objects(watched) + "?watch=true"), lambda reply: reply.status == 404)


async def test_a_definition_that_ends_reports_that_and_creates_no_objects(things: Things) -> None:
    """As long as a finalizer keeps an object; its other requests are answered."""
    ask, path = things.either.ask, things.objects()
    await things.create("one", "example.com/kept")
    answer = await things.delete("?propagationPolicy=Foreground")
    assert answer["metadata"]["finalizers"] == [CLEANUP]
    assert answer["metadata"]["generation"] == 1
    assert "deletionGracePeriodSeconds" not in answer["metadata"]
    assert rows(answer)[2] == ("Terminating", "True", "InstanceDeletionPending")
    await eventually(things.read, lambda found: rows(found)[2] == ("Terminating", "True", "InstanceDeletionInProgress"))

    what = f"things.{things.group}"
    refused = "is forbidden: create not allowed while custom resource definition is terminating"
    generated = things.thing("", metadata={"generateName": "one-"})
    for method, at, body, kind, name in (
        ("POST", path, things.thing("two"), "application/json", ' "two"'),
        ("POST", path, things.thing("one"), "application/json", ' "one"'),
        ("POST", path, generated, "application/json", ""),
        ("PATCH", f"{path}/two?fieldManager=me", things.thing("two"), "application/apply-patch+yaml", ' "two"'),
    ):
        reply = await ask(method, at, body, kind=kind)
        assert (reply.status, reply.json["message"]) == (403, f"{what}{name} {refused}")
    assert (await ask("PUT", f"{path}/two", things.thing("two"))).status == 404
    applied = await ask(
        "PATCH", f"{path}/one?fieldManager=me", things.thing("one"), kind="application/apply-patch+yaml"
    )
    assert applied.status == 200
    assert await things.replace(add_short_name) == 200

    await eventually(things.read, lambda found: bool(found["status"]["acceptedNames"].get("shortNames")))
    released = await ask("PATCH", f"{path}/one", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert released.status == 200
    await eventually(lambda: ask("GET", things.definition), lambda reply: reply.status == 404)


async def test_a_definition_that_a_finalizer_keeps_reports_that_its_objects_are_gone(things: Things) -> None:
    assert await things.replace(lambda found: found["metadata"].update(finalizers=["kept"])) == 200
    await things.delete()
    found = await eventually(things.read, lambda live: live["metadata"]["finalizers"] == ["kept"])
    assert rows(found)[2] == ("Terminating", "False", "InstanceDeletionCompleted")
    await things.either.ask("PATCH", things.definition, {"metadata": {"finalizers": None}}, kind=MERGE)


Row: TypeAlias = tuple[str, str, str]


def rows(definition: Manifest) -> list[Row]:
    """Return type, status and reason of the conditions."""
    conditions = definition["status"].get("conditions") or ()
    return [(item["type"], item["status"], item.get("reason", "")) for item in conditions]


ACCEPTED: Final[Row] = ("NamesAccepted", "True", "NoConflicts")
ESTABLISHED: Final[Row] = ("Established", "True", "InitialNamesAccepted")
OWN: Final[Row] = ("Checked", "True", "")


def edit_condition(of_type: str, **changed: str) -> Change:
    def change(definition: Manifest) -> None:
        next(item for item in definition["status"]["conditions"] if item["type"] == of_type).update(changed)

    return change


def drop_conditions(*types: str) -> Change:
    def change(definition: Manifest) -> None:
        status = definition["status"]
        status["conditions"] = [item for item in status["conditions"] if item["type"] not in types]

    return change


def set_status(**fields: Any) -> Change:
    return lambda definition: definition["status"].update(fields)


def add_first(definition: Manifest) -> None:
    definition["status"]["conditions"].insert(0, {"type": "Checked", "status": "True"})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(add_condition, [ACCEPTED, ESTABLISHED, OWN], id="a new condition"),
        pytest.param(add_first, [OWN, ACCEPTED, ESTABLISHED], id="a new condition at the start"),
        pytest.param(
            edit_condition("NamesAccepted", status="False", reason="Mine"),
            [("NamesAccepted", "False", "Mine"), ESTABLISHED],
            id="another NamesAccepted",
        ),
        pytest.param(
            edit_condition("Established", reason="Mine"),
            [ACCEPTED, ("Established", "True", "Mine")],
            id="another reason of Established",
        ),
        pytest.param(
            edit_condition("Established", status="False", reason="Mine"),
            [ACCEPTED, ESTABLISHED],
            id="Established is set again",
        ),
        pytest.param(drop_conditions("Established"), [ACCEPTED, ESTABLISHED], id="without Established"),
        pytest.param(drop_conditions("NamesAccepted"), [ESTABLISHED], id="without NamesAccepted"),
        pytest.param(drop_conditions("NamesAccepted", "Established"), [], id="without conditions"),
        pytest.param(lambda found: found.pop("status"), [ACCEPTED, ESTABLISHED], id="without a status"),
        pytest.param(set_status(storedVersions=[]), [ACCEPTED, ESTABLISHED], id="without stored versions"),
        pytest.param(set_status(observedGeneration=7), [ACCEPTED, ESTABLISHED], id="observed generation"),
        pytest.param(refuse_names, [ACCEPTED, ESTABLISHED], id="other accepted names"),
        pytest.param(
            set_status(acceptedNames={"plural": "", "kind": ""}), [ACCEPTED, ESTABLISHED], id="no accepted names"
        ),
    ],
)
async def test_what_clients_store_in_the_status_stays(things: Things, change: Change, expected: Sequence[Row]) -> None:
    """Except for what the API server needs to serve the kind; later writes of the definition change nothing."""
    before = (await things.read())["status"]

    async def found() -> tuple[list[Row], Any, Any]:
        live = await things.read()
        return rows(live), live["status"]["acceptedNames"], live["status"]["storedVersions"]

    wanted = ([*expected], before["acceptedNames"], before["storedVersions"])
    assert await things.replace(change, subresource="/status") == 200
    await eventually(found, lambda seen: seen == wanted)
    await eventually(lambda: things.replace(add_label), lambda status: status == 200)
    assert await found() == wanted
    served = (await things.either.ask("GET", things.objects())).status
    assert served == 404 if not expected else served in {200, 429}


async def test_stored_versions_of_clients_stay(things: Things) -> None:
    assert await things.replace(set_status(storedVersions=["v2", "v1"]), subresource="/status") == 200
    assert await things.replace(add_label) == 200
    assert (await things.read())["status"]["storedVersions"] == ["v2", "v1"]


async def test_names_that_others_use_are_accepted_in_part(things: Things) -> None:
    """The last conflict is reported; a kind that is established stays so, under its earlier names."""
    ask = things.either.ask
    assert await things.replace(add_short_name) == 200
    (short,) = (await things.read())["spec"]["names"]["shortNames"]
    await eventually(things.read, lambda found: found["status"]["acceptedNames"].get("shortNames") == [short])
    other = await things.read()
    other["metadata"] = {"name": f"others.{things.group}"}
    other["spec"]["names"] = {"plural": "others", "singular": "other", "kind": "Thing", "categories": ["all"]}
    path = f"{DEFINITIONS}/others.{things.group}"

    async def status() -> Manifest:
        found: Manifest = (await ask("GET", path)).json
        return found

    try:
        assert (await ask("POST", DEFINITIONS, other)).status == 201
        found = await eventually(status, lambda live: bool(live["status"]["conditions"]))
        assert rows(found) == [("NamesAccepted", "False", "ListKindConflict"), ("Established", "False", "NotAccepted")]
        assert found["status"]["acceptedNames"] == {
            "plural": "others",
            "singular": "other",
            "kind": "",
            "categories": ["all"],
        }
        assert (await ask("GET", f"/apis/{things.group}/v1/others")).status == 404

        own = {"kind": "Other", "listKind": "OtherList"}
        assert (await ask("PATCH", path, {"spec": {"names": own}}, kind=MERGE)).status == 200
        await eventually(status, lambda live: rows(live) == [ACCEPTED, ESTABLISHED])

        words = {"shortNames": [short, "thing", "ot"]}
        assert (await ask("PATCH", path, {"spec": {"names": words}}, kind=MERGE)).status == 200
        found = await eventually(status, lambda live: rows(live)[0][1] == "False")
        assert rows(found) == [("NamesAccepted", "False", "ShortNamesConflict"), ESTABLISHED]
        message = f'["{short}" is already in use, "thing" is already in use]'
        assert found["status"]["conditions"][0]["message"] == message
        assert "shortNames" not in found["status"]["acceptedNames"]
        await eventually(lambda: ask("GET", f"/apis/{things.group}/v1/others"), lambda reply: reply.status == 200)

        await things.delete()
        await eventually(status, lambda live: rows(live) == [ACCEPTED, ESTABLISHED])
    finally:
        await ask("DELETE", path)


def numbers(**fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": dict(fields)}}}


NUMBERS: Final = numbers(
    tenths={"type": "number", "multipleOf": 0.1},
    thirds={"type": "number", "multipleOf": 0.3},
    halves={"type": "number", "multipleOf": 2.5},
    none={"type": "number", "multipleOf": 0},
    less={"type": "number", "multipleOf": -0.1},
    huge={"type": "number", "multipleOf": 1e300},
    exact={"type": "number", "multipleOf": 9007199254740993},
    whole={"type": "integer", "multipleOf": 2.5},
    least={"type": "integer", "minimum": 2.5},
    most={"type": "integer", "maximum": 10000000000, "format": "int32"},
    single={"type": "number", "format": "float"},
    crossed={"type": "integer", "minimum": 5, "maximum": 3},
)
NO_FACTOR: Final = "Invalid value: {0}: factor MultipleOf declared for spec.{1} must be positive: {0}"


@pytest.mark.parametrize("things", [NUMBERS], indirect=True)
async def test_numbers_are_compared_with_limits_and_factors_as_go_compares_them(things: Things) -> None:
    """Without the rounding of floating-point numbers; a limit that no number of the type equals rejects every value."""
    body = "Invalid value: {}: spec.{} in body should be {}"
    boundary = 'Invalid value: "": {} value must be of type {} in spec.{}'
    table: list[tuple[str, float, list[str]]] = [
        ("tenths", 0.3, []),
        ("tenths", -0.3, []),
        ("tenths", 0.7, []),
        ("tenths", 2.5, []),
        ("tenths", 0.35, [body.format("0.35", "tenths", "a multiple of 0.1")]),
        ("tenths", 1e300, [body.format("1e+300", "tenths", "a multiple of 0.1")]),
        ("tenths", 3, [NO_FACTOR.format(0, "tenths")]),
        ("thirds", 0.9, []),
        ("halves", 7.5, []),
        ("halves", 4, []),
        ("halves", 5, [body.format("5", "halves", "a multiple of 2")]),
        ("none", 0.1, [NO_FACTOR.format(0, "none")]),
        ("none", 1, [NO_FACTOR.format(0, "none")]),
        ("less", 0.1, [NO_FACTOR.format(-0.1, "less")]),
        ("less", 1, [NO_FACTOR.format(0, "less")]),
        ("huge", 1, [NO_FACTOR.format(-(2**63), "huge")]),
        ("huge", 1.5, [body.format("1.5", "huge", "a multiple of 1e+300")]),
        ("exact", 9007199254740992, []),
        ("exact", 9007199254740993, [body.format("9007199254740993", "exact", "a multiple of 9007199254740992")]),
        ("exact", 1234567.5, [body.format("1.2345675e+06", "exact", "a multiple of 9.007199254740992e+15")]),
        ("whole", 5, [boundary.format("MultipleOf", "integer (default format)", "whole")]),
        (
            "whole",
            1,
            [
                boundary.format("MultipleOf", "integer (default format)", "whole"),
                body.format("1", "whole", "a multiple of 2.5"),
            ],
        ),
        ("least", 3, [boundary.format("Minimum boundary", "integer (default format)", "least")]),
        ("most", 3, [boundary.format("Maximum boundary", "integer with format int32", "most")]),
        ("single", 3e38, []),
        ("single", 1e300, [boundary.format("Checked", "number with format float", "single")]),
        (
            "crossed",
            4,
            [
                body.format("4", "crossed", "greater than or equal to 5"),
                body.format("4", "crossed", "less than or equal to 3"),
            ],
        ),
    ]
    for field, value, expected in table:
        thing = things.thing("one", spec={field: value})
        reply = await eventually(
            lambda thing=thing: things.either.ask("POST", things.objects() + "?dryRun=All", thing),  # type: ignore[misc]
            lambda found: found.status != 429,
        )
        causes = [cause["message"] for cause in reply.json["details"]["causes"]] if reply.status != 201 else []
        assert (field, value, causes) == (field, value, expected)
