"""A dry run answers like the write, and stores nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Subresource
from ocf.cluster.protocol import Preconditions
from ocf.errors import ConflictError

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

KINDS = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "Widget"]


@pytest.mark.parametrize("kind", KINDS)
class TestNothingIsStored:
    async def test_create(self, env: Env, kind: str) -> None:
        answer = await env.create(kind, dry_run=True)

        assert not await env.exists(kind)
        assert "uid" in answer["metadata"]
        assert "resourceVersion" not in answer["metadata"]

    async def test_apply_of_a_missing_object(self, env: Env, kind: str) -> None:
        answer = await env.apply("us", kind, dry_run=True)

        assert not await env.exists(kind)
        assert (answer["kind"], answer["metadata"]["name"]) == (kind, "demo")

    async def test_apply_of_an_existing_object(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        answer = await env.apply("us", kind, "metadata: {labels: {a: b}}", dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert await env.get(kind) == made

    async def test_update(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        answer = await env.update({**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}, dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert await env.get(kind) == made

    async def test_patch(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        answer = await env.merge(kind, "metadata: {labels: {a: b}}", dry_run=True)

        assert answer["metadata"]["labels"] == {"a": "b"}
        assert await env.get(kind) == made

    async def test_delete(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        await env.delete(kind, dry_run=True)

        assert await env.get(kind) == made


@pytest.mark.parametrize("kind", ["Deployment", "Widget"])
@pytest.mark.parametrize("part", [Subresource.STATUS, Subresource.SCALE])
async def test_subresources(env: Env, kind: str, part: Subresource) -> None:
    made = await env.create(kind)
    answer = await env.merge(kind, "{spec: {replicas: 8}, status: {replicas: 8}}", part=part, dry_run=True)

    assert answer["status" if part is Subresource.STATUS else "spec"]["replicas"] == 8
    assert await env.get(kind) == made


async def test_defaults_are_shown(env: Env) -> None:
    assert (await env.apply("us", "Deployment", dry_run=True))["spec"]["replicas"] == 1
    assert (await env.apply("us", "Widget", dry_run=True))["spec"] == {"size": 3}


async def test_the_generation_is_incremented(env: Env) -> None:
    await env.create("Deployment")
    answer = await env.merge("Deployment", "spec: {replicas: 4}", dry_run=True)

    assert answer["metadata"]["generation"] == 2


class TestRefusals:
    """A dry run is rejected where the write would be."""

    async def test_a_name_that_is_taken(self, env: Env) -> None:
        await env.create("ConfigMap")

        with env.error(409, "AlreadyExists"):
            await env.create("ConfigMap", dry_run=True)

    async def test_an_old_version(self, env: Env) -> None:
        old = await env.create("ConfigMap")
        await env.merge("ConfigMap", "data: {a: '1'}")

        with env.error(409, "Conflict"):
            await env.update({**old, "data": {"a": "2"}}, dry_run=True)

    async def test_fields_of_another(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")

        with env.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "us"'):
            await env.apply("them", "ConfigMap", "data: {a: '2'}", dry_run=True)

    async def test_an_invalid_object(self, env: Env) -> None:
        detail = 'Unsupported value: "pink": supported values: "red", "green", "blue"'

        with env.error(422, "Invalid", None, f"FieldValueNotSupported spec.colour: {detail}"):
            await env.create("Widget", "spec: {colour: pink}", dry_run=True)

    async def test_a_precondition(self, env: Env) -> None:
        await env.create("ConfigMap")

        with pytest.raises(ConflictError):
            await env.delete("ConfigMap", dry_run=True, preconditions=Preconditions(resource_version="1"))

    async def test_a_missing_object(self, env: Env) -> None:
        with env.error(404, "NotFound", 'configmaps "demo" not found'):
            await env.delete("ConfigMap", dry_run=True)
