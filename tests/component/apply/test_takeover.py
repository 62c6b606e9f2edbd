"""Takeover of the fields of former writers: an earlier uid of the owner, and field managers that are named.

Rebuilt from public reports: https://github.com/kubernetes/kubernetes/issues/99003 and
https://github.com/fluxcd/kustomize-controller/issues/486 (a field that was written with an update stays for ever),
https://github.com/fluxcd/kustomize-controller/issues/1722 (a container of which only the image is ours cannot go),
https://github.com/fluxcd/kustomize-controller/pull/562 (fields without a manager stay for ever as well),
https://github.com/fluxcd/kustomize-controller/pull/581 and
https://github.com/fluxcd/kustomize-controller/issues/1574 (a later change with kubectl is wanted, and must stay),
https://github.com/velero-io/velero/issues/5701, https://github.com/crossplane/crossplane/issues/1389 and
https://github.com/isindir/sops-secrets-operator/issues/226 (objects restored with another uid of their owner),
https://github.com/kubernetes/kubernetes/pull/112905 (entries of updates become one of an apply).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component, Conflicts, diff, reconciling
from ocf.component.apply.takeover import with_managers_renamed
from ocf.component.model.former_managers import taken_label
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import BuildError, ConfigError, ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import FieldManager, ManagedFields
from ocf.primitives import deployment, hpa
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Events(NullRecorder):
    """Recorder that keeps the events."""

    def __init__(self) -> None:
        self.found: list[Event] = []

    def happened(self, event: Event) -> None:
        self.found.append(event)

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.found if event.reason == "FieldsTakenOver"]


def of(*resources: Any, former: tuple[str, ...] = (), name: str = "web", **options: Any) -> Component:
    builder = component.Builder(name, condition_type="WebReady").with_former_managers(*former)
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


async def reconcile(
    env: Env, *components: Component, former: tuple[str, ...] = (), cluster: Cluster | None = None
) -> Events:
    """Reconcile as an operator with former managers does; return its events."""
    events = Events()
    owner = await env.owner_manifest()
    async with reconciling(
        owner, cluster or env.cluster, former_managers=former, clock=env.clock, recorder=events
    ) as context:
        for each in components:
            await each.reconcile(context)
    return events


async def managers(env: Env, key: ObjectKey) -> dict[tuple[str, str], Manifest]:
    """Return the fields of each manager and operation; our managers without the uid of the owner."""
    uid = (await env.owner_manifest())["metadata"]["uid"]
    entries = ManagedFields.of(await env.cluster.get(key)).entries
    return {(each.manager.name.replace(f"/{uid}", ""), each.manager.operation): each.fields for each in entries}


async def by_client(env: Env, manifest: Manifest, *, operation: str, manager: str = "former") -> Manifest:
    """Write an object as a former operator did: with a create, or with an apply."""
    if operation == "Apply":
        return await env.cluster.apply(manifest, field_manager=manager)
    return await env.cluster.create(manifest, field_manager=manager)


def settings(**data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"},
        "data": data,
    }


class TestNamedManagers:
    @pytest.mark.promise("former-writers", runs="objects of updates and of applies, on both servers")
    @pytest.mark.parametrize("operation", ["Update", "Apply"])
    @pytest.mark.parametrize(
        "pattern",
        [pytest.param("former", id="a name"), pytest.param("for*", id="a pattern")],
    )
    async def test_what_is_not_declared_goes_with_the_first_reconcile(
        self, env: Env, config_map: Callable[..., StaticKind], operation: str, pattern: str
    ) -> None:
        await by_client(env, settings(a="1", b="2", c="3"), operation=operation)
        events = await reconcile(env, of(config_map(a="1"), former=(pattern,)))
        live = await env.cluster.get(SETTINGS)
        assert live["data"] == {"a": "1"}
        assert {name for name, kind in await managers(env, SETTINGS) if kind == "Apply"} == {"ocf/Shop/web"}
        assert "former" not in {name for name, _ in await managers(env, SETTINGS)}
        assert live["metadata"]["labels"] == {taken_label("former"): "true"}
        assert events.notes == [
            "Fields of ConfigMap 'settings' taken over from former, removed as not declared: data.b, data.c"
        ]

    @pytest.mark.parametrize("operation", ["Update", "Apply"])
    async def test_a_field_that_both_have_set_goes_when_it_is_dropped(
        self, env: Env, config_map: Callable[..., StaticKind], operation: str
    ) -> None:
        """Without the option, it stays, and an event says so."""
        await by_client(env, settings(a="1", b="2"), operation=operation)
        await reconcile(env, of(config_map(a="1", b="2")))
        events = await reconcile(env, of(config_map(a="1")))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "b": "2"}
        (note,) = [event.note for event in events.found if event.reason == "FieldsKept"]
        assert note == (
            "ConfigMap 'settings' keeps data.b, no longer declared, because \"former\" has set it, too: "
            "if that is a former writer, name it with with_former_managers"
        )
        await reconcile(env, of(config_map(a="1"), former=("former",)))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_no_event_names_what_stays_on_purpose(
        self, env: Env, fixed_web: deployment.Resource, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """The replica count is handed over to the autoscaler."""
        await reconcile(env, of(fixed_web))
        events = await reconcile(env, of(web, web_hpa))
        assert await env.replicas() == 4
        assert [event.reason for event in events.found if event.reason == "FieldsKept"] == []

    async def test_nothing_is_written_afterwards(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update")
        made = of(config_map(a="1"), former=("former",))
        await reconcile(env, made)
        env.cluster.requests.clear()
        events = await reconcile(env, made)
        assert (env.cluster.requests.writes, events.found) == (0, [])

    async def test_an_operator_names_them_for_all_components(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update")
        await reconcile(env, of(config_map(a="1")), former=("other", "form?r"))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_an_object_in_sync_is_taken_over_when_its_manager_is_named(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Neither the object nor the desired state changes."""
        await by_client(env, settings(a="1", b="2"), operation="Update")
        for _ in range(2):
            await reconcile(env, of(config_map(a="1")))
        await reconcile(env, of(config_map(a="1"), former=("former",)))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    @pytest.mark.promise("former-writers", runs="a later change with the same client")
    async def test_what_the_same_client_writes_later_stays(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update", manager="kubectl-edit")
        made = of(config_map(a="1"), former=("kubectl-*",))
        await reconcile(env, made)
        await env.change(SETTINGS, data={"theirs": "1"})
        for _ in range(2):
            await reconcile(env, made)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "theirs": "1"}
        again = of(config_map(a="1", b="4"), former=("kubectl-*",))
        await reconcile(env, again)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "b": "4", "theirs": "1"}

    async def test_a_manager_that_is_named_later_is_taken_over_too(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update", manager="one")
        await env.merge_patch(SETTINGS, {"data": {"c": "3"}}, by="two")
        await reconcile(env, of(config_map(a="1"), former=("one",)))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "c": "3"}
        await reconcile(env, of(config_map(a="1"), former=("one", "two")))
        live = await env.cluster.get(SETTINGS)
        assert live["data"] == {"a": "1"}
        assert live["metadata"]["labels"] == {taken_label("one"): "true", taken_label("two"): "true"}

    async def test_what_others_still_own_stays(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_client(env, settings(a="1", b="2", c="3"), operation="Update")
        await env.cluster.apply(settings(c="3"), field_manager="present")
        events = await reconcile(env, of(config_map(a="1"), former=("former",)))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "c": "3"}
        assert events.notes == [
            "Fields of ConfigMap 'settings' taken over from former, removed as not declared: data.b"
        ]

    async def test_the_annotation_of_a_client_side_apply_goes(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """A later `kubectl apply` would compute its changes from it."""
        made = settings(a="1", b="2")
        made["metadata"]["annotations"] = {LAST_APPLIED: "{}", "example.com/team": "shop"}
        await by_client(env, made, operation="Update", manager="kubectl-client-side-apply")
        await reconcile(env, of(config_map(a="1"), former=("kubectl-client-side-apply",)))
        assert "annotations" not in (await env.cluster.get(SETTINGS))["metadata"]

    async def test_a_conflict_that_must_fail_is_none_any_more(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await by_client(env, settings(a="0"), operation="Update")
        made: dict[str, Any] = {"on_conflict": Conflicts.FAIL}
        with pytest.raises(ReconcileError, match="former"):
            await reconcile(env, of(config_map(a="1"), **made))
        await reconcile(env, of(config_map(a="1"), former=("former",), **made))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_an_object_that_another_owner_controls_is_left_as_it_is(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        made = settings(a="1", b="2")
        made["metadata"]["ownerReferences"] = [await env.other_owner()]
        before = await by_client(env, made, operation="Update")
        await reconcile(env, of(config_map(a="1"), former=("former",)))
        assert (await env.condition())["reason"] == "Blocked"
        assert await env.cluster.get(SETTINGS) == before

    async def test_another_write_in_between_is_seen(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update")

        async def change() -> None:
            await env.merge_patch(SETTINGS, {"data": {"b": "3", "c": "3"}}, by="other")

        meanwhile = faults.meanwhile(change, kind="ConfigMap", verbs=[Verb.PATCH], first=2, times=1)
        await reconcile(env, of(config_map(a="1"), former=("former",)), cluster=FaultyCluster(env.cluster, [meanwhile]))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "b": "3", "c": "3"}

    async def test_a_diff_shows_it_and_writes_nothing(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_client(env, settings(a="1", b="2"), operation="Update")
        before = await env.cluster.get(SETTINGS)
        owner = await env.owner_manifest()
        (found,) = await diff([of(config_map(a="1"))], owner, env.cluster, former_managers=["former"])
        assert await env.cluster.get(SETTINGS) == before
        (shown,) = found.objects
        assert shown.reasons[0] == "metadata.managedFields[manager=former]: taken over"
        assert shown.after is not None
        assert shown.after["data"] == {"a": "1"}
        assert shown.after["metadata"]["labels"] == {taken_label("former"): "true"}
        assert ("data.b", "2", None) in [(each.path, each.before, each.after) for each in shown.fields]
        assert {each.manager for each in shown.taken} == {"former"}
        await reconcile(env, of(config_map(a="1"), former=("former",)))
        (found,) = await diff([of(config_map(a="1"))], owner, env.cluster, former_managers=["former"])
        assert found.is_empty

    @pytest.mark.parametrize(
        ("former", "problem"),
        [
            pytest.param(("*",), 'the pattern "\\*" matches every field manager', id="everything"),
            pytest.param(("kubectl-[ce]*",), "wildcards \\* and \\?, without \\[ and \\]", id="a set of characters"),
            pytest.param(("[!_]*",), "wildcards \\* and \\?, without \\[ and \\]", id="a negated set"),
            pytest.param(("",), "must be names or patterns of field managers, got ''", id="an empty name"),
            pytest.param((None,), "must be names or patterns of field managers, got None", id="None"),
        ],
    )
    async def test_a_name_that_cannot_be_meant_is_refused(self, env: Env, former: Any, problem: str) -> None:
        with pytest.raises(BuildError, match=problem):
            of(former=former)
        with pytest.raises(ConfigError, match=problem):
            await reconcile(env, former=former)

    async def test_a_text_instead_of_a_list_is_refused(self, env: Env) -> None:
        names: Any = "kubectl"
        with pytest.raises(ConfigError, match=r'must be a list of field managers, such as \["kubectl"\], not a text'):
            await reconcile(env, former=names)


class TestWorkloads:
    @pytest.mark.promise("former-writers", runs="a container of which only the image is ours")
    @pytest.mark.parametrize("operation", ["Update", "Apply"])
    async def test_a_container_of_a_former_writer_can_be_dropped(
        self, env: Env, web_base: Manifest, operation: str
    ) -> None:
        sidecar = {"name": "proxy", "image": "proxy:1", "resources": {"limits": {"cpu": "1"}}}
        theirs = copy_json(web_base)
        theirs["spec"]["template"]["spec"]["containers"].append(sidecar)
        await by_client(env, theirs, operation=operation)
        ours = copy_json(web_base)
        ours["spec"]["template"]["spec"]["containers"].append({"name": "proxy", "image": "proxy:2"})
        await reconcile(env, of(deployment.Builder(ours)))
        last = of(deployment.Builder(web_base))
        with pytest.raises(ReconcileError, match="Required value") as raised:
            await reconcile(env, last)
        assert raised.value.problem.endswith(
            '; spec.template.spec.containers[name=proxy] is not declared, and belongs in part to "former": '
            "if that is a former writer, name it with with_former_managers"
        )
        await reconcile(env, last, former=("former",))
        containers = (await env.cluster.get(env.web))["spec"]["template"]["spec"]["containers"]
        assert [one["name"] for one in containers] == ["web"]

    async def test_managers_of_subresources_stay_apart(self, env: Env, web_base: Manifest) -> None:
        """The HPA controller scales with the same name as that of the former writer."""
        await by_client(env, web_base, operation="Update", manager="kube-controller-manager")
        await env.scale(6)
        await env.run(6)
        await reconcile(env, of(deployment.Builder(web_base)), former=("kube-controller-manager",))
        live = await env.cluster.get(env.web)
        entries = [each.manager for each in ManagedFields.of(live).entries]
        assert FieldManager("kube-controller-manager", "Update", "scale") in entries
        assert FieldManager("kube-controller-manager", "Update", "status") in entries
        assert FieldManager("kube-controller-manager", "Update", "") not in entries
        assert live["spec"]["replicas"] == 6

    async def test_an_ignored_field_keeps_its_value(self, env: Env, web_base: Manifest, web_hpa: hpa.Resource) -> None:
        theirs = copy_json(web_base)
        theirs["spec"]["replicas"] = 5
        await by_client(env, theirs, operation="Update")
        events = await reconcile(env, of(deployment.Builder(web_base).build(), web_hpa), former=("former",))
        assert await env.replicas() == 5
        (note,) = events.notes
        assert "spec.progressDeadlineSeconds" in note
        assert "spec.replicas" not in note

    async def test_pods_are_not_replaced(self, env: Env, web_base: Manifest) -> None:
        """What an update has stored with defaults is dropped, and the API server sets the same defaults again."""
        await by_client(env, web_base, operation="Update")
        before = await env.cluster.get(env.web)
        await reconcile(env, of(deployment.Builder(web_base)), former=("former",))
        live = await env.cluster.get(env.web)
        assert live["spec"] == before["spec"]
        assert live["metadata"]["generation"] == before["metadata"]["generation"]

    async def test_an_entry_of_another_version_becomes_ours_too(self, env: Env, hpa_base: Manifest) -> None:
        old = {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"by": "former"}},
            "spec": {
                "scaleTargetRef": hpa_base["spec"]["scaleTargetRef"],
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 50,
            },
        }
        await by_client(env, old, operation="Update")
        await reconcile(env, of(hpa.Builder(hpa_base)))
        await reconcile(env, of(hpa.Builder(hpa_base)), former=("former",))
        live = await env.cluster.get(env.hpa)
        assert "by" not in live["metadata"]["labels"]
        assert [name for name, _ in await managers(env, env.hpa)].count("former") == 0
        assert [one["type"] for one in live["spec"]["metrics"]] == ["Pods"]


def test_the_status_of_a_kind_without_a_subresource_stays_apart() -> None:
    fields: Manifest = {"f:spec": {"f:size": {}}, "f:status": {"f:phase": {}}}
    entry = {"manager": "former", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
    names = {FieldManager("former", "Update", ""): "ours"}
    assert with_managers_renamed([entry], names) == [
        {**entry, "fieldsV1": {"f:status": {"f:phase": {}}}},
        {**entry, "manager": "ours", "operation": "Apply", "fieldsV1": {"f:spec": {"f:size": {}}}},
    ]


@pytest.mark.parametrize("own", [True, False], ids=["our create", "a former writer"])
def test_the_fields_of_our_own_create_are_recorded_as_an_apply_would(*, own: bool) -> None:
    """As without the crash after the create; of a former writer, the next apply removes maps that it has left empty."""
    fields: Manifest = {"f:data": {".": {}, "f:word": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}
    made = FieldManager("made", "Update", "")
    entry = {"manager": "made", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
    (moved,) = with_managers_renamed([entry], {made: "ours"}, made_by=made if own else None)
    applied: Manifest = {"f:data": {"f:word": {}}, "f:metadata": {"f:labels": {"f:app": {}}}}
    assert moved["fieldsV1"] == (applied if own else fields)
