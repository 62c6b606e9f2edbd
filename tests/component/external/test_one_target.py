"""An external resource at one target: recorded, created, kept in its desired state.

Public reports: https://github.com/crossplane/crossplane-runtime/pull/283 (created twice, because it was not shown yet),
https://github.com/crossplane-contrib/provider-http/issues/85 (created although it exists),
https://github.com/crossplane-contrib/provider-upjet-aws/pull/2140 (an update in each reconcile, because of a default),
https://github.com/kubernetes-sigs/external-dns/issues/685 (two owners of one name),
https://github.com/operator-framework/java-operator-sdk/issues/2976 (where the identity is stored).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import Field, SecretStr

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import Reason, finalize, reconciling
from ocf.concepts import AliveStatus, Data, GuardStatus, StatusReport
from ocf.errors import BuildError, HandlerError, ProviderRefusedError, ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import configmap, external, secret
from ocf.primitives.external import Record
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus
from tests.component.external.conftest import OWNER, Bucket, Buckets, Live, Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ocf.objects import Manifest

URL = Data[str]("url")


def run(test: Callable[[Shop], Coroutine[Any, Any, None]]) -> None:
    async def started() -> None:
        await test(await Shop.new())

    asyncio.run(started())


def test_it_is_recorded_before_it_is_created_and_then_left_alone() -> None:
    async def check(shop: Shop) -> None:
        recorded: list[bool] = []

        async def apply(identity: external.Identity, desired: Bucket, observed: Live | None) -> Live:
            recorded.append((await shop.records())["Bucket/town-corner"]["key"] == identity.key)
            return await Buckets.apply(shop.client, identity, desired, observed)

        shop.client.apply = apply  # type: ignore[method-assign]
        assert (await shop.result()).condition.status
        assert recorded == [True]
        assert shop.system.calls == ["read", "apply"]
        assert (await shop.records())["Bucket/town-corner"]["id"] == "b-1"
        version = shop.cluster.resource_version
        result = await shop.result()
        # Quiet: no call and no write until the next check.
        assert (shop.system.calls, shop.cluster.resource_version) == (["read", "apply"], version)
        assert result.requeue_after is not None
        assert result.requeue_after <= Buckets.resync

    run(check)


def test_a_change_outside_is_found_after_the_resync_period_and_undone() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        (place,) = shop.system.buckets
        shop.system.buckets[place] = shop.system.buckets[place].model_copy(update={"size": 9})
        await shop.reconcile()
        assert shop.system.buckets[place].size == 9
        shop.wait(601)
        result = await shop.result()
        assert [str(one) for one in result.outcomes[0].reasons] == ["size: changed"]
        assert shop.system.buckets[place].size == 1

    run(check)


def test_what_was_deleted_outside_is_created_again() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.system.buckets.clear()
        shop.wait(601)
        assert (await shop.result()).condition.status
        assert len(shop.system.buckets) == 1
        assert (await shop.records())["Bucket/town-corner"]["id"] == "b-2"

    run(check)


@pytest.mark.parametrize(
    ("before", "after", "applied"),
    [
        pytest.param(Bucket(), Bucket(size=2), 1, id="a value"),
        pytest.param(Bucket(labels={"a": "1"}), Bucket(labels={}), 1, id="a label is dropped"),
        pytest.param(Bucket(password=SecretStr("a")), Bucket(password=SecretStr("b")), 1, id="what cannot be observed"),
        pytest.param(Bucket(labels=None), Bucket(), 0, id="nothing"),
    ],
)
def test_a_changed_desired_state_is_applied_once_also_after_a_restart(
    before: Bucket, after: Bucket, applied: int
) -> None:
    async def check(shop: Shop) -> None:
        shop.declare = lambda: shop.component(before)
        await shop.reconcile()
        shop.restart()
        shop.system.calls.clear()
        shop.declare = lambda: shop.component(after)
        for _ in range(3):
            assert (await shop.result()).condition.status
        assert len(shop.system.writes) == applied

    run(check)


def test_a_value_that_the_system_does_not_keep_is_a_failure_and_not_a_loop() -> None:
    class Rounding(Buckets):
        async def apply(self, identity: external.Identity, desired: Bucket, observed: Live | None) -> Live:
            return await super().apply(identity, desired.model_copy(update={"size": 8}), observed)

    async def check(shop: Shop) -> None:
        shop.client = Rounding(shop.system)
        for _ in range(20):
            await shop.reconcile()
        result = await shop.result()
        assert "the system does not keep size as it was set" in result.condition.message
        assert shop.system.calls == ["read", "apply"]
        for _ in range(10):
            shop.wait((result.requeue_after or timedelta(0)).total_seconds())
            result = await shop.result()
        assert result.requeue_after is not None
        assert result.requeue_after >= timedelta(minutes=4)
        assert len(shop.system.created) == 1

    run(check)


@pytest.mark.parametrize("answers", [["apply"], ["apply", "apply"], ["delete"]], ids="-".join)
def test_a_lost_answer_creates_nothing_twice(answers: list[str]) -> None:
    async def check(shop: Shop) -> None:
        shop.system.lost = [*answers]
        for _ in range(5):
            await shop.reconcile()
            shop.wait(301)
        assert (await shop.result()).condition.status
        assert [*shop.system.created.values()] == [1]

    run(check)


def test_a_lost_record_is_found_by_its_key() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", subresource=Subresource.STATUS)
        await shop.cluster.patch(OWNER, {"status": None}, options)
        shop.restart()
        assert (await shop.result()).condition.status
        assert [*shop.system.created.values()] == [1]
        assert (await shop.records())["Bucket/town-corner"]["id"] == "b-1"

    run(check)


class Untagged(Buckets):
    """A system that stores no key with a bucket."""

    key_of = external.Client.key_of


def test_a_record_that_another_writer_destroys_is_restored_while_the_process_runs() -> None:
    """Also where the system stores no key: only after a restart does nothing show whose the resource is."""

    async def check(shop: Shop) -> None:
        shop.client = Untagged(shop.system)
        await shop.reconcile()
        before = await shop.records()
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", subresource=Subresource.STATUS)
        await shop.cluster.patch(OWNER, {"status": {"external": {"Bucket/town-corner": "broken"}}}, options)
        assert (await shop.result()).condition.status
        assert await shop.records() == before
        await shop.cluster.patch(OWNER, {"status": {"external": None}}, options)
        await shop.cluster.delete(OWNER)
        await shop.reconcile()
        assert not shop.system.buckets

    run(check)


@pytest.mark.parametrize(
    ("key", "adopt", "text"),
    [
        pytest.param("another", "always", "made for another owner", id="of another owner"),
        pytest.param("", None, "nothing shows that it was made for this owner", id="of an unknown owner"),
        pytest.param("", "always", "", id="adopted"),
    ],
)
def test_what_exists_already_is_not_taken_silently(key: str, adopt: str | None, text: str) -> None:
    async def check(shop: Shop) -> None:
        shop.system.buckets["", "old"] = Live(id="old", key=key, size=7, labels={})
        shop.system.names["", "town-corner"] = "old"
        shop.declare = lambda: shop.component(adopt=adopt)
        result = await shop.result()
        assert text in result.condition.message
        assert result.condition.status is not bool(text)
        assert shop.system.buckets["", "old"].size == (7 if text else 1)
        assert not shop.system.created
        assert bool(await shop.records()) is not bool(text)

    run(check)


def test_a_resource_that_is_not_shown_yet_is_not_created_again() -> None:
    class Slow(Buckets):
        visible_after = timedelta(seconds=30)

        async def read(self, identity: external.Identity) -> Live | None:
            found = await super().read(identity)
            return found if shop_of[0].clock.elapsed() > timedelta(seconds=20) else None

    shop_of: list[Shop] = []

    async def check(shop: Shop) -> None:
        shop_of.append(shop)
        shop.client = Slow(shop.system)
        shop.system.lost = ["apply"]
        for _ in range(12):
            await shop.reconcile()
            shop.wait(3)
            shop.restart()
        assert (await shop.result()).condition.status
        assert [*shop.system.created.values()] == [1]

    run(check)


@pytest.mark.parametrize("seconds", [-3600, -31, -2], ids=str)
def test_a_clock_that_was_set_back_creates_nothing_twice(seconds: int) -> None:
    """The clock of the next process may also be behind; what it reads may be as old as before."""

    class Slow(Buckets):
        visible_after = timedelta(seconds=30)

        async def read(self, identity: external.Identity) -> Live | None:
            found = await super().read(identity)
            return found if shown[0] else None

    shown = [False]

    async def check(shop: Shop) -> None:
        shop.client = Slow(shop.system)
        await shop.reconcile()
        shop.restart()
        shop.clock.jump(shop.clock.now() + timedelta(seconds=seconds))
        for _ in range(5):
            await shop.reconcile()
            shop.wait(5)
        shown[0] = True
        shop.wait(5)
        assert (await shop.result()).condition.status
        assert [*shop.system.created.values()] == [1]

    run(check)


def test_what_is_never_shown_is_created_again_also_after_the_clock_was_set_back() -> None:
    class Slow(Buckets):
        visible_after = timedelta(seconds=30)

    async def check(shop: Shop) -> None:
        shop.client = Slow(shop.system)
        await shop.reconcile()
        shop.system.buckets.clear()
        shop.restart()
        shop.clock.jump(shop.clock.now() - timedelta(hours=1))
        await shop.reconcile()
        shop.wait(32)
        assert (await shop.result()).condition.status
        assert [*shop.system.created.values()] == [2]

    run(check)


@pytest.mark.parametrize("named", [0, 7, None], ids=str)
def test_an_id_that_is_no_text_is_stored_as_one(named: object) -> None:
    class Numbered(Buckets):
        async def read(self, identity: external.Identity) -> Live | None:
            assert identity.id in {"", str(named)}
            return await super().read(replace(identity, id=""))

        def id_of(self, observed: Live) -> Any:
            del observed
            return named

    async def check(shop: Shop) -> None:
        shop.client = Numbered(shop.system)
        for _ in range(2):
            assert (await shop.result()).condition.status
            shop.restart()
        assert (await shop.records())["Bucket/town-corner"].get("id") == (None if named is None else str(named))
        assert shop.system.writes == ["apply"]

    run(check)


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("id_of", "read the id of"),
        ("key_of", "read the key of"),
        ("differences", "compare"),
        ("status", "determine status of"),
    ],
)
def test_a_method_of_the_client_that_fails_is_an_error_with_the_resource_and_the_method(method: str, step: str) -> None:
    class Broken(Buckets):
        """A client whose connection was never opened."""

    def broken(*_: object) -> None:
        raise KeyError("hunter2")

    setattr(Broken, method, broken)

    async def check(shop: Shop) -> None:
        shop.client = Broken(shop.system)
        for _ in range(3):
            with pytest.raises(ReconcileError):
                await shop.reconcile()
        place = "resource external/Bucket/town-corner"
        assert await shop.ready() == ("Error", f"failed to {step} {place}: Broken.{method}: KeyError")
        assert shop.system.writes == ["apply"]

    run(check)


@pytest.mark.parametrize("verb", ["read", "apply"])
def test_a_call_that_is_cancelled_inside_of_the_client_is_a_failure_as_any_other(verb: str) -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults[verb, ""] = asyncio.CancelledError()
        assert (await shop.result()).condition.reason == Reason.FAILING
        assert await shop.ready() == ("Failing", "external/Bucket/town-corner: the client cancelled the call")
        shop.system.faults.clear()
        shop.wait(1)
        assert (await shop.result()).condition.status

    run(check)


class Opaque:
    """It has no text of its own, so that each instance looks like another state."""


async def _later() -> Bucket:
    return Bucket()


_CYCLE: dict[str, Any] = {}
_CYCLE["a"] = _CYCLE


@pytest.mark.parametrize(
    ("desired", "problem"),
    [
        (lambda: None, "desired state: the function must return one, got NoneType"),
        (_later, "desired state: the function must return one, got coroutine"),
        (lambda: {"size": Opaque()}, "the desired state has a value of type Opaque, of which a change cannot be"),
        (lambda: {("a", "b"): 1}, "the desired state must be a model, a dataclass or a dict"),
        (lambda: {1: 1, "a": 2}, "the desired state must be a model, a dataclass or a dict"),
        (lambda: _CYCLE, "the desired state must be a model, a dataclass or a dict"),
    ],
    ids=["nothing", "a coroutine", "an object", "a tuple as key", "keys of two types", "a cycle"],
)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_desired_state_that_is_none_calls_nothing(desired: Any, problem: str) -> None:
    async def check(shop: Shop) -> None:
        bucket: external.Builder[Any, Live] = external.Builder(shop.client, name="town-corner", desired=desired)
        shop.declare = component.Builder("web", owner=OWNER).with_resource(bucket).build
        for _ in range(2):
            with pytest.raises((HandlerError, ReconcileError)):
                await shop.reconcile()
        assert problem in (await shop.ready())[1]
        assert shop.system.calls == []

    run(check)


def test_a_set_in_the_desired_state_is_the_same_state_in_each_process() -> None:
    program = (
        "from ocf.component.external.records import digest_of\n"
        "print(digest_of('k', {'tags': {'a', 'b', 'c', 'd'}, 'more': frozenset({1, 2})}))"
    )
    seeds = ("1", "2", "3")
    found = {
        subprocess.run(  # noqa: S603 (the program is above)
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in seeds
    }
    assert len(found) == 1


def test_events_do_not_bypass_the_backoff_of_a_failure_but_another_desired_state_does() -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults["apply", ""] = ProviderRefusedError("the quota of 5 buckets is used up")
        for _ in range(50):
            await shop.reconcile()
            shop.wait(1)
        result = await shop.result()
        # Doubling delays from a second on: 0, 1, 3, 7, 15, 31.
        assert shop.system.calls.count("apply") == 6
        assert result.condition.reason is Reason.FAILING
        assert "the quota of 5 buckets is used up" in result.condition.message
        del shop.system.faults["apply", ""]
        shop.declare = lambda: shop.component(Bucket(size=2))
        assert (await shop.result()).condition.status

    run(check)


@pytest.mark.parametrize("verb", ["read", "apply"])
def test_a_call_that_is_refused_is_not_repeated_by_events(verb: str) -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults[verb, ""] = RefusedError()
        for _ in range(50):
            await shop.reconcile()
            shop.wait(1)
        assert shop.system.calls.count(verb) == 6

    run(check)


class RefusedError(Exception):
    """The error of a client, with an HTTP status."""

    status = 403


def test_the_text_of_an_unknown_error_is_not_shown() -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults["read", ""] = ValueError("password=hunter2")
        result = await shop.result()
        assert result.condition.message == "external/Bucket/town-corner: Buckets.read: unexpected ValueError"
        assert "hunter2" not in str(await shop.status())

    run(check)


def test_a_call_that_hangs_ends_at_its_time_limit() -> None:
    async def check(shop: Shop) -> None:
        shop.client.time_limit = timedelta(milliseconds=20)
        shop.system.faults["read", ""] = 3600.0
        result = await shop.result()
        assert "no answer within 0.02 s" in result.condition.message

    run(check)


def test_it_takes_its_place_in_the_order_and_waits_for_data_and_guards() -> None:
    async def check(shop: Shop) -> None:
        name = Data[str]("name")
        blocked = [True]

        def declare() -> component.Component:
            settings = configmap.Builder({"metadata": {"name": "settings"}, "data": {"size": "3"}})
            settings.extract_into(name, lambda live: (live.data or {})["size"])
            bucket = external.Builder(shop.client, name="town-corner", desired=lambda: Bucket(size=int(name.require())))
            bucket.with_data_guard(name).extract_into(URL, lambda live: f"s3://{live.id}")
            bucket.with_guard(
                lambda: StatusReport(GuardStatus.BLOCKED if blocked[0] else GuardStatus.UNBLOCKED, "not yet")
            )
            login = secret.Builder({"metadata": {"name": "login"}}).with_data_guard(URL)
            login.with_mutation(secret.Mutation("url", lambda m: m.ensure_entry("url", URL.require())))
            builder = component.Builder("web", owner=OWNER)
            return builder.with_resource(settings).with_resource(bucket).with_resource(login).build()

        shop.declare = declare
        assert "not yet" in (await shop.result()).condition.message
        assert not shop.system.calls
        blocked[0] = False
        result = await shop.result()
        assert [one.resource for one in result.outcomes] == [
            "v1/ConfigMap/town/settings",
            "external/Bucket/town-corner",
            "v1/Secret/town/login",
        ]
        assert next(iter(shop.system.buckets.values())).size == 3
        stored = await shop.cluster.get(ObjectKey("v1", "Secret", "login", "town"))
        assert stored["data"]["url"]
        assert "s3://" not in str(await shop.status())

    run(check)


def test_a_failure_holds_up_nothing_after_it() -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults["read", ""] = ConnectionError()

        def declare() -> component.Component:
            after = configmap.Builder({"metadata": {"name": "after"}})
            return component.Builder("web", owner=OWNER).with_resource(shop.builder()).with_resource(after).build()

        shop.declare = declare
        result = await shop.result()
        assert result.condition.reason is Reason.FAILING
        await shop.cluster.get(ObjectKey("v1", "ConfigMap", "after", "town"))

    run(check)


def test_a_resource_that_is_not_ready_is_read_again_soon() -> None:
    class Growing(Buckets):
        def status(self, observed: Live) -> StatusReport[AliveStatus]:
            done = observed.region == "us"
            return StatusReport(AliveStatus.HEALTHY if done else AliveStatus.CREATING, "" if done else "it is built")

    async def check(shop: Shop) -> None:
        shop.client = Growing(shop.system)
        result = await shop.result()
        assert (result.condition.status, "it is built" in result.condition.message) == (False, True)
        (place,) = shop.system.buckets
        shop.system.buckets[place] = shop.system.buckets[place].model_copy(update={"region": "us"})
        assert result.requeue_after is not None
        shop.wait(result.requeue_after.total_seconds())
        assert (await shop.result()).condition.status

    run(check)


def test_nothing_is_created_for_an_owner_without_the_finalizer() -> None:
    async def check(shop: Shop) -> None:
        with pytest.raises(ReconcileError, match="call `finalize` with all components"):
            await reconciled(shop, OWNER, shop.component(), finalizes=False)
        assert not shop.system.writes

    run(check)


class Ledger(CustomResource[CamelModel], group="example.com", version="v1"):
    """An owner whose status has conditions only."""


async def reconciled(shop: Shop, key: ObjectKey, made: component.Component, *, finalizes: bool = True) -> None:
    async with reconciling(await shop.cluster.get(key), shop.cluster, clock=shop.clock) as context:
        if finalizes:
            await finalize(context, made)
        await made.reconcile(context)


LEDGER = {"apiVersion": "example.com/v1", "kind": "Ledger", "spec": {}}


@pytest.mark.parametrize("kind", [LEDGER, {"apiVersion": "v1", "kind": "ConfigMap"}], ids=lambda kind: kind["kind"])
def test_an_owner_that_cannot_hold_the_record_gets_an_error_and_nothing_outside(kind: Manifest) -> None:
    async def check(shop: Shop) -> None:
        await shop.cluster.create(Ledger.definition(), field_manager="user")
        owner = await shop.cluster.create(
            {**kind, "metadata": {"name": "a", "namespace": "town"}}, field_manager="user"
        )
        key = ObjectKey.of(owner)
        for _ in range(3):
            made = component.Builder("web", owner=key).with_resource(shop.builder()).build()
            with pytest.raises(ReconcileError, match=r"status\.external of .*/a"):
                await reconciled(shop, key, made)
            shop.wait(3600)
        assert not shop.system.writes

    run(check)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "name must be a text that can be printed, and not empty"),
        ({"desired": None}, "the desired state cannot be None"),
        ({"client": None}, "must be a Client, got NoneType"),
    ],
)
def test_a_wrong_declaration_is_an_error_of_the_builder(change: dict[str, Any], problem: str) -> None:
    async def check(shop: Shop) -> None:
        given: dict[str, Any] = {"client": shop.client, "name": "a", "desired": Bucket(), **change}
        with pytest.raises(BuildError, match=problem):
            external.Builder(given.pop("client"), **given).build()

    run(check)


def test_options_of_objects_and_names_that_are_used_twice_are_errors() -> None:
    async def check(shop: Shop) -> None:
        builder = component.Builder("web", owner=OWNER)
        builder.with_resource(shop.builder(), unowned=True, ignore_fields=["size"]).with_resource(shop.builder())
        with pytest.raises(BuildError) as found:
            builder.build()
        text = str(found.value)
        assert "does not take ignore_fields, unowned: it is not an object of the cluster" in text
        assert "external/Bucket/town-corner" in text

    run(check)


class DepotStatus(OwnerStatus):
    external: dict[str, Record] = Field(default_factory=dict)


class Depot(CustomResource[CamelModel, DepotStatus], group="example.com", version="v1"):
    """An owner with the documented field of the status, whose schema has defaults."""


def test_the_defaults_of_the_documented_schema_are_no_error_for_a_system_that_gives_ids() -> None:
    """The id is stored right after the create: the server puts back the fields that this record leaves empty."""

    async def check(shop: Shop) -> None:
        await shop.cluster.create(Depot.definition(), field_manager="user")
        metadata = {"name": "a", "namespace": "town"}
        depot = {"apiVersion": "example.com/v1", "kind": "Depot", "metadata": metadata, "spec": {}}
        key = ObjectKey.of(await shop.cluster.create(depot, field_manager="user"))
        made = component.Builder("web", owner=key).with_resource(shop.builder()).build()
        await reconciled(shop, key, made)
        status = (await shop.cluster.get(key))["status"]
        record = status["external"]["Bucket/town-corner"]
        assert (record["id"], record["sent"]) == ("b-1", "")
        assert [one["reason"] for one in status["conditions"]] == ["Healthy"]
        version = shop.cluster.resource_version
        await reconciled(shop, key, made)
        assert shop.cluster.resource_version == version

    run(check)
