"""Summary of a reconcile: what it did to each resource, what it did not do, and why."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf import component
from ocf.component import Component, Result, depends_on
from ocf.component.status.results import Action, Drift, ResourceOutcome
from ocf.component.summary import NOT_REACHED, ResourceSummary, describe, summarize
from ocf.concepts import GuardStatus, StatusReport
from ocf.concepts.recorder import Why
from ocf.feature import BooleanGate
from ocf.objects import Manifest
from ocf.primitives import deployment, hpa

WEB = "apps/v1/Deployment/shop/web"
HPA = "autoscaling/v2/HorizontalPodAutoscaler/shop/web"
SETTINGS = "v1/ConfigMap/shop/settings"


def of(*resources: Any, **options: Any) -> component.Builder:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder


def reasons_of(built: Component, result: Result) -> dict[str, tuple[str, str]]:
    return {each.resource: (each.action, each.because) for each in summarize(built, result)}


async def test_created_then_nothing_to_do(env: Any, config_map: Callable[..., Any]) -> None:
    built = of(config_map().build()).build()
    first, second, third = [await env.reconcile(built) for _ in range(3)]
    assert reasons_of(built, first) == {SETTINGS: ("Created", "there was no such object")}
    assert reasons_of(built, second)[SETTINGS][1].startswith("nothing to do: compared field by field")
    assert reasons_of(built, third)[SETTINGS][1].startswith(
        "nothing to do: this version of the object was compared before"
    )


async def test_an_update_names_the_fields(env: Any, config_map: Callable[..., Any]) -> None:
    await env.reconcile(of(config_map(a="1").build()).build())
    built = of(config_map(a="2").build()).build()
    [account] = summarize(built, await env.reconcile(built))
    assert account == ResourceSummary(SETTINGS, "Updated", "an apply changes it", ("data.a: changed",))


async def test_a_report_has_status_and_reason(env: Any, web: deployment.Resource) -> None:
    built = of(web).build()
    [account] = summarize(built, await env.reconcile(built))
    assert account.report.startswith("Creating: ")


async def test_resources_after_a_blocked_one_are_not_reached(
    env: Any, web: deployment.Resource, hpa_base: Manifest
) -> None:
    blocked = hpa.Builder(hpa_base).with_guard(lambda _: StatusReport(GuardStatus.BLOCKED, "not today")).build()
    built = of(blocked, web).build()
    assert reasons_of(built, await env.reconcile(built)) == {
        HPA: ("Blocked", "not today"),
        WEB: (NOT_REACHED, f"{HPA} is blocked"),
    }


async def test_a_prerequisite_that_is_not_met_reaches_nothing(env: Any, web: deployment.Resource) -> None:
    built = of(web).with_prerequisite(depends_on("OtherReady")).build()
    assert reasons_of(built, await env.reconcile(built)) == {WEB: (NOT_REACHED, "a prerequisite is not met")}


async def test_suspended_resources_and_those_that_cannot_be_suspended(
    env: Any, web: deployment.Resource, web_hpa: hpa.Resource, config_map: Callable[..., Any]
) -> None:
    def build(*, suspended: bool) -> Component:
        return of(web, web_hpa, config_map().build()).suspend(suspended).build()

    await env.reconcile(build(suspended=False))
    found = reasons_of(build(suspended=True), await env.reconcile(build(suspended=True)))
    assert found == {
        HPA: ("Deleted", "suspended"),
        WEB: ("Updated", "an apply changes it"),
        SETTINGS: (NOT_REACHED, "the component is suspended, and it cannot be"),
    }


async def test_deleted_and_orphaned_resources_have_a_reason(
    env: Any, web: deployment.Resource, web_hpa: hpa.Resource
) -> None:
    await env.reconcile(of(web, web_hpa).build())
    gone = of(web_hpa, delete_when=True).with_resource(web, orphan_when=True).build()
    first, second = [reasons_of(gone, await env.reconcile(gone)) for _ in range(2)]
    assert first == {HPA: ("Deleted", "not wanted"), WEB: ("Orphaned", "owner reference removed")}
    assert second == {HPA: ("Absent", "there is no such object"), WEB: ("Unchanged", "it does not name this owner")}


async def test_a_disabled_component_keeps_read_only_resources(
    env: Any, web: deployment.Resource, config_map: Callable[..., Any]
) -> None:
    built = of(web).with_resource(config_map().build(), read_only=True).with_feature_gate(BooleanGate(False)).build()
    assert reasons_of(built, await env.reconcile(built)) == {
        WEB: ("Absent", "there is no such object"),
        SETTINGS: (NOT_REACHED, "the component is disabled, and it is only read"),
    }


async def test_a_read_only_resource_has_its_own_reason(env: Any, config_map: Callable[..., Any]) -> None:
    await env.reconcile(of(config_map().build()).build())
    built = component.Builder("other", condition_type="OtherReady").with_resource(config_map().build(), read_only=True)
    result = await env.reconcile(built.build())
    assert reasons_of(built.build(), result) == {SETTINGS: ("Unchanged", "it is only read")}


async def test_an_object_of_another_controller_is_kept(env: Any, web_hpa: hpa.Resource) -> None:
    foreign = await env.other_owner()
    await env.create(env.hpa, spec=web_hpa.render()["spec"], metadata={"ownerReferences": [foreign]})
    built = of(web_hpa, delete_when=True).build()
    assert reasons_of(built, await env.reconcile(built)) == {HPA: ("Kept", "controlled by Shop other")}


@pytest.mark.parametrize("action", list(Action))
async def test_every_action_has_a_reason(action: Action, env: Any, web: deployment.Resource) -> None:
    """Also that of an object that is not registered any more, such as a pruned one."""
    built = of(web).build()
    result = await env.reconcile(built)
    outcome = ResourceOutcome(resource="v1/ConfigMap/shop/old", action=action, detail="because")
    other = Result(condition=result.condition, outcomes=(outcome,))
    assert summarize(built, other)[0].because


async def test_a_write_without_effect_has_its_own_reason(env: Any, web: deployment.Resource) -> None:
    built = of(web).build()
    result = await env.reconcile(built)
    sent = ResourceOutcome(
        resource=WEB, action=Action.UNCHANGED, writes=1, reasons=(Drift("spec.replicas", Why.NOT_OWNED),)
    )
    [account] = summarize(built, Result(condition=result.condition, outcomes=(sent,)))
    assert account.because == "an apply was sent, and the server stores what it stored before"
    assert account.fields == ("spec.replicas: not owned",)


async def test_the_text(env: Any, web: deployment.Resource, config_map: Callable[..., Any]) -> None:
    await env.reconcile(of(config_map(a="1").build()).build())
    built = of(config_map(a="2").build(), web).build()
    result = await env.reconcile(built)
    assert describe(built, result) == (
        f"web: WebReady is False, Creating: {result.condition.message}\n"
        "  v1/ConfigMap/shop/settings: Updated, an apply changes it\n"
        "    data.a: changed\n"
        "  apps/v1/Deployment/shop/web: Created, there was no such object\n"
        f"    reports Creating: {result.condition.message.removeprefix('Deployment web: ')}"
    )
