"""A dry run answers as the write would, and leaves everything as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Preconditions, Subresource
from ocf.errors import ConflictError

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Place

KINDS = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "Widget"]


@pytest.mark.parametrize("kind", KINDS)
class TestNothingIsStored:
    async def test_create(self, place: Place, kind: str) -> None:
        answer = await place.create(kind, dry_run=True)

        assert not await place.exists(kind)
        assert "uid" in answer["metadata"]
        assert "resourceVersion" not in answer["metadata"]

    async def test_apply_of_what_is_not_there(self, place: Place, kind: str) -> None:
        answer = await place.apply("us", kind, dry_run=True)

        assert not await place.exists(kind)
        assert (answer["kind"], answer["metadata"]["name"]) == (kind, "demo")

    async def test_apply_of_what_is_there(self, place: Place, kind: str) -> None:
        made = await place.create(kind)
        answer = await place.apply("us", kind, "metadata: {labels: {a: b}}", dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert await place.get(kind) == made

    async def test_update(self, place: Place, kind: str) -> None:
        made = await place.create(kind)
        answer = await place.update({**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}, dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert await place.get(kind) == made

    async def test_patch(self, place: Place, kind: str) -> None:
        made = await place.create(kind)
        answer = await place.merge(kind, "metadata: {labels: {a: b}}", dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert await place.get(kind) == made

    async def test_delete(self, place: Place, kind: str) -> None:
        made = await place.create(kind)
        await place.delete(kind, dry_run=True)

        assert await place.get(kind) == made


@pytest.mark.parametrize("kind", ["Deployment", "Widget"])
@pytest.mark.parametrize("part", [Subresource.STATUS, Subresource.SCALE])
async def test_subresources(place: Place, kind: str, part: Subresource) -> None:
    made = await place.create(kind)
    answer = await place.merge(kind, "{spec: {replicas: 8}, status: {replicas: 8}}", part=part, dry_run=True)

    assert answer["status" if part is Subresource.STATUS else "spec"]["replicas"] == 8
    assert await place.get(kind) == made


async def test_defaults_are_shown(place: Place) -> None:
    assert (await place.apply("us", "Deployment", dry_run=True))["spec"]["replicas"] == 1
    assert (await place.apply("us", "Widget", dry_run=True))["spec"] == {"size": 3}


async def test_a_generation_counts(place: Place) -> None:
    await place.create("Deployment")
    answer = await place.merge("Deployment", "spec: {replicas: 4}", dry_run=True)

    assert answer["metadata"]["generation"] == 2


class TestRefusals:
    """What would be refused is refused."""

    async def test_a_name_that_is_taken(self, place: Place) -> None:
        await place.create("ConfigMap")

        with place.error(409, "AlreadyExists"):
            await place.create("ConfigMap", dry_run=True)

    async def test_an_old_version(self, place: Place) -> None:
        old = await place.create("ConfigMap")
        await place.merge("ConfigMap", "data: {a: '1'}")

        with place.error(409, "Conflict"):
            await place.update({**old, "data": {"a": "2"}}, dry_run=True)

    async def test_fields_of_another(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")

        with place.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "us"'):
            await place.apply("them", "ConfigMap", "data: {a: '2'}", dry_run=True)

    async def test_what_is_invalid(self, place: Place) -> None:
        detail = 'Unsupported value: "pink": supported values: "red", "green", "blue"'

        with place.error(422, "Invalid", None, f"FieldValueNotSupported spec.colour: {detail}"):
            await place.create("Widget", "spec: {colour: pink}", dry_run=True)

    async def test_a_precondition(self, place: Place) -> None:
        await place.create("ConfigMap")

        with pytest.raises(ConflictError):
            await place.delete("ConfigMap", dry_run=True, preconditions=Preconditions(resource_version="1"))

    async def test_what_is_not_there(self, place: Place) -> None:
        with place.error(404, "NotFound", 'configmaps "demo" not found'):
            await place.delete("ConfigMap", dry_run=True)
