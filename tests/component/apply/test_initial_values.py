"""What an object gets once: fields that are set at creation, and generated values.

Rebuilt from public reports: https://github.com/crossplane-contrib/provider-upjet-aws/issues/1260 (an initial value is
set again after another writer has changed it),
https://github.com/crossplane-contrib/provider-argocd/issues/268 (the image of an image updater is reverted),
https://github.com/helm/helm/issues/3053 (a password is generated again with every release),
https://github.com/AMRC-FactoryPlus/amrc-connectivity-stack/pull/647 (with every restart of the operator),
https://github.com/operator-framework/java-operator-sdk/issues/1758 (the desired state is asked twice, and differs),
https://github.com/cert-manager/cert-manager/pull/8579 (a stale cache: a second key is generated beside the first).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Verb
from ocf.component import Component, ReconcileContext, diff, reconciling
from ocf.component.status.results import Action
from ocf.concepts import Data
from ocf.concepts.provenance import SourceKind
from ocf.errors import BuildError, ConflictError, ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import configmap, deployment, secret
from ocf.testing import FaultyCluster, crash_at_each_write, faults
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.apply.test_takeover import managers, reconcile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.primitives import hpa
    from tests.component.conftest import Env

LOGIN: Final = ObjectKey("v1", "Secret", "login", "shop")
SHOP: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": "shop"}}
REPLICAS: Final = ("spec", "replicas")


def of(*resources: Any, suspended: bool = False, former: tuple[str, ...] = (), **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended).with_former_managers(*former)
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def scaled_to(base: Manifest, replicas: int, image: str = "web:1") -> deployment.Builder:
    base = copy_json(base)
    base["spec"]["replicas"] = replicas
    base["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return deployment.Builder(base)


def once(resource: Any, **options: Any) -> Component:
    return of(resource, set_once=["spec.replicas"], **options)


def login(**texts: str) -> secret.Builder:
    metadata = {"name": "login", "namespace": "shop"}
    return secret.Builder({"metadata": metadata, "stringData": {"user": "shop", **texts}})


def numbered() -> Callable[[], str]:
    """Return a source whose values are all different."""
    numbers = count(1)
    return lambda: f"value-{next(numbers)}"


async def writes_of(env: Env, made: Component) -> int:
    env.cluster.requests.clear()
    await env.reconcile(made)
    return env.cluster.requests.writes


async def password(env: Env) -> str | None:
    found = (await env.cluster.get(LOGIN)).get("data", {}).get("password")
    return None if found is None else b64decode(found).decode()


def holders(live: Manifest, path: tuple[str, ...]) -> list[str]:
    return [manager.name for manager in ManagedFields.of(live).owners_of(path)]


async def edit(env: Env, key: ObjectKey, patch: Manifest) -> Manifest:
    return await env.cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl-edit"))


class TestSetOnce:
    async def test_the_create_has_the_value_and_no_manager_keeps_it(self, env: Env, web_base: Manifest) -> None:
        made = once(scaled_to(web_base, 3))
        result = await env.reconcile(made)
        assert [(one.action, one.writes) for one in result.outcomes] == [(Action.CREATED, 2)]
        live = await env.cluster.get(env.web)
        assert (live["spec"]["replicas"], holders(live, REPLICAS)) == (3, [])
        assert await writes_of(env, made) == 0

    async def test_what_else_is_applied_is_owned_as_by_an_apply(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(once(scaled_to(web_base, 3)))
        created = ManagedFields.of(await env.cluster.get(env.web)).paths()
        await env.cluster.delete(env.web)
        await env.reconcile(of(deployment.Builder(web_base)))
        assert created == ManagedFields.of(await env.cluster.get(env.web)).paths()

    @pytest.mark.parametrize("by", ["an edit", "an apply", "the scale subresource"])
    async def test_another_writer_changes_it_without_a_conflict_and_for_good(
        self, env: Env, web_base: Manifest, by: str
    ) -> None:
        await env.reconcile(once(scaled_to(web_base, 3)))
        if by == "an edit":
            await edit(env, env.web, {"spec": {"replicas": 5}})
        elif by == "an apply":
            manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
            await env.cluster.apply({**manifest, "spec": {"replicas": 5}}, field_manager="gitops")
        else:
            await env.scale(5)
        assert await writes_of(env, once(scaled_to(web_base, 3))) == 0
        await env.reconcile(once(scaled_to(web_base, 4, "web:2")))
        live = await env.cluster.get(env.web)
        assert live["spec"]["replicas"] == 5
        assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"

    async def test_without_the_option_another_apply_conflicts(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(of(scaled_to(web_base, 3)))
        manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
        with pytest.raises(ConflictError):
            await env.cluster.apply({**manifest, "spec": {"replicas": 5}}, field_manager="gitops")

    async def test_a_value_that_another_writer_removes_stays_removed(self, env: Env) -> None:
        metadata = {"name": "login", "namespace": "shop", "annotations": {"a": "1", "b": "2"}}
        made = of(secret.Builder({"metadata": metadata}), set_once=["metadata.annotations.a"])
        await env.reconcile(made)
        await edit(env, LOGIN, {"metadata": {"annotations": {"a": None}}})
        assert await writes_of(env, made) == 0
        assert (await env.cluster.get(LOGIN))["metadata"]["annotations"] == {"b": "2"}

    async def test_a_field_that_was_applied_before_keeps_its_value(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(of(scaled_to(web_base, 3)))
        made = once(scaled_to(web_base, 4, "web:2"))
        (found,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert [each.path for each in found.objects[0].fields] == ["spec.template.spec.containers[0].image"]
        result = await env.reconcile(made)
        assert "spec.replicas: handed over" in result.outcomes[0].reason_texts
        live = await env.cluster.get(env.web)
        assert (live["spec"]["replicas"], holders(live, REPLICAS)) == (3, [])
        assert await writes_of(env, made) == 0

    async def test_a_field_that_is_not_set_once_any_more_is_applied(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(once(scaled_to(web_base, 3)))
        await env.reconcile(of(scaled_to(web_base, 4)))
        assert await env.replicas() == 4

    async def test_a_field_of_a_former_writer_keeps_its_value(self, env: Env, web_base: Manifest) -> None:
        manifest = copy_json(web_base)
        manifest["spec"]["replicas"] = 7
        await env.cluster.create(manifest, field_manager="helm")
        made = once(scaled_to(web_base, 3), former=("helm",))
        await env.reconcile(made)
        live = await env.cluster.get(env.web)
        assert (live["spec"]["replicas"], holders(live, REPLICAS)) == (7, [])
        assert await writes_of(env, made) == 0

    async def test_an_autoscaler_starts_from_it(self, env: Env, web_base: Manifest, web_hpa: hpa.Resource) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        builder.with_resource(scaled_to(web_base, 3), set_once=["spec.replicas"]).with_resource(web_hpa)
        made = builder.build()
        assert [each["spec"].get("replicas") for each in made.render()] == [3, None]
        await env.reconcile(made)
        assert await env.replicas() == 3
        await env.scale(6)
        assert await writes_of(env, made) == 0
        assert await env.replicas() == 6

    @pytest.mark.parametrize("scaled", [None, 5], ids=["as created", "scaled since"])
    async def test_a_suspension_brings_back_the_present_value(
        self, env: Env, web_base: Manifest, scaled: int | None
    ) -> None:
        await env.reconcile(once(scaled_to(web_base, 3)))
        if scaled is not None:
            await env.scale(scaled)
        await env.reconcile(once(scaled_to(web_base, 3), suspended=True))
        assert await env.replicas() == 0
        await env.reconcile(once(scaled_to(web_base, 3)))
        live = await env.cluster.get(env.web)
        assert (live["spec"]["replicas"], holders(live, REPLICAS)) == (scaled or 3, [])
        assert await writes_of(env, once(scaled_to(web_base, 3))) == 0

    async def test_an_object_that_is_created_suspended_gets_it_on_resume(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(once(scaled_to(web_base, 3), suspended=True))
        assert await env.replicas() == 0
        await env.reconcile(once(scaled_to(web_base, 3)))
        assert await env.replicas() == 3

    async def test_a_stale_read_does_not_set_it_again(self, env: Env, web_base: Manifest) -> None:
        cluster = FaultyCluster(env.cluster, [faults.stale(versions=9, kind="Deployment", verbs=[Verb.GET], first=2)])
        await reconcile(env, once(scaled_to(web_base, 3)), cluster=cluster)
        await env.scale(5)
        await reconcile(env, once(scaled_to(web_base, 3)), cluster=cluster)
        assert await env.replicas() == 5

    @pytest.mark.parametrize("options", [{"unowned": True}, {}], ids=["unowned", "owned"])
    async def test_what_is_deleted_before_the_apply_is_created_whole(
        self, env: Env, web_base: Manifest, options: dict[str, Any]
    ) -> None:
        await env.reconcile(once(scaled_to(web_base, 3), **options))
        gone = faults.meanwhile(lambda: env.cluster.delete(env.web), kind="Deployment", verbs=[Verb.APPLY], times=1)
        made = once(scaled_to(web_base, 3, "web:2"), **options)
        await reconcile(env, made, cluster=FaultyCluster(env.cluster, [gone]))
        assert await env.replicas() == 3

    async def test_a_diff_lists_it_as_ignored(self, env: Env, web_base: Manifest) -> None:
        made = once(scaled_to(web_base, 3))
        (before,) = await diff([made], await env.owner_manifest(), env.cluster)
        after = before.objects[0].after
        assert after is not None
        assert after["spec"]["replicas"] == 3
        await env.reconcile(made)
        await env.scale(5)
        (found,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert (found.objects, [(each.path, each.value) for each in found.ignored]) == ((), [("spec.replicas", 5)])


class TestGenerated:
    @pytest.mark.promise("generated-once", runs="a creation, edits and removals of others, on both servers")
    async def test_a_value_is_generated_once_and_read_from_then_on(self, env: Env) -> None:
        source = numbered()
        made = of(login().with_generated("password", source))
        result = await env.reconcile(made)
        assert [(one.action, one.writes) for one in result.outcomes] == [(Action.CREATED, 2)]
        assert await password(env) == "value-1"
        assert await writes_of(env, made) == 0
        await env.reconcile(of(login(host="db").with_generated("password", source)))
        assert await password(env) == "value-1"
        await edit(env, LOGIN, {"stringData": {"password": "by hand"}})
        assert await writes_of(env, of(login(host="db").with_generated("password", source))) == 0
        assert await password(env) == "by hand"

    async def test_a_removed_entry_is_generated_again(self, env: Env) -> None:
        made = of(login().with_generated("password", numbered()))
        await env.reconcile(made)
        await edit(env, LOGIN, {"data": {"password": None}})
        result = await env.reconcile(made)
        assert result.outcomes[0].reason_texts == ("data.password: generated",)
        live = await env.cluster.get(LOGIN)
        assert (await password(env), holders(live, ("data", "password"))) == ("value-2", [])
        assert await writes_of(env, made) == 0

    async def test_an_empty_value_is_a_value(self, env: Env) -> None:
        made = of(login().with_generated("password", numbered()))
        await env.reconcile(made)
        await edit(env, LOGIN, {"data": {"password": ""}})
        assert await writes_of(env, made) == 0

    @pytest.mark.promise("generated-once", runs="values that a user or the component has set before, on both servers")
    @pytest.mark.parametrize("before", ["a user", "the component", "a former manager"])
    async def test_a_value_that_is_there_already_is_kept(self, env: Env, before: str) -> None:
        if before == "the component":
            await env.reconcile(of(login(password="old")))
        else:
            await env.create(LOGIN, stringData={"password": "old"})
        former = ("kubectl-edit",) if before == "a former manager" else ()
        made = of(login().with_generated("password", numbered()), former=former)
        await env.reconcile(made)
        assert await password(env) == "old"
        assert await writes_of(env, made) == 0

    async def test_a_declared_value_is_applied_in_its_place(self, env: Env) -> None:
        """An owner may name a value, and leave it out later."""
        source = numbered()
        await env.reconcile(of(login().with_generated("password", source)))
        await env.reconcile(of(login(password="chosen").with_generated("password", source)))
        assert await password(env) == "chosen"
        await env.reconcile(of(login().with_generated("password", source)))
        assert await password(env) == "chosen"

    async def test_later_resources_get_it_in_the_same_reconcile(self, env: Env) -> None:
        value: Data[str] = Data("password")
        made = of(
            login()
            .with_generated("password", numbered())
            .extract_into(value, lambda live: b64decode((live.data or {})["password"]).decode()),
            configmap.Builder({"metadata": {"name": "settings", "namespace": "shop"}})
            .with_data_guard(value)
            .with_mutation(configmap.Mutation("url", lambda m: m.ensure_entry("length", str(len(value.require()))))),
        )
        result = await env.reconcile(made)
        assert [one.action for one in result.outcomes] == [Action.CREATED, Action.CREATED]
        live = await env.cluster.get(ObjectKey("v1", "ConfigMap", "settings", "shop"))
        assert live["data"] == {"length": "7"}

    async def test_entries_of_config_maps_and_bytes(self, env: Env) -> None:
        settings = configmap.Builder({"metadata": {"name": "settings", "namespace": "shop"}})
        made = of(
            settings.with_generated("cluster.id", numbered()),
            login().with_generated("tls.key", lambda: b"\xff\x00"),
        )
        await env.reconcile(made)
        assert await writes_of(env, made) == 0
        live = await env.cluster.get(ObjectKey("v1", "ConfigMap", "settings", "shop"))
        assert live["data"] == {"cluster.id": "value-1"}
        assert b64decode((await env.cluster.get(LOGIN))["data"]["tls.key"]) == b"\xff\x00"

    async def test_the_default_is_a_random_password(self, env: Env) -> None:
        await env.reconcile(of(login().with_generated("password").with_generated("other")))
        data = (await env.cluster.get(LOGIN))["data"]
        values = [b64decode(data[key]).decode() for key in ("password", "other")]
        assert values[0] != values[1]
        assert all(len(value) == 32 and value.isascii() and value.isalnum() for value in values)

    @pytest.mark.promise("generated-once", runs="lost answers and stale reads of one process, on both servers")
    @pytest.mark.parametrize("removed", [False, True], ids=["a new object", "a removed entry"])
    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(faults.lost_reply(kind="Secret", verbs=[Verb.CREATE, Verb.APPLY], times=1), id="lost answer"),
            pytest.param(faults.server_error(kind="Secret", verbs=[Verb.PATCH], times=1), id="ownership not changed"),
            pytest.param(faults.conflict(kind="Secret", verbs=[Verb.APPLY], times=1), id="conflict"),
        ],
    )
    async def test_a_value_that_is_stored_is_never_replaced(
        self, env: Env, fault: faults.Fault, *, removed: bool
    ) -> None:
        """The reads of the next reconcile are older than the write, as in a cache without its event."""
        source = numbered()
        made = of(login().with_generated("password", source))
        if removed:
            await env.reconcile(made)
            await edit(env, LOGIN, {"data": {"password": None}})
        old = faults.stale(versions=2, kind="Secret", verbs=[Verb.GET], first=2)
        cluster = FaultyCluster(env.cluster, [fault, old])
        with suppress(ReconcileError):
            await reconcile(env, made, cluster=cluster)
        first = await password(env)
        await reconcile(env, made, cluster=cluster)
        assert first is not None
        assert await password(env) == first
        assert await writes_of(env, made) == 0
        assert await password(env) == first
        assert set(await managers(env, LOGIN)) <= {("ocf/Shop/web", "Apply"), ("kubectl-edit", "Update")}

    async def test_two_processes_agree_on_a_value(self, env: Env) -> None:
        """Such as an old leader and a new one."""
        other = of(login().with_generated("password", lambda: "theirs"))

        async def overtake() -> None:
            await env.reconcile(other)

        first = faults.meanwhile(overtake, kind="Secret", verbs=[Verb.CREATE], times=1)
        await reconcile(
            env, of(login().with_generated("password", lambda: "ours")), cluster=FaultyCluster(env.cluster, [first])
        )
        assert await password(env) == "theirs"

    async def test_a_value_that_another_writer_sets_before_the_write_is_kept(self, env: Env) -> None:
        made = of(login().with_generated("password", numbered()), unowned=True)
        await env.reconcile(made)
        await edit(env, LOGIN, {"data": {"password": None}})
        first = faults.meanwhile(
            lambda: edit(env, LOGIN, {"stringData": {"password": "by hand"}}),
            kind="Secret",
            verbs=[Verb.APPLY],
            times=1,
        )
        await reconcile(env, made, cluster=FaultyCluster(env.cluster, [first]))
        assert await password(env) == "by hand"

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            pytest.param(lambda: "", "must not return an empty value", id="nothing"),
            pytest.param(lambda: b"", "must not return an empty value", id="no bytes"),
            pytest.param(lambda: None, "must return a text or bytes, not of type NoneType", id="None"),
            pytest.param(lambda: int("hunter2"), "failed to generate data.password: ValueError", id="an error"),
        ],
    )
    async def test_a_source_that_fails_is_named_without_a_value(self, env: Env, source: Any, problem: str) -> None:
        made = of(login().with_generated("password", source))
        with pytest.raises(ReconcileError) as raised:
            await env.reconcile(made)
        assert problem in str(raised.value)
        assert "hunter2" not in str(raised.value)
        assert not await env.exists(LOGIN)

    @pytest.mark.promise("generated-once", runs="a certificate and its key, of which one is deleted or declared")
    async def test_values_that_belong_together_are_generated_together(self, env: Env) -> None:
        """One of them without the other is of no use."""
        made: list[str] = []

        def pair() -> tuple[str, bytes]:
            made.append(f"{len(made)}")
            return f"crt-{made[-1]}", f"key-{made[-1]}".encode()

        async def values() -> list[str]:
            data = (await env.cluster.get(LOGIN))["data"]
            return [b64decode(data[key]).decode() for key in ("crt", "key")]

        wanted = of(login().with_generated(("crt", "key"), pair))
        await env.reconcile(wanted)
        assert await values() == ["crt-0", "key-0"]
        assert (await env.reconcile(wanted)).writes == 0
        await edit(env, LOGIN, {"data": {"crt": None}})
        await env.reconcile(wanted)
        assert await values() == ["crt-1", "key-1"]
        await edit(env, LOGIN, {"data": {"key": b64encode(b"chosen").decode()}})
        await env.reconcile(wanted)
        assert await values() == ["crt-1", "chosen"]

        declared = secret.Mutation("crt", lambda m: m.ensure_entry("crt", "of the author"))
        await edit(env, LOGIN, {"data": {"key": None}})
        await env.reconcile(of(login().with_generated(("crt", "key"), pair).with_mutation(declared)))
        assert (await env.cluster.get(LOGIN))["data"].keys() & {"crt", "key"} == {"crt"}
        assert len(made) == 2

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            pytest.param(lambda: "hunter2", "must return 2 values, got an object of type str", id="a text"),
            pytest.param(lambda: ["hunter2"], "must return 2 values, got 1", id="too few"),
            pytest.param(lambda: ("hunter2", None), "must return a text or bytes, not of type NoneType", id="None"),
        ],
    )
    async def test_a_source_of_several_that_fails_sends_none(self, env: Env, source: Any, problem: str) -> None:
        with pytest.raises(ReconcileError) as raised:
            await env.reconcile(of(login().with_generated(("crt", "key"), source)))
        assert problem in str(raised.value)
        assert "hunter2" not in str(raised.value)
        assert not await env.exists(LOGIN)

    async def test_a_diff_shows_that_it_is_generated(self, env: Env) -> None:
        made = of(login().with_generated("password", lambda: "hunter2"))
        (created,) = await diff([made], await env.owner_manifest(), env.cluster)
        await env.reconcile(made)
        await edit(env, LOGIN, {"data": {"password": None}})
        (updated,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert created.objects[0].after is not None
        assert created.objects[0].after["data"]["password"] == "(generated)"
        fields = [(each.path, each.after, each.source) for each in updated.objects[0].fields]
        assert fields == [("data.password", "(generated)", "generated")]
        assert updated.objects[0].reasons == ("data.password: generated",)
        await env.reconcile(made)
        (none,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert none.is_empty


class TestDeclarations:
    @pytest.mark.parametrize(
        ("key", "source", "problem"),
        [
            pytest.param("pass word", str, "data[pass word]: ", id="an invalid key"),
            pytest.param(
                7, str, "with_generated requires the key of an entry, or a tuple of keys, and a function", id="a number"
            ),
            pytest.param(
                "password",
                None,
                "with_generated requires the key of an entry, or a tuple of keys, and a function",
                id="None",
            ),
            pytest.param("password", "hunter2", "must be a function, not of type str", id="a value"),
            pytest.param((), str, "with_generated requires the key of an entry, or a tuple of keys", id="no key"),
            pytest.param(("a", "a"), str, "with_generated requires different keys, got a, a", id="a key twice"),
            pytest.param(("a", "b c"), str, "data[b c]: ", id="an invalid key of two"),
        ],
    )
    def test_problems_of_the_builder(self, key: Any, source: Any, problem: str) -> None:
        with pytest.raises(BuildError) as raised:
            login().with_generated(key, source).build()
        assert any(problem in each for each in raised.value.problems)

    def test_a_preview_shows_what_is_generated(self) -> None:
        declared = secret.Mutation("crt", lambda m: m.ensure_entry("crt", "of the author"))
        pair = login().with_generated(("crt", "key"), lambda: ("a", "b"))

        def generated(resource: secret.Builder) -> list[str]:
            (found,) = of(resource).explain()
            return [one.path for one in found.fields if one.source.kind is SourceKind.GENERATED]

        assert generated(pair) == ["data.crt", "data.key"]
        assert generated(pair.with_mutation(declared)) == []

    @pytest.mark.parametrize(
        "option", [{"recreate_on_immutable_change": True}, {"recreate_when_changed": ["metadata.labels.a"]}], ids=str
    )
    def test_a_recreation_would_lose_the_values(self, option: dict[str, Any]) -> None:
        with pytest.raises(BuildError, match=f"{next(iter(option))} is mutually exclusive with generated values"):
            of(login().with_generated("password"), **option)

    def test_a_rendering_has_no_value_and_calls_no_source(self) -> None:
        def source() -> str:
            raise AssertionError

        made = of(login().with_generated("password", source))
        assert "password" not in made.render()[0]["data"]
        (explained,) = made.explain()
        assert str(explained.field("data.password").source) == "generated"
        assert explained.field("data.password").value == "(generated)"

    def test_a_builder_that_is_used_twice_keeps_its_entries_apart(self) -> None:
        plain = login()
        generating = login().with_generated("password")
        assert list(plain.build().generated) == []
        assert list(generating.build().generated) == [("data", "password")]


@pytest.mark.promise("generated-once", runs="4 disturbances of each write of a creation, a removal and a suspension")
class TestCrashes:
    """A process ends, and the next one starts with nothing but the cluster."""

    @pytest.mark.parametrize("scenario", ["created", "removed", "set by a former version"])
    async def test_every_disturbance_ends_with_one_value(self, scenario: str) -> None:
        stored: dict[int, set[str]] = {}

        async def new_cluster() -> EmbeddedCluster:
            cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
            await cluster.create(SHOP, field_manager="user")
            if scenario == "removed":
                await _reconcile(cluster, of(login().with_generated("password", lambda: "first")))
                patch = {"data": {"password": None}}
                await cluster.patch(LOGIN, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
            elif scenario == "set by a former version":
                await _reconcile(cluster, of(login(password="first")))
            return cluster

        source = numbered()

        async def operate(cluster: Cluster) -> None:
            await _reconcile(cluster, of(login().with_generated("password", source)))

        async def look(cluster: Cluster) -> None:
            found = [each for each in (await cluster.list("v1", "Secret")).items if each["metadata"]["name"] == "login"]
            for live in found:
                if "password" in live["data"]:
                    stored.setdefault(id(cluster), set()).add(live["data"]["password"])
                # The comparison of the runs is about everything else.

        report = await crash_at_each_write(new_cluster, operate, others=look)
        assert all(len(values) == 1 for values in stored.values())
        for row in report.different:
            assert all("password" in problem for problem in row.problems), str(row)

    async def test_an_initial_value_survives_every_disturbance(self) -> None:
        async def new_cluster() -> EmbeddedCluster:
            cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
            await cluster.create(SHOP, field_manager="user")
            return cluster

        async def operate(cluster: Cluster) -> None:
            metadata = {"name": "login", "namespace": "shop", "annotations": {"a": "1", "b": "2"}}
            await _reconcile(cluster, of(secret.Builder({"metadata": metadata}), set_once=["metadata.annotations.a"]))

        report = await crash_at_each_write(new_cluster, operate)
        report.assert_same()


async def _reconcile(cluster: Cluster, *components: Component) -> ReconcileContext:
    async with reconciling(await cluster.get(ObjectKey.of(SHOP)), cluster) as context:
        for each in components:
            await each.reconcile(context)
    return context
