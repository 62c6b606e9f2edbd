"""Predicates: which changes need no reconcile, and which always do."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ocf.cluster import ListOptions
from ocf.component import ReconcileContext
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import (
    Operator,
    Watch,
    annotations_changed,
    any_of,
    field_changed,
    labels_changed,
    spec_changed,
)
from ocf.runtime.operator.predicates import Predicate, needs_reconcile

from .conftest import NAMESPACE, SHOPS, Env, RunTest, Shop, components_of, key_of, settings_of, shop

SHOP = ("example.com/v1", "Shop")
SERVICE = ("v1", "Service")
SECRET = ("v1", "Secret")
FRONT = ObjectKey("v1", "Service", "corner-front", NAMESPACE)
GUIDE = ObjectKey("v1", "Secret", "guide", NAMESPACE)
CHANGES: dict[str, Manifest] = {
    "nothing": {},
    "bookkeeping": {"metadata": {"resourceVersion": "2", "managedFields": [], "generation": 7}},
    "spec": {"spec": {"a": 2}},
    "status": {"status": {"ready": 1}},
    "labels": {"metadata": {"labels": {"a": "b"}}},
    "annotations": {"metadata": {"annotations": {"a": "b"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/hold"]}},
    "owner references": {"metadata": {"ownerReferences": [{"uid": "1"}]}},
    "deletion": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    "data": {"data": {"a": "2"}},
}
LIFECYCLE = {"finalizers", "owner references", "deletion"}


def never(_old: Manifest, _new: Manifest) -> bool:
    return False


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        pytest.param(spec_changed, {"spec", "data"}, id="spec_changed"),
        pytest.param(labels_changed, {"labels"}, id="labels_changed"),
        pytest.param(annotations_changed, {"annotations"}, id="annotations_changed"),
        pytest.param(field_changed("status.ready", "data"), {"status", "data"}, id="field_changed"),
        pytest.param(any_of(spec_changed, labels_changed), {"spec", "data", "labels"}, id="any_of"),
        pytest.param(never, set(), id="one of the author's"),
    ],
)
def test_what_a_predicate_lets_through(predicate: Predicate, expected: set[str]) -> None:
    """And a deletion, finalizers and owner references always.

    https://github.com/kubernetes-sigs/node-readiness-controller/issues/213 and
    https://github.com/prometheus-operator/prometheus-operator/pull/8727: a deletion that a predicate kept away.
    """
    old: Manifest = {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"a": 1}}
    needed = {
        name
        for name, change in CHANGES.items()
        if needs_reconcile(
            predicate, old, {**old, **change, "metadata": {**old["metadata"], **change.get("metadata", {})}}
        )
    }
    assert needed == expected | LIFECYCLE


@pytest.mark.parametrize("make", [field_changed, any_of], ids=["field_changed", "any_of"])
def test_a_predicate_of_nothing_is_refused(make: Any) -> None:
    with pytest.raises(BuildError, match="needs a "):
        make()


async def _async(_old: Manifest, _new: Manifest) -> bool:
    return True


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"triggers": {"Shop": spec_changed}}, r"must be a pair such as .* got 'Shop'", id="a kind alone"),
        pytest.param({"triggers": {SHOP: "spec"}}, "needs a function of two manifests", id="no function"),
        pytest.param({"triggers": {SHOP: _async}}, "needs a function of two manifests", id="a coroutine function"),
        pytest.param(
            {"triggers": {SECRET: spec_changed}, "uncached": [SECRET]}, "in `uncached`", id="a kind without a watch"
        ),
    ],
)
def test_what_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Operator(name="shops", owner=SHOPS, components=components_of, **given)


async def _status(env: Env) -> None:
    await env.patch_status(key_of(), {"visits": 3}, by="counter")


async def _front_status(env: Env) -> None:
    when = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
    await env.patch_status(
        FRONT, {"conditions": [{"type": "Seen", "status": "True", "reason": "A", **when}]}, by="cloud"
    )


@pytest.mark.promise("predicates", runs="changes of an owner and of its objects, under predicates of their kinds")
@pytest.mark.parametrize(
    ("change", "reconciles"),
    [
        pytest.param(_status, 0, id="the status of the owner"),
        pytest.param(_front_status, 0, id="the status of an object"),
        pytest.param(
            lambda env: env.edit(key_of(), {"metadata": {"labels": {"a": "b"}}}), 0, id="a label of the owner"
        ),
        pytest.param(lambda env: env.edit(key_of(), {"spec": {"motto": "closed"}}), 1, id="its spec"),
        pytest.param(
            lambda env: env.edit(key_of(), {"metadata": {"finalizers": ["example.com/hold"]}}), 1, id="a finalizer"
        ),
        pytest.param(lambda env: env.edit(FRONT, {"metadata": {"ownerReferences": []}}), 1, id="an owner reference"),
        pytest.param(lambda env: env.cluster.delete(FRONT), 1, id="an object deleted"),
        pytest.param(lambda env: env.edit(settings_of(), {"data": {"motto": "x"}}), 1, id="an object of another kind"),
    ],
)
def test_what_triggers_a_reconcile(run_test: RunTest, change: Any, reconciles: int) -> None:
    async def test(env: Env) -> None:
        async with env.operating(triggers={SHOP: spec_changed, SERVICE: spec_changed}):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await change(env)
            await asyncio.sleep(30)
            assert len(env.passes) == reconciles

    run_test(test)


def test_the_end_of_a_pause_is_seen(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(triggers={SHOP: never}):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await env.edit(key_of(), {"metadata": {"annotations": {"shops.ocf.dev/paused": "true"}}})
            await asyncio.sleep(5)
            assert "Paused" in str((await env.cluster.get(key_of()))["status"])
            await env.edit(key_of(), {"metadata": {"annotations": {"shops.ocf.dev/paused": None}}})
            await asyncio.sleep(5)
            assert len(env.passes) == 1

    run_test(test)


def test_a_deleted_owner_is_cleaned_up(run_test: RunTest) -> None:
    cleaned: list[str] = []

    async def clean(owner: Shop, *_: object) -> None:
        cleaned.append(owner.metadata.name)

    async def test(env: Env) -> None:
        async with env.operating(triggers={SHOP: never}, on_delete=clean):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            assert cleaned == ["corner"]
            assert not await env.is_present(key_of())

    run_test(test)


@pytest.mark.promise("predicates", runs="objects relabelled from one owner to another, listed and mapped")
@pytest.mark.parametrize("how", ["listed", "mapped"])
def test_an_object_that_is_relabelled_concerns_both_owners(run_test: RunTest, how: str) -> None:
    """Whatever the predicate says: what selects the object has changed for both.

    https://github.com/kubernetes-sigs/controller-runtime/issues/2276 and
    https://github.com/operator-framework/java-operator-sdk/pull/3425: the owner that an object has left is not
    reconciled.
    """

    async def list_guides(owner: Shop, context: ReconcileContext) -> None:
        options = ListOptions(namespace=NAMESPACE, label_selector=f"shop={owner.metadata.name}")
        await context.cluster.list(*SECRET, options)

    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(NAMESPACE, secret["metadata"]["labels"]["shop"])]

    async def test(env: Env) -> None:
        given: dict[str, Any] = {"triggers": {SECRET: never}}
        if how == "listed":
            env.before = list_guides
        else:
            given["watches"] = [Watch(*SECRET, shops_of)]
        metadata = {"name": "guide", "namespace": NAMESPACE, "labels": {"shop": "corner"}}
        async with env.operating(**given):
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
            for name in ("corner", "other", "third"):
                await env.create(shop(name))
            await asyncio.sleep(5)
            env.forget()
            await env.edit(GUIDE, {"metadata": {"annotations": {"seen": "yes"}}, "stringData": {"a": "b"}})
            await asyncio.sleep(5)
            assert env.passes == []
            await env.edit(GUIDE, {"metadata": {"labels": {"shop": "other"}}})
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner", "other"]

    run_test(test)


def test_changes_that_one_event_reports_count_together(run_test: RunTest) -> None:
    """A change that is needed and a later one that is not, both while the watch is down."""

    async def test(env: Env) -> None:
        async with env.operating(triggers={SERVICE: spec_changed}):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            env.gateway.cut()
            await env.edit(FRONT, {"spec": {"sessionAffinity": "ClientIP"}})
            await _front_status(env)
            await asyncio.sleep(100)
            assert len(env.passes) == 1

    run_test(test)


def broken(_old: Manifest, _new: Manifest) -> bool:
    raise KeyError("hunter2")


def cancelling(_old: Manifest, _new: Manifest) -> bool:
    raise asyncio.CancelledError


def forgetful(old: Manifest, new: Manifest) -> None:
    """Lack a `return`."""
    spec_changed(old, new)


class Asynchronous:
    """A predicate whose method is a coroutine function, which the declaration does not show."""

    async def __call__(self, _old: Manifest, _new: Manifest) -> bool:
        return False


NOT_BOOL = "must return True or False, got"


@pytest.mark.parametrize(
    ("predicate", "problem"),
    [
        pytest.param(broken, "KeyError", id="an error"),
        pytest.param(cancelling, "CancelledError", id="a cancellation of something else"),
        pytest.param(forgetful, f"forgetful {NOT_BOOL} NoneType", id="no answer"),
        pytest.param(any_of(never, cast("Predicate", forgetful)), f"forgetful {NOT_BOOL} NoneType", id="of any_of"),
        pytest.param(lambda old, _: old["metadata"].get("annotations"), f"{NOT_BOOL} NoneType", id="falsy"),
        pytest.param(lambda *_: 0, f"{NOT_BOOL} int", id="a number"),
        pytest.param(Asynchronous(), f"Asynchronous {NOT_BOOL} coroutine", id="a coroutine"),
    ],
)
def test_a_predicate_that_fails_keeps_nothing_away(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, predicate: Any, problem: str
) -> None:
    async def test(env: Env) -> None:
        async with env.operating(triggers={SERVICE: predicate}):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await _front_status(env)
            await asyncio.sleep(5)
            assert len(env.passes) == 1

    run_test(test)
    assert "the predicate of Service failed" in caplog.text
    assert problem in caplog.text


def test_what_was_kept_away_is_used_by_the_next_process(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        seen: list[int] = []

        async def note(owner: Shop, _: ReconcileContext) -> None:
            seen.append(owner.status.visits if owner.status is not None else 0)

        env.before = note
        async with env.operating(triggers={SHOP: spec_changed}):
            await env.create(shop())
            await asyncio.sleep(5)
            await _status(env)
            await asyncio.sleep(30)
            assert seen == [0]
        async with env.operating(triggers={SHOP: spec_changed}):
            assert seen == [0, 3]

    run_test(test)
