"""Events of an operator: its own recorders, its own texts, and what is kept per owner."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ocf.cluster import ListOptions
from ocf.concepts import Attempt, Event
from ocf.concepts.recorder import NullRecorder
from ocf.objects import ObjectKey

from .conftest import NAMESPACE, Env, RunTest, key_of, shop


class Attempts(NullRecorder):
    def __init__(self) -> None:
        self.taken: list[str] = []

    def attempted(self, attempt: Attempt) -> None:
        self.taken.append(f"{attempt.resource.kind} {attempt.why}")


def brief(event: Event) -> Event | None:
    """Tell of Services only."""
    return replace(event, reason="Made", note=event.resource.name) if event.resource.kind == "Service" else None


def test_recorders_of_its_own_are_told_of_every_attempt(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        attempts = Attempts()
        async with env.operating(recorders=[attempts], event_formatter=brief):
            await env.create(shop())
            await asyncio.sleep(10)
        events = (await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))).items

        assert attempts.taken == ["ConfigMap absent", "Service absent"]
        assert [(event["reason"], event["note"]) for event in events] == [("Made", "corner-front")]

    run_test(test)


def test_who_keeps_things_of_owners_is_told_that_one_is_gone(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        gone: list[ObjectKey] = []
        async with env.operating(on_deleted=gone.append):
            await env.create(shop())
            await asyncio.sleep(10)
            before = list(gone)
            await env.cluster.delete(key_of())
            await asyncio.sleep(10)

        assert (before, set(gone)) == ([], {key_of()})

    run_test(test)
