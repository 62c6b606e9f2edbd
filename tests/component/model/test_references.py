"""Resources that are only read, deleted or orphaned: kind and name suffice, whatever their kind requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import BaseModel

from ocf import component
from ocf.cluster import DeleteOptions
from ocf.component.status.results import Action
from ocf.concepts import AliveStatus, Data, GuardStatus, StatusReport
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import (
    certificate,
    clusterrolebinding,
    cronjob,
    custom_kind,
    daemonset,
    deployment,
    hpa,
    replicaset,
    rolebinding,
    scaledobject,
    servicemonitor,
    statefulset,
    unstructured,
)

if TYPE_CHECKING:
    from tests.component.conftest import Env

OWNER: Final = ObjectKey("example.com/v1", "Shop", "demo", "shop")
WEB: Final = ObjectKey("apps/v1", "StatefulSet", "web", "shop")


class Disk(BaseModel):
    spec: dict[str, int]


# The kinds whose objects require more than a name.
DEMANDING: Final[tuple[Any, ...]] = (
    certificate,
    clusterrolebinding,
    cronjob,
    daemonset,
    deployment,
    hpa,
    replicaset,
    rolebinding,
    scaledobject,
    servicemonitor,
    statefulset,
)
SCALERS: Final = (hpa, scaledobject)


def built(resource: Any, *, owner: ObjectKey | None = OWNER, **options: Any) -> component.Component:
    return component.Builder("web", condition_type="WebReady", owner=owner).with_resource(resource, **options).build()


def problems_of(resource: Any, **options: Any) -> list[str]:
    with pytest.raises(BuildError) as raised:
        built(resource, **options)
    return list(raised.value.problems)


class TestEveryKind:
    @pytest.mark.parametrize(
        ("of", "options"),
        [
            pytest.param(of, {option: True}, id=f"{of.__name__.rpartition('.')[-1]} with {option}")
            for of in DEMANDING
            for option in ("delete_when", "orphan_when", "read_only")
            if not (of in SCALERS and option == "read_only")
        ],
    )
    def test_the_name_suffices(self, of: Any, options: dict[str, Any]) -> None:
        (entry,) = built(of.Builder({"metadata": {"name": "other"}}), **options).entries
        assert entry.key.name == "other"
        assert entry.key.kind == of.Builder.kind.name

    @pytest.mark.parametrize("of", DEMANDING, ids=lambda of: of.__name__.rpartition(".")[-1])
    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({}, id="applied"),
            pytest.param({"delete_when": False}, id="deleted later"),
            pytest.param({"orphan_when": False}, id="orphaned later"),
        ],
    )
    def test_what_may_be_applied_must_be_complete(self, of: Any, options: dict[str, Any]) -> None:
        # An owner would give a ReplicaSet its selector.
        named = of.Builder({"metadata": {"name": "x", **({} if of is clusterrolebinding else {"namespace": "shop"})}})
        assert any("required value" in problem for problem in problems_of(named, owner=None, **options))

    @pytest.mark.parametrize("of", SCALERS)
    def test_an_autoscaler_that_is_only_read_needs_its_target(self, of: Any) -> None:
        (problem,) = problems_of(of.Builder({"metadata": {"name": "web"}}), read_only=True)
        assert "spec: required value: an autoscaler that is only read needs its target" in problem

    @pytest.mark.parametrize(
        "base",
        [
            pytest.param({}, id="nothing"),
            pytest.param({"kind": "StatefulSet"}, id="the kind"),
            pytest.param("metadata: {labels: {a: b}}", id="YAML, with a label"),
        ],
    )
    def test_the_name_may_be_that_of_the_owner(self, base: Manifest | str) -> None:
        (entry,) = built(statefulset.Builder(base), delete_when=True).entries
        assert str(entry.key) == "apps/v1/StatefulSet/shop/demo"

    def test_without_an_owner_the_namespace_is_said(self) -> None:
        base = {"metadata": {"name": "web", "namespace": "shop"}}
        (entry,) = built(statefulset.Builder(base), owner=None, delete_when=True).entries
        assert entry.key == WEB

    @pytest.mark.parametrize(
        ("base", "problem"),
        [
            # Taken for the owner's name, it would delete another object.
            pytest.param({"metadata": {"nme": "web"}}, "metadata.nme", id="a misspelt name"),
            pytest.param({"metadata": {"name": 7}}, "metadata.name", id="a number"),
            pytest.param({"metadata": ["web"]}, "metadata", id="a list"),
            pytest.param(
                {"kind": "Deployment", "metadata": {"name": "web"}}, 'kind: must be "StatefulSet"', id="a kind"
            ),
            pytest.param({"metadata": {"name": "web"}, "spec": {}}, "spec.", id="an incomplete spec"),
            pytest.param("metadata: {name: web", "", id="broken YAML"),
        ],
    )
    def test_what_is_given_is_checked(self, base: Any, problem: str) -> None:
        assert any(problem in found for found in problems_of(statefulset.Builder(base), delete_when=True))

    def test_a_guard_gets_the_reference(self) -> None:
        seen: list[str] = []

        def guard(base: Any) -> StatusReport[GuardStatus]:
            seen.append(base.metadata.name)
            return StatusReport(GuardStatus.UNBLOCKED)

        (entry,) = built(statefulset.Builder({"metadata": {"name": "db"}}).with_guard(guard), read_only=True).entries
        assert entry.guardable is not None
        entry.guardable.guard_status()
        assert seen == ["db"]

    def test_custom_kinds(self) -> None:
        disks = custom_kind(Disk, "example.com/v1")
        static, generic = (
            built(resource, read_only=True).entries[0]
            for resource in (
                disks.static({"metadata": {"name": "fast"}}),
                unstructured.WorkloadBuilder(
                    {"apiVersion": "example.com/v1", "kind": "Disk", "metadata": {"name": "fast"}}
                ).with_custom_converge_status(lambda *_: StatusReport(AliveStatus.HEALTHY)),
            )
        )
        assert static.key == generic.key == ObjectKey("example.com/v1", "Disk", "fast", "shop")
        assert "spec" in problems_of(disks.static({"metadata": {"name": "fast"}}))[0]


class TestOnAServer:
    async def test_the_object_is_read_with_status_and_data(self, env: Env, web_base: Manifest) -> None:
        await self._create(env, web_base)
        image: Data[str] = Data("image")
        found: list[str | None] = []

        def guard(_base: Any) -> StatusReport[GuardStatus]:
            found.append(image.get())
            return StatusReport(GuardStatus.UNBLOCKED)

        read = statefulset.Builder({"metadata": {"name": "web"}}).extract_into(
            image, lambda live: live.to_dict()["spec"]["template"]["spec"]["containers"][0]["image"]
        )
        later = deployment.Builder(web_base).with_data_guard(image).with_guard(guard)
        builder = component.Builder("web", condition_type="WebReady", owner=env.owner)
        result = await env.reconcile(builder.with_resource(read, read_only=True).with_resource(later).build())
        assert [outcome.action for outcome in result.outcomes] == [Action.UNCHANGED, Action.CREATED]
        assert found == ["web:1"]

    async def test_the_object_of_the_component_is_deleted(self, env: Env, web_base: Manifest) -> None:
        complete = statefulset.Builder({**web_base, "kind": "StatefulSet"})
        await env.reconcile(built(complete))
        assert await env.exists(WEB)
        result = await env.reconcile(built(statefulset.Builder({"metadata": {"name": "web"}}), delete_when=True))
        assert [outcome.action for outcome in result.outcomes] == [Action.DELETED]
        assert not await env.exists(WEB)

    async def test_the_object_of_another_user_is_kept(self, env: Env, web_base: Manifest) -> None:
        await self._create(env, web_base)
        result = await env.reconcile(built(statefulset.Builder({"metadata": {"name": "web"}}), delete_when=True))
        assert [outcome.action for outcome in result.outcomes] == [Action.KEPT]
        await env.cluster.delete(WEB, DeleteOptions())

    async def _create(self, env: Env, web_base: Manifest) -> None:
        await env.create(WEB, spec={**web_base["spec"], "serviceName": "web"})


@pytest.mark.parametrize("deleted", [False, True], ids=["managed", "deleted"])
def test_a_whole_manifest_takes_its_selector_from_the_owner_in_either_case(deleted: bool) -> None:
    pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    (entry,) = built(statefulset.Builder({"spec": {"template": pod}}), delete_when=deleted).entries
    assert entry.key.name == OWNER.name
