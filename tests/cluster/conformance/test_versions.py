"""resourceVersion, generation, and optimistic locking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Subresource

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Env

SECOND = "conformance.example.com/v2"
TARGET = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}"


def version(manifest: Manifest) -> str:
    found: str = manifest["metadata"]["resourceVersion"]
    return found


@pytest.mark.parametrize(
    ("kind", "patch", "part", "generations"),
    [
        pytest.param("Deployment", "spec: {replicas: 5}", None, 1, id="spec of a Deployment"),
        pytest.param("Deployment", "metadata: {labels: {a: b}}", None, 0, id="labels of a Deployment"),
        pytest.param("Deployment", "metadata: {annotations: {a: b}}", None, 1, id="annotations of a Deployment"),
        pytest.param("Deployment", "status: {replicas: 1}", Subresource.STATUS, 0, id="status of a Deployment"),
        pytest.param("Deployment", "spec: {replicas: 5}", Subresource.SCALE, 1, id="scale of a Deployment"),
        pytest.param("StatefulSet", "spec: {replicas: 5}", None, 1, id="spec of a StatefulSet"),
        pytest.param("StatefulSet", "metadata: {annotations: {a: b}}", None, 0, id="annotations of a StatefulSet"),
        pytest.param("Widget", "spec: {size: 5}", None, 1, id="spec of a custom resource"),
        pytest.param("Widget", "metadata: {annotations: {a: b}}", None, 0, id="annotations of a custom resource"),
        pytest.param("Widget", "status: {replicas: 1}", Subresource.STATUS, 0, id="status of a custom resource"),
        pytest.param("Widget", "spec: {replicas: 5}", Subresource.SCALE, 1, id="scale of a custom resource"),
        pytest.param("Gadget", "any: thing", None, 1, id="anything of a custom resource without status"),
        pytest.param("CronJob", "spec: {suspend: true}", None, 1, id="spec of a CronJob"),
        pytest.param("NetworkPolicy", "spec: {policyTypes: [Egress]}", None, 1, id="spec of a NetworkPolicy"),
        pytest.param("PodDisruptionBudget", "spec: {minAvailable: 2}", None, 1, id="spec of a disruption budget"),
    ],
)
@pytest.mark.promise("conformance")
async def test_the_generation_counts_changes_of_the_desired_state(
    env: Env, kind: str, patch: str, part: Subresource | None, generations: int
) -> None:
    made = await env.create(kind)
    await env.merge(kind, patch, part=part)
    live = await env.get(kind)

    assert made["metadata"]["generation"] == 1
    assert live["metadata"]["generation"] == 1 + generations
    assert version(live) != version(made)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "Service", "HorizontalPodAutoscaler", "Role", "Namespace"])
async def test_a_kind_may_have_no_generation(env: Env, kind: str) -> None:
    await env.create(kind)
    changed = await env.merge(kind, "metadata: {annotations: {a: b}}")

    assert "generation" not in changed["metadata"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "Widget"])
class TestNothingChanges:
    async def test_an_update_without_a_change_changes_nothing(self, env: Env, kind: str) -> None:
        made = await env.create(kind)

        assert await env.update(made) == made

    async def test_an_empty_patch_changes_nothing(self, env: Env, kind: str) -> None:
        made = await env.create(kind)

        assert await env.merge(kind, "{}", by="other") == made

    async def test_a_repeated_apply_changes_nothing(self, env: Env, kind: str) -> None:
        applied = await env.apply("us", kind)

        assert await env.apply("us", kind) == applied
        assert await env.get(kind) == applied


class TestLocking:
    async def test_an_update_from_an_old_version_is_a_conflict(self, env: Env) -> None:
        old = await env.create("ConfigMap")
        await env.merge("ConfigMap", "data: {a: '1'}")

        with env.error(
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "demo": the object has been modified; '
            "please apply your changes to the latest version and try again",
        ):
            await env.update({**old, "data": {"a": "2"}})

    async def test_an_update_without_a_version_is_accepted(self, env: Env) -> None:
        await env.create("ConfigMap", "data: {a: '1'}")
        live = await env.update(env.manifest("ConfigMap", "data: {b: '2'}"))

        assert live["data"] == {"b": "2"}

    @pytest.mark.parametrize(
        ("kind", "subject"),
        [
            pytest.param("Widget", "widgets.conformance.example.com", id="custom resource"),
            pytest.param("Lease", "leases.coordination.k8s.io", id="Lease"),
            pytest.param("PodDisruptionBudget", "poddisruptionbudgets.policy", id="disruption budget"),
        ],
    )
    async def test_some_kinds_require_a_version(self, env: Env, kind: str, subject: str) -> None:
        await env.create(kind)
        detail = "Invalid value: 0: must be specified for an update"

        with env.error(
            422,
            "Invalid",
            f'{subject} "demo" is invalid: metadata.resourceVersion: {detail}',
            f"FieldValueInvalid metadata.resourceVersion: {detail}",
        ):
            await env.update(env.manifest(kind, None))

    @pytest.mark.parametrize("part", [None, Subresource.STATUS])
    async def test_a_patch_may_contain_a_version(self, env: Env, part: Subresource | None) -> None:
        old = await env.create("Deployment")
        patch = f"{{metadata: {{resourceVersion: '{version(old)}'}}, status: {{replicas: 1}}, spec: {{paused: true}}}}"
        await env.merge("Deployment", patch, part=part)

        with env.error(409, "Conflict"):
            await env.merge("Deployment", patch.replace("1}", "2}").replace("true", "false"), part=part)

    async def test_an_apply_may_contain_a_version(self, env: Env) -> None:
        old = await env.apply("us", "ConfigMap", "data: {a: '1'}")
        named = f"{{metadata: {{resourceVersion: '{version(old)}'}}, data: {{a: '2'}}}}"
        await env.apply("us", "ConfigMap", named)

        with env.error(409, "Conflict"):
            await env.apply("us", "ConfigMap", named.replace("'2'", "'3'"))

    async def test_an_apply_creates_whatever_version_it_contains(self, env: Env) -> None:
        made = await env.apply("us", "ConfigMap", "metadata: {resourceVersion: '1'}")

        assert version(made) != "1"

    async def test_a_create_must_not_contain_a_version(self, env: Env) -> None:
        with env.error(500, "", "resourceVersion should not be set on objects to be created"):
            await env.create("ConfigMap", "metadata: {resourceVersion: '1'}")

    async def test_an_update_of_another_uid_is_a_conflict(self, env: Env) -> None:
        made = await env.create("ConfigMap")
        made["metadata"]["uid"] = "8a2c7a5e-0000-4000-8000-000000000000"

        with env.error(409, "Conflict"):
            await env.update(made)

    @pytest.mark.parametrize("part", [Subresource.STATUS, Subresource.SCALE])
    async def test_a_subresource_is_locked_by_the_version_of_its_object(self, env: Env, part: Subresource) -> None:
        await env.create("Deployment")
        old = await env.get("Deployment", part=part)
        await env.merge("Deployment", "metadata: {labels: {a: b}}")
        old["apiVersion"], old["kind"] = "apps/v1", "Deployment"

        with env.error(409, "Conflict"):
            await env.update({**old, "status": {"replicas": 7}, "spec": {**old["spec"], "replicas": 7}}, part=part)

    async def test_versions_are_shared_by_all_objects(self, env: Env) -> None:
        """Every write has a higher version than all earlier writes, to any object."""
        first = await env.create("ConfigMap")
        second = await env.create("Deployment")
        third = await env.merge("ConfigMap", "data: {a: '1'}")
        numbers = [int(version(each)) for each in (first, second, third)]

        assert numbers == sorted(set(numbers))
        assert int((await env.page("Secret")).resource_version) >= numbers[-1]


class TestVersionsOfAKind:
    async def test_an_apply_in_another_version_owns_there(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {size: 2}")
        live = await apply_second(env, "us", "spec: {size: 4}")

        assert live["apiVersion"] == SECOND
        assert live["spec"]["size"] == 4
        assert [entry["apiVersion"] for entry in live["metadata"]["managedFields"]] == [SECOND]

    async def test_a_field_that_is_no_longer_applied_in_another_version_is_removed(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {size: 2, weight: 3, labels: {a: b}, parts: [{name: a}, {name: b}]}")
        live = await apply_second(env, "us", "spec: {size: 4, parts: [{name: b}]}")

        assert live["spec"] == {"size": 4, "parts": [{"name": "b", "count": 1}]}

    async def test_a_field_owned_in_another_version_stays(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {size: 2, weight: 3, parts: [{name: a}, {name: b}]}")
        await apply_second(env, "them", "spec: {weight: 3, parts: [{name: a}]}")
        live = await env.apply("us", "Widget", "spec: {size: 2}")

        assert live["spec"] == {"size": 2, "weight": 3, "parts": [{"name": "a", "count": 1}]}

    async def test_an_autoscaler_is_applied_in_one_version_after_the_other(self, env: Env) -> None:
        await env.apply("us", "HorizontalPodAutoscaler", f"spec: {{minReplicas: 2, maxReplicas: 4, {TARGET}}}")
        old = env.manifest(
            "HorizontalPodAutoscaler", f"spec: {{maxReplicas: 5, {TARGET}}}", api_version="autoscaling/v1"
        )
        live = await env.cluster.apply(old, field_manager="us")

        assert live["apiVersion"] == "autoscaling/v1"
        assert (live["spec"]["minReplicas"], live["spec"]["maxReplicas"]) == (1, 5)
        assert [entry["apiVersion"] for entry in live["metadata"]["managedFields"]] == ["autoscaling/v1"]


async def apply_second(env: Env, by: str, body: str) -> Manifest:
    """Apply a widget in the second version of its kind."""
    return await env.cluster.apply(env.manifest("Widget", body, api_version=SECOND), field_manager=by)
