"""A change of one CustomResourceDefinition costs the same however many there are."""

import pytest

from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import CustomKind
from ocf_server import EmbeddedCluster
from ocf_server.apiextensions import served_kinds
from ocf_server.apiextensions.served_kinds import definition_of
from ocf_server.controllers import crd_names

CRDS = "apiextensions.k8s.io/v1"
USER = "test"


def definition(number: int) -> Manifest:
    return definition_of(CustomKind("example.com", "v1", f"Thing{number}"))


def name_of(number: int) -> ObjectKey:
    return ObjectKey(CRDS, "CustomResourceDefinition", str(definition(number)["metadata"]["name"]))


async def condition(cluster: EmbeddedCluster, number: int, of_type: str) -> str:
    found = await cluster.get(name_of(number))
    return str(next(item["status"] for item in found["status"]["conditions"] if item["type"] == of_type))


@pytest.mark.parametrize(
    ("module", "function"),
    [
        pytest.param(crd_names, "accepted_status", id="the names are checked"),
        pytest.param(served_kinds, "served", id="the kinds are built"),
    ],
)
async def test_only_changed_definitions_are_processed(
    monkeypatch: pytest.MonkeyPatch, module: object, function: str
) -> None:
    processed: list[str] = []
    original = getattr(module, function)

    def recorded(manifest: Manifest, *arguments: object) -> object:
        processed.append(manifest["metadata"]["name"])
        return original(manifest, *arguments)

    cluster = EmbeddedCluster()
    for number in range(5):
        await cluster.create(definition(number), field_manager=USER)
    await cluster.list("example.com/v1", "Thing0")
    monkeypatch.setattr(module, function, recorded)

    await cluster.create(definition(5), field_manager=USER)
    await cluster.list("example.com/v1", "Thing5")

    assert set(processed) == {name_of(5).name}


async def test_names_are_accepted_when_the_definition_that_used_them_is_deleted() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(definition(0), field_manager=USER)
    other = definition(1)
    other["spec"]["names"]["kind"] = "Thing0"
    await cluster.create(other, field_manager=USER)
    assert await condition(cluster, 1, "NamesAccepted") == "False"

    await cluster.delete(name_of(0))

    assert await condition(cluster, 1, "NamesAccepted") == "True"


async def test_a_changed_definition_is_accepted_with_its_new_names() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(definition(0), field_manager=USER)
    found = await cluster.get(name_of(0))
    found["spec"]["names"]["shortNames"] = ["th"]

    await cluster.update(found, field_manager=USER)

    assert (await cluster.get(name_of(0)))["status"]["acceptedNames"]["shortNames"] == ["th"]


async def kinds(cluster: EmbeddedCluster, *numbers: int) -> list[bool]:
    """Return which kinds are served."""
    found = []
    for number in numbers:
        try:
            await cluster.list("example.com/v1", f"Thing{number}")
        except NotFoundError:
            found.append(False)
        else:
            found.append(True)
    return found


@pytest.mark.parametrize("compact", [False, True], ids=["with a log", "without"])
async def test_kinds_come_and_go_with_their_definitions(*, compact: bool) -> None:
    cluster = EmbeddedCluster()
    for number in range(3):
        await cluster.create(definition(number), field_manager=USER)
    assert await kinds(cluster, 0, 1, 2) == [True, True, True]

    await cluster.delete(name_of(1))
    await cluster.create(definition(3), field_manager=USER)
    if compact:
        cluster.compact()

    assert await kinds(cluster, 0, 1, 2, 3) == [True, False, True, True]


async def test_a_definition_whose_names_are_in_use_leaves_the_kind_alone() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(definition(0), field_manager=USER)
    other = definition(1)
    other["spec"]["names"]["kind"] = "Thing0"
    await cluster.create(other, field_manager=USER)
    assert await kinds(cluster, 0) == [True]

    await cluster.delete(name_of(1))

    assert await kinds(cluster, 0) == [True]


async def test_a_clone_has_definitions_of_its_own() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(definition(0), field_manager=USER)
    clone = cluster.clone()
    await clone.delete(name_of(0))
    await cluster.create(definition(1), field_manager=USER)

    assert (await kinds(clone, 0, 1), await kinds(cluster, 0, 1)) == ([False, False], [True, True])
