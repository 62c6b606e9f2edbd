"""A status that other clients, or the author's functions, have filled with what is not a status.

Elsewhere: https://github.com/kubernetes/kubernetes/issues/54148 and https://github.com/cert-manager/cert-manager/issues/1243
(conditions stored with a transition time that is null), https://github.com/goharbor/harbor-operator/issues/325 and
https://github.com/cloudstateio/cloudstate/issues/536 (a schema that rejects them, and with them each status write),
https://github.com/akuity/kargo/issues/6622 (conditions of other controllers that get lost).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import Component, ReconcileContext, depends_on
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ManifestError, NotFoundError, OcfError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_time
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from tests.support import definition_of, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env

FOREIGN: Final[Manifest] = {"type": "Backup", "status": "True", "reason": "Done", "lastTransitionTime": None}
OWN: Final = ("WebReady", "Ready", "AllReady")
FAILED: Final = "shops/Reconciled"
NO_LISTS: Final[list[Any]] = ["Ready", 3, {"Ready": "True"}, {"type": "Ready", "status": "True"}]
UNTYPED: Final = definition_of(
    "Stall", "malformed.example.com", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
)


def components(_: Manifest) -> list[Component]:
    web = component.Builder("web", condition_type="WebReady").build()
    api = component.Builder("api", condition_type="ApiReady").with_prerequisite(depends_on("WebReady")).build()
    return [web, api]


def report(context: ReconcileContext, _: Manifest, outcome: ReconcileOutcome) -> None:
    context.status["phase"] = "Open"
    context.set_condition("Ready", status="True", reason="Observed", message="")
    context.aggregate("AllReady", *outcome.components)


async def reconcile(env: Env, report: Callable[..., None] = report, owner: Manifest | None = None) -> None:
    live = await env.owner_manifest() if owner is None else owner
    operator: Operator[Manifest] = Operator(
        name="shops", owner=OwnerType(live["apiVersion"], live["kind"]), components=components, report=report
    )
    await reconcile_owner(operator, live, env.cluster, clock=env.clock, recorder=NullRecorder())


async def store(env: Env, status: Any) -> Manifest:
    """Store a status as another client does; return the owner."""
    live = await env.owner_manifest()
    return await env.cluster.update({**live, "status": status}, field_manager="other", subresource=Subresource.STATUS)


async def entries(env: Env) -> list[Any]:
    found: list[Any] = (await env.owner_manifest())["status"]["conditions"]
    return found


def ours(condition: str = "Ready", **fields: Any) -> Manifest:
    return {"type": condition, "status": "True", "reason": "Healthy", "message": "", **fields}


GARBAGE: Final = {
    "a text": "Ready",
    "a number": 7,
    "null": None,
    "a list": ["Ready"],
    "an empty map": {},
    "no type": {"status": "True", "reason": "Ready"},
    "a type that is null": {"type": None, "status": "True"},
    "a type that is a number": {"type": 1, "status": "True"},
    "a type that is a list": {"type": ["Ready"], "status": "True"},
    "an empty type": {"type": "", "status": "True"},
    "no status": {"type": "Backup"},
    "a status that is a boolean": {"type": "Backup", "status": True},
    "a status that is a map": {"type": "Backup", "status": {"is": "True"}},
    "a time that is none": {"type": "Backup", "status": "True", "lastTransitionTime": "soon"},
    "a time that is a number": {"type": "Backup", "status": "True", "lastTransitionTime": 1769860800},
    "a generation that is a text": {"type": "Backup", "status": "True", "observedGeneration": "many"},
}


@pytest.mark.promise("foreign-status", runs="16 entries that are not conditions, on a real API server, too")
@pytest.mark.parametrize("entry", GARBAGE.values(), ids=GARBAGE)
async def test_what_another_client_stored_stays_beside_our_conditions(env: Env, entry: Any) -> None:
    garbage = [entry, FOREIGN, entry] if not isinstance(entry, dict) else [FOREIGN, entry]
    stored = (await store(env, {"conditions": garbage}))["status"]["conditions"]
    for _ in range(2):
        await reconcile(env)
        found = await entries(env)
        assert found[: len(stored)] == stored
        assert [one["type"] for one in found[len(stored) :]] == ["WebReady", "ApiReady", "Ready", "AllReady"]
    env.cluster.requests.clear()
    await reconcile(env)
    assert [request for request in env.cluster.requests if not request.verb.is_read] == []


@pytest.mark.parametrize("fields", [dict(one) for one in GARBAGE.values() if isinstance(one, dict) and "type" in one])
@pytest.mark.parametrize("name", OWN)
async def test_a_condition_of_ours_that_another_client_spoils_is_set_again(
    env: Env, name: str, fields: dict[str, Any]
) -> None:
    spoilt = {**ours(name), **{key: value for key, value in fields.items() if key != "type"}}
    await store(env, {"conditions": [spoilt]})
    await reconcile(env)
    condition = await env.condition(name)
    assert (condition["status"], condition["observedGeneration"]) == ("True", 1)
    assert condition["lastTransitionTime"] == format_time(env.clock.now())


@pytest.mark.parametrize("conditions", NO_LISTS)
async def test_conditions_that_are_not_a_list_are_replaced(
    env: Env, conditions: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no other place for ours."""
    await store(env, {"conditions": conditions})
    with caplog.at_level(logging.WARNING, "ocf.component"):
        await reconcile(env)
    assert (await env.condition("Ready"))["status"] == "True"
    [text] = [record.getMessage() for record in caplog.records]
    assert text.endswith("and is replaced, because it cannot hold conditions")


@pytest.mark.parametrize("status", ["Open", 3, ["Open"]])
async def test_a_status_that_is_not_a_map_is_replaced(env: Env, status: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A definition may store one if its schema does not have the field."""
    await env.cluster.apply(UNTYPED, field_manager="admin")
    stall: Manifest = {"apiVersion": "malformed.example.com/v1", "kind": "Stall"}
    stall |= {"metadata": {"name": "corner", "namespace": "shop"}}
    live = await eventually(lambda: env.cluster.create(stall, field_manager="user"), ignore=(NotFoundError,))
    try:
        live = await env.cluster.update(
            {**live, "status": status}, field_manager="other", subresource=Subresource.STATUS
        )
        async with component.reconciling(live, env.cluster, clock=env.clock):
            pass
        assert await env.cluster.get(ObjectKey.of(live)) == live, "no condition is set"
        with caplog.at_level(logging.WARNING, "ocf.component"):
            await reconcile(env, owner=live)
        assert (await env.read_conditions(ObjectKey.of(live)))["Ready"]["status"] == "True"
        [text] = [record.getMessage() for record in caplog.records]
        assert f"status was stored as a value of type {type(status).__name__}" in text
    finally:
        await env.cluster.delete(ObjectKey.of(live))


@pytest.mark.parametrize("conditions", ["Ready", {"Ready": "True"}, [3, {"type": None}]])
async def test_they_are_left_alone_by_who_sets_no_condition(env: Env, conditions: Any) -> None:
    stored = await store(env, {"conditions": conditions})
    async with component.reconciling(stored, env.cluster, clock=env.clock):
        pass
    assert await env.owner_manifest() == stored


def assigns(change: Callable[[Any], Any]) -> Callable[..., None]:
    def assign(context: ReconcileContext, owner: Manifest, outcome: ReconcileOutcome) -> None:
        report(context, owner, outcome)
        context.status["conditions"] = change(context.status["conditions"])

    return assign


def added(entry: Any) -> Callable[..., None]:
    return assigns(lambda conditions: [*conditions, entry])


ASSIGNED: Final = {
    "a text as list": (assigns(lambda _: "Ready"), "status.conditions: must be a list of conditions, got a value of"),
    "null as list": (assigns(lambda _: None), "status.conditions: must be a list of conditions, got None"),
    "a map as list": (assigns(lambda _: {"Ready": "True"}), "status.conditions: must be a list of conditions, got a"),
    "a text": (added("Ready"), "status.conditions[5]: must be a condition, an object with a type, got 'Ready'"),
    "null": (added(None), "status.conditions[5]: must be a condition, an object with a type, got None"),
    "no type": (added({"status": "True"}), "status.conditions[5].type: must be the type of the condition as text"),
    "a type that is a number": (added({"type": 5, "status": "True"}), "[5].type: must be the type of the condition"),
    "no status": (
        added({"type": "Extra"}),
        '[5].status: condition "Extra": must be True, False or Unknown as text, got',
    ),
    "a boolean": (added({"type": "Extra", "status": True}), "must be True, False or Unknown as text, got True of type"),
    "another status": (added({"type": "Extra", "status": "Yes"}), "must be True, False or Unknown as text, got 'Yes'"),
    "a time": (added(ours("Extra", lastTransitionTime="noon")), '[5].lastTransitionTime: condition "Extra": must be a'),
    "no time": (added(ours("Extra", lastTransitionTime=None)), '[5].lastTransitionTime: condition "Extra": must be a'),
    "a message": (
        added(ours("Extra", message=["hunter2"])),
        '[5].message: condition "Extra": must be text, got a value',
    ),
    "half a message": (added(ours("Extra", message="\ud83d")), '[5].message: condition "Extra": a text with half of a'),
    "a type with a blank": (
        added(ours("So Extra")),
        "[5].type: a condition type must match ([a-z0-9.-]+/)?[A-Za-z0-9._-",
    ),
    "a long type": (added(ours("E" * 317)), "[5].type: a condition type has at most 316 characters, got 317: 'EEE"),
    "a type that is half": (added(ours("\ud83d")), "[5].type: a text with half of a surrogate pair is not a text"),
    "no reason": (added({"type": "Extra", "status": "True"}), '[5].reason: condition "Extra": must be text, a word in'),
    "an empty reason": (added(ours("Extra", reason="")), '[5].reason: condition "Extra": a reason must begin with a'),
    "a sentence as reason": (
        added(ours("Extra", reason="a b")),
        "only letters, digits and _,: and not end with , or :",
    ),
    "a long reason": (added(ours("Extra", reason="R" * 1025)), "a reason has at most 1024 characters, got 1025: 'RRR"),
    "a generation that is a text": (
        added(ours("Extra", observedGeneration="1")),
        "must be an integer from 0 to 92233720",
    ),
    "a generation that is negative": (added(ours("Extra", observedGeneration=-1)), "07, got -1 of type int"),
    "a generation that is a fraction": (added(ours("Extra", observedGeneration=1.5)), "07, got 1.5 of type float"),
    "a generation that is a boolean": (added(ours("Extra", observedGeneration=True)), "07, got True of type bool"),
    "a generation above the limit": (added(ours("Extra", observedGeneration=2**63)), "07, got 9223372036854775808 of"),
    "a second one": (added(ours("Ready")), '[5].type: must be unique, got "Ready" twice'),
}


@pytest.mark.promise("failure-shown", runs="27 lists of conditions that a report assigns, on a real API server, too")
@pytest.mark.parametrize(("assign", "problem"), ASSIGNED.values(), ids=ASSIGNED)
async def test_what_a_report_assigns_wrongly_is_an_error_with_the_path(
    env: Env, assign: Callable[..., None], problem: str
) -> None:
    """Everything else is written: the other conditions, those of other clients, and the fields.

    The schema of `metav1.Condition` rejects them, and the whole status with them, elsewhere:
    https://github.com/operator-framework/operator-lifecycle-manager/pull/830 (no transition time),
    https://github.com/deckhouse/sds-node-configurator/pull/345 (a message that is too long).
    """
    await store(env, {"conditions": [FOREIGN]})
    with pytest.raises(ManifestError) as caught:
        await reconcile(env, assign)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
    failed = await env.condition(FAILED)
    assert (failed["status"], problem in failed["message"]) == ("False", True)
    found = [one["type"] for one in await entries(env)]
    assert found == ["Backup", "WebReady", "ApiReady", "Ready", "AllReady", FAILED]
    assert (await env.condition("Ready"))["status"] == "True"
    assert (await env.owner_manifest())["status"]["phase"] == "Open"
    await reconcile(env)
    assert [one["type"] for one in await entries(env)] == found[:-1]


VALUES: Final = {
    "an integer beyond any float": (10**400, "status.seen.at[1]: an integer of 1329 bits is beyond the largest number"),
    "an integer that Python does not print": (10**5000, "status.seen.at[1]: an integer of 16610 bits"),
    "half of a surrogate pair": ("\ud83d", "status.seen.at[1]: a text with half of a surrogate pair"),
    "a key with half of a pair": ({"\ud83d": 1}, r"status.seen.at[1]: has the key '\ud83d', which has half of a"),
    "not a number": (float("nan"), "status.seen.at[1]: nan is not a JSON number"),
    "a key that is a number": ({1: 2}, "status.seen.at[1]: has a key of type int; a key must be a text"),
    "a key that is a tuple": ({(1, 2): 2}, "status.seen.at[1]: has a key of type tuple; a key must be a text"),
}


@pytest.mark.promise("failure-shown", runs="7 values that JSON does not have in a field, on a real API server, too")
@pytest.mark.parametrize(("value", "problem"), VALUES.values(), ids=VALUES)
async def test_a_value_that_json_does_not_have_is_an_error_with_the_path(env: Env, value: Any, problem: str) -> None:
    """Everything else is written, also the field, as it was before."""
    await store(env, {"seen": "before", "conditions": [FOREIGN]})

    def assign(context: ReconcileContext, owner: Manifest, outcome: ReconcileOutcome) -> None:
        report(context, owner, outcome)
        context.status["seen"] = {"at": [0, value]}

    with pytest.raises(ManifestError) as caught:
        await reconcile(env, assign)
    assert problem in str(caught.value)
    assert problem in (await env.condition(FAILED))["message"]
    status = (await env.owner_manifest())["status"]
    assert (status["seen"], status["phase"]) == ("before", "Open")
    assert [one["type"] for one in await entries(env)] == [
        "Backup",
        "WebReady",
        "ApiReady",
        "Ready",
        "AllReady",
        FAILED,
    ]


async def test_an_error_with_half_of_a_surrogate_pair_is_shown(env: Env) -> None:
    """As Python reads the name of a file that is not UTF-8."""

    def fail(*_: object) -> None:
        raise OcfError("cannot read a\udcff")

    with pytest.raises(OcfError, match="cannot read"):
        await reconcile(env, fail)
    assert r"cannot read a\udcff" in (await env.condition(FAILED))["message"]


async def test_a_wrong_condition_keeps_its_stored_value(env: Env) -> None:
    stored = ours("Extra", lastTransitionTime="2026-01-01T00:00:00Z")
    await store(env, {"conditions": [stored]})

    def spoil(context: ReconcileContext, *_: object) -> None:
        context.status["conditions"][0] = {"type": "Extra", "status": True}

    with pytest.raises(ManifestError, match=r"status\.conditions\[0\]\.status"):
        await reconcile(env, spoil)
    assert await env.condition("Extra") == stored


async def test_a_report_may_remove_and_change_conditions_itself(env: Env) -> None:
    await store(env, {"conditions": [FOREIGN, ours("Old", lastTransitionTime="2026-01-01T00:00:00Z")]})

    def replace(context: ReconcileContext, *_: object) -> None:
        kept = [one for one in context.status["conditions"] if one["type"] != "Old"]
        context.status["conditions"] = [*kept, ours("New", lastTransitionTime=format_time(context.now))]

    await reconcile(env, replace)
    assert [one["type"] for one in await entries(env)] == ["Backup", "WebReady", "ApiReady", "New"]


async def test_a_removal_survives_a_conflict(env: Env) -> None:
    """But not one of a condition that its writer has changed meanwhile."""
    old, changing = (ours(name, lastTransitionTime="2026-01-01T00:00:00Z") for name in ("Old", "Changing"))
    live = await store(env, {"conditions": [old, changing]})
    async with component.reconciling(live, env.cluster, clock=env.clock) as context:
        context.status["conditions"] = []
        patch = {"status": {"conditions": [old, {**changing, "status": "False"}]}}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=Subresource.STATUS)
        await env.cluster.patch(env.owner, patch, options)
    assert [(one["type"], one["status"]) for one in await entries(env)] == [("Changing", "False")]


async def test_an_error_of_a_report_is_visible_beside_what_it_assigned(env: Env) -> None:
    def fail(context: ReconcileContext, *_: object) -> None:
        context.status["conditions"] = "Ready"
        raise OcfError("the registry cannot be reached")

    with pytest.raises(OcfError, match="registry"):
        await reconcile(env, fail)
    assert "the registry cannot be reached" in (await env.condition(FAILED))["message"]
    assert (await env.condition("WebReady"))["status"] == "True"
