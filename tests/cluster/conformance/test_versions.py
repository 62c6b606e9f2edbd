"""resourceVersion, generation, and optimistic locking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Subresource

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Place

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
async def test_a_generation_counts_changes_of_what_is_wanted(
    place: Place, kind: str, patch: str, part: Subresource | None, generations: int
) -> None:
    made = await place.create(kind)
    await place.merge(kind, patch, part=part)
    live = await place.get(kind)

    assert made["metadata"]["generation"] == 1
    assert live["metadata"]["generation"] == 1 + generations
    assert version(live) != version(made)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "Service", "HorizontalPodAutoscaler", "Role", "Namespace"])
async def test_a_kind_may_have_no_generation(place: Place, kind: str) -> None:
    await place.create(kind)
    changed = await place.merge(kind, "metadata: {annotations: {a: b}}")

    assert "generation" not in changed["metadata"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "Widget"])
class TestNothingChanges:
    async def test_an_update_with_what_is_there_changes_nothing(self, place: Place, kind: str) -> None:
        made = await place.create(kind)

        assert await place.update(made) == made

    async def test_an_empty_patch_changes_nothing(self, place: Place, kind: str) -> None:
        made = await place.create(kind)

        assert await place.merge(kind, "{}", by="somebody") == made

    async def test_a_repeated_apply_changes_nothing(self, place: Place, kind: str) -> None:
        applied = await place.apply("us", kind)

        assert await place.apply("us", kind) == applied
        assert await place.get(kind) == applied


class TestLocking:
    async def test_an_update_from_an_old_version_is_a_conflict(self, place: Place) -> None:
        old = await place.create("ConfigMap")
        await place.merge("ConfigMap", "data: {a: '1'}")

        with place.error(
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "demo": the object has been modified; '
            "please apply your changes to the latest version and try again",
        ):
            await place.update({**old, "data": {"a": "2"}})

    async def test_an_update_without_a_version_is_taken(self, place: Place) -> None:
        await place.create("ConfigMap", "data: {a: '1'}")
        live = await place.update(place.manifest("ConfigMap", "data: {b: '2'}"))

        assert live["data"] == {"b": "2"}

    @pytest.mark.parametrize(
        ("kind", "subject"),
        [
            pytest.param("Widget", "widgets.conformance.example.com", id="custom resource"),
            pytest.param("Lease", "leases.coordination.k8s.io", id="Lease"),
            pytest.param("PodDisruptionBudget", "poddisruptionbudgets.policy", id="disruption budget"),
        ],
    )
    async def test_some_kinds_want_a_version(self, place: Place, kind: str, subject: str) -> None:
        await place.create(kind)
        detail = "Invalid value: 0: must be specified for an update"

        with place.error(
            422,
            "Invalid",
            f'{subject} "demo" is invalid: metadata.resourceVersion: {detail}',
            f"FieldValueInvalid metadata.resourceVersion: {detail}",
        ):
            await place.update(place.manifest(kind, None))

    @pytest.mark.parametrize("part", [None, Subresource.STATUS])
    async def test_a_patch_may_name_a_version(self, place: Place, part: Subresource | None) -> None:
        old = await place.create("Deployment")
        patch = f"{{metadata: {{resourceVersion: '{version(old)}'}}, status: {{replicas: 1}}, spec: {{paused: true}}}}"
        await place.merge("Deployment", patch, part=part)

        with place.error(409, "Conflict"):
            await place.merge("Deployment", patch.replace("1}", "2}").replace("true", "false"), part=part)

    async def test_an_apply_may_name_a_version(self, place: Place) -> None:
        old = await place.apply("us", "ConfigMap", "data: {a: '1'}")
        named = f"{{metadata: {{resourceVersion: '{version(old)}'}}, data: {{a: '2'}}}}"
        await place.apply("us", "ConfigMap", named)

        with place.error(409, "Conflict"):
            await place.apply("us", "ConfigMap", named.replace("'2'", "'3'"))

    async def test_an_apply_creates_whatever_version_it_names(self, place: Place) -> None:
        made = await place.apply("us", "ConfigMap", "metadata: {resourceVersion: '1'}")

        assert version(made) != "1"

    async def test_a_create_names_no_version(self, place: Place) -> None:
        with place.error(500, "", "resourceVersion should not be set on objects to be created"):
            await place.create("ConfigMap", "metadata: {resourceVersion: '1'}")

    async def test_an_update_of_another_uid_is_a_conflict(self, place: Place) -> None:
        made = await place.create("ConfigMap")
        made["metadata"]["uid"] = "8a2c7a5e-0000-4000-8000-000000000000"

        with place.error(409, "Conflict"):
            await place.update(made)

    @pytest.mark.parametrize("part", [Subresource.STATUS, Subresource.SCALE])
    async def test_a_subresource_is_locked_by_the_version_of_its_object(self, place: Place, part: Subresource) -> None:
        await place.create("Deployment")
        old = await place.get("Deployment", part=part)
        await place.merge("Deployment", "metadata: {labels: {a: b}}")
        old["apiVersion"], old["kind"] = "apps/v1", "Deployment"

        with place.error(409, "Conflict"):
            await place.update({**old, "status": {"replicas": 7}, "spec": {**old["spec"], "replicas": 7}}, part=part)

    async def test_versions_are_those_of_the_cluster(self, place: Place) -> None:
        """Every write has a version that is higher than those of all writes before it, whatever was written."""
        first = await place.create("ConfigMap")
        second = await place.create("Deployment")
        third = await place.merge("ConfigMap", "data: {a: '1'}")
        numbers = [int(version(each)) for each in (first, second, third)]

        assert numbers == sorted(set(numbers))
        assert int((await place.page("Secret")).resource_version) >= numbers[-1]


class TestVersionsOfAKind:
    async def test_an_apply_in_another_version_owns_there(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {size: 2}")
        live = await apply_second(place, "us", "spec: {size: 4}")

        assert live["apiVersion"] == SECOND
        assert live["spec"]["size"] == 4
        assert [entry["apiVersion"] for entry in live["metadata"]["managedFields"]] == [SECOND]

    async def test_what_is_given_up_in_another_version_goes(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {size: 2, weight: 3, labels: {a: b}, parts: [{name: a}, {name: b}]}")
        live = await apply_second(place, "us", "spec: {size: 4, parts: [{name: b}]}")

        assert live["spec"] == {"size": 4, "parts": [{"name": "b", "count": 1}]}

    async def test_what_is_given_up_and_owned_in_another_version_stays(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {size: 2, weight: 3, parts: [{name: a}, {name: b}]}")
        await apply_second(place, "them", "spec: {weight: 3, parts: [{name: a}]}")
        live = await place.apply("us", "Widget", "spec: {size: 2}")

        assert live["spec"] == {"size": 2, "weight": 3, "parts": [{"name": "a", "count": 1}]}

    async def test_an_autoscaler_is_applied_in_one_version_after_the_other(self, place: Place) -> None:
        await place.apply("us", "HorizontalPodAutoscaler", f"spec: {{minReplicas: 2, maxReplicas: 4, {TARGET}}}")
        old = place.manifest(
            "HorizontalPodAutoscaler", f"spec: {{maxReplicas: 5, {TARGET}}}", api_version="autoscaling/v1"
        )
        live = await place.cluster.apply(old, field_manager="us")

        assert live["apiVersion"] == "autoscaling/v1"
        assert (live["spec"]["minReplicas"], live["spec"]["maxReplicas"]) == (1, 5)
        assert [entry["apiVersion"] for entry in live["metadata"]["managedFields"]] == ["autoscaling/v1"]


async def apply_second(place: Place, by: str, body: str) -> Manifest:
    """Apply a widget in the second version of its kind."""
    return await place.cluster.apply(place.manifest("Widget", body, api_version=SECOND), field_manager=by)
