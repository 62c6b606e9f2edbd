"""What is recorded of reconciles: triggers, steps and differences, within bounds, and never a value of a Secret."""

from __future__ import annotations

import asyncio
import tracemalloc
from base64 import b64encode
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import pytest

from ocf.component import ReconcileContext
from ocf.component.diff import changed_fields
from ocf.errors import RetryError
from ocf.objects import ObjectKey
from ocf.objects.redaction import redacted
from ocf.runtime.page.options import PageOptions
from ocf.runtime.page.process import Page
from ocf.runtime.page.timeline import FieldChange, Reconcile, Step, Timeline, Write, differing
from ocf.runtime.workqueue import WorkQueue
from tests.runtime.operator.conftest import NAMESPACE, Env, RunTest, Shop, key_of, settings_of, shop

PAGE: Final[dict[str, Any]] = {"page": PageOptions()}
NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECRET: Final = ObjectKey("v1", "Secret", "access", NAMESPACE)
VALUE: Final = "hunter2-of-the-shop"


def test_the_fields_are_those_of_a_comparison_of_whole_objects() -> None:
    leaves = (None, 0, False)
    maps = [
        {name: leaf for name, leaf in zip("ab", pair, strict=True) if leaf is not None}
        for pair in product(leaves, leaves)
    ]
    secrets = [{"env": [{"name": "DB_PASSWORD", "value": value}], "a": 0} for value in "xy"]
    values: list[Any] = [*maps, *([one] for one in maps), *secrets, 0]
    objects = [{"spec": one} for one in values] + [{"spec": {"inner": one, "other": 1}} for one in values]
    for before, after in product(objects, objects):
        whole = changed_fields(redacted(before), redacted(after))
        assert changed_fields(*map(redacted, differing(before, after))) == whole, (before, after)


def page_of(page: Page | None) -> Page:
    assert page is not None
    return page


def record(number: int, owner: str = "corner", **changes: Any) -> Reconcile:
    key = ObjectKey("example.com/v1", "Shop", owner, NAMESPACE)
    return Reconcile(number, "shops", key, NOON, 0.5, ("Shop corner modified",), (), (), "")._replace(**changes)


@pytest.mark.usefixtures("unserved")
def test_a_reconcile_is_recorded_with_trigger_steps_and_differences(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(options=PAGE) as manager:
            await env.create(shop())
            await asyncio.sleep(10)
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(10)
            latest, first = page_of(manager.page).timeline.latest()

        assert (first.triggers, latest.triggers) == (("Shop corner added",), ("Shop corner modified",))
        assert [(one.resource.kind, one.done) for one in first.steps] == [
            ("ConfigMap", "Created: absent"),
            ("Service", "Created: absent"),
        ]
        assert [(one.verb, one.key.kind, one.part) for one in first.writes] == [
            ("create", "ConfigMap", ""),
            ("create", "Service", ""),
            ("update", "Shop", "status"),
        ]
        settings, status = latest.writes
        assert settings.fields == (FieldChange("data.motto", "open", "closed"),)
        assert status.fields == (FieldChange("status.conditions[0].observedGeneration", "1", "2"),)
        assert (latest.owner, latest.problem) == (key_of(), "")

    run_test(test)


@pytest.mark.usefixtures("unserved")
def test_failures_and_what_follows_them_are_recorded(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async def fail(_: Shop, context: ReconcileContext) -> None:
            if len(env.passes) == 1:
                await context.cluster.get(ObjectKey("v1", "ConfigMap", "absent", NAMESPACE))
            if len(env.passes) == 2:
                raise RetryError("the bank is closed")

        env.before = fail
        async with env.operating(options=PAGE) as manager:
            await env.create(shop())
            await asyncio.sleep(30)
            third, second, first = page_of(manager.page).timeline.latest()

        assert first.problem == "v1/ConfigMap/town/absent not found"
        assert (second.triggers, second.problem) == (("retry 1 after a failure",), "the bank is closed")
        assert (third.triggers, third.problem) == (("retry 2 after a failure",), "")

    run_test(test)


@pytest.mark.usefixtures("unserved")
@pytest.mark.parametrize(
    "text",
    [VALUE, f"postgres://shop:{VALUE}@db/shop", b64encode(VALUE.encode()).decode()],
    ids=["alone", "url", "base64"],
)
def test_no_record_has_a_value_of_a_secret_that_the_reconcile_has_seen(run_test: RunTest, text: str) -> None:
    # https://github.com/argoproj/argo-cd/issues/897 and https://github.com/argoproj/argo-cd/issues/15693: values of
    # Secrets stand in other fields and annotations, too.
    async def test(env: Env) -> None:
        async def spread(_: Shop, context: ReconcileContext) -> None:
            secret: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret"}
            secret["metadata"] = {"name": "access", "namespace": NAMESPACE}
            secret["metadata"] |= {"annotations": {f"copy-{len(env.passes)}": VALUE}}
            await context.cluster.apply({**secret, "stringData": {"password": VALUE}}, field_manager="test")
            await context.cluster.get(SECRET)
            copy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy", "namespace": NAMESPACE}}
            data = {f"address-{len(env.passes)}": text, "visits": f"{len(env.passes)}"}
            await context.cluster.apply({**copy, "data": data}, field_manager="test")
            if len(env.passes) == 1:
                raise RetryError(f"cannot log in with {text}")

        env.before = spread
        async with env.operating(options=PAGE) as manager:
            await env.create(shop())
            await asyncio.sleep(30)
            records = page_of(manager.page).timeline.latest()

        fields = {one.path: one.after for each in records for write in each.writes for one in write.fields}
        assert VALUE not in repr(records)
        assert b64encode(VALUE.encode()).decode() not in repr(records)
        assert (fields["data.address-2"], fields["data.visits"]) == ("not shown: may be secret", "2")
        assert "not shown: may be secret" in {one.problem for one in records}
        # Of a Secret not even the names of its fields: one may be its value.
        assert fields["metadata"] == "not shown: may be secret"

    run_test(test)


@pytest.mark.usefixtures("unserved")
def test_a_process_without_a_page_records_nothing(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating() as manager:
            await env.create(shop())
            await asyncio.sleep(10)
            (controller,) = manager.controllers
            assert manager.page is None
            assert type(controller.queue) is WorkQueue

    run_test(test)


@pytest.mark.usefixtures("unserved")
def test_a_record_changes_nothing_of_what_a_reconcile_requests(run_test: RunTest) -> None:
    requests: list[list[tuple[str, str]]] = []

    async def test(env: Env, **options: Any) -> None:
        async with env.operating(options=options):
            await env.create(shop())
            await asyncio.sleep(10)
            await env.edit(settings_of(), {"data": {"motto": "theirs"}})
            await asyncio.sleep(10)
        requests.append([(str(one.verb), one.kind) for one in env.gateway.requests])

    run_test(test)
    run_test(lambda env: test(env, **PAGE))
    assert requests[0] == requests[1]


def test_the_last_fifty_of_each_owner_are_kept() -> None:
    timeline = Timeline()
    for number in range(1, 161):
        timeline.add(record(number, "corner" if number % 2 else "quay"))
    quay = record(160, "quay").owner
    assert [one.number for one in timeline.latest()] == list(range(160, 110, -1))
    assert [one.number for one in timeline.latest(quay)] == list(range(160, 60, -2))
    assert timeline.latest(record(1, "elsewhere").owner) == ()


def huge(number: int) -> Reconcile:
    key = ObjectKey("v1", "ConfigMap", "c" * 253, NAMESPACE)
    fields = tuple(FieldChange(f"data.{one}" + "p" * 150, "é" * 160, "\U0001f600" * 160) for one in range(20))
    writes = (Write("apply", key, "", "x" * 600, fields, ""),) * 30
    return record(number, f"shop-{number % 60}", steps=(Step("web", key, "Updated: changed"),) * 60, writes=writes)


def test_a_timeline_of_the_largest_reconciles_stays_below_two_megabytes_and_keeps_fifty() -> None:
    records = [huge(number) for number in range(60)]
    tracemalloc.start()
    try:
        timeline = Timeline()
        for number in range(1, 121):
            timeline.add(records[number % 60]._replace(number=number))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 2_000_000
    assert [one.number for one in timeline.latest()] == list(range(120, 70, -1))


def test_many_small_reconciles_of_many_owners_stay_below_two_megabytes() -> None:
    tracemalloc.start()
    try:
        timeline = Timeline()
        for number in range(1, 4_000):
            timeline.add(record(number, f"shop-{number}"))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 2_000_000
    assert len(timeline.latest()) == 50


def test_a_reconcile_that_is_too_long_loses_the_fields_of_its_last_writes_first() -> None:
    timeline = Timeline()
    long = huge(1)
    timeline.add(long._replace(writes=tuple(one._replace(fields=one.fields[:6]) for one in long.writes)))
    (kept,) = timeline.latest()
    with_fields = [bool(one.fields) for one in kept.writes]
    assert with_fields[0]
    assert with_fields == sorted(with_fields, reverse=True)
    assert [one.key for one in kept.writes] == [one.key for one in long.writes][: len(kept.writes)]
    assert kept.writes[-1].note == "too long: the fields are not shown"
    assert kept.steps == long.steps


@pytest.mark.parametrize("text", ["\ud800", "\x00", "</script>", "\u202e", "{}"])
def test_any_text_is_kept_as_it_is_as_far_as_it_is_a_text(text: str) -> None:
    timeline = Timeline()
    timeline.add(record(1, problem=text))
    (kept,) = timeline.latest()
    assert kept.problem == text.replace("\ud800", "?")
    assert kept._replace(problem="") == record(1)
