"""Validation by the builder of a component, with all problems reported together."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import depends_on
from ocf.errors import BuildError
from ocf.feature import BooleanGate
from ocf.objects import ObjectKey
from ocf.primitives import deployment

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.component.conftest import Env


def problems_of(builder: component.Builder) -> tuple[str, ...]:
    with pytest.raises(BuildError) as caught:
        builder.build()
    return caught.value.problems


def test_an_empty_name_and_an_empty_condition_type_are_reported_together() -> None:
    assert problems_of(component.Builder("", condition_type="")) == (
        "component name cannot be empty",
        "condition type cannot be empty",
    )


def test_a_component_does_not_change_with_its_builder(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web)
    running = builder.build()
    suspended = builder.suspend().with_grace_period(timedelta(minutes=1)).build()
    assert [(one.suspended, one.grace_period) for one in (running, suspended)] == [
        (False, timedelta(0)),
        (True, timedelta(minutes=1)),
    ]
    assert running.entries == suspended.entries
    with pytest.raises(FrozenInstanceError):
        running.suspended = True  # type: ignore[misc]


def test_none_is_not_a_resource() -> None:
    nothing: Any = None
    builder = component.Builder("web", condition_type="WebReady").with_resource(nothing)
    assert problems_of(builder) == ('None registered as a resource in component "web"',)


def test_a_module_is_not_a_resource() -> None:
    module: Any = deployment
    builder = component.Builder("web", condition_type="WebReady").with_resource(module)
    (problem,) = problems_of(builder)
    assert problem.startswith("not a resource but module registered in component")


def test_two_resources_of_one_identity_are_rejected(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web).with_resource(web)
    assert problems_of(builder) == ('duplicate resource "apps/v1/Deployment/shop/web" in component "web"',)


def test_a_duplicate_with_other_options_is_reported_with_them(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web)
    (problem,) = problems_of(builder.with_resource(web, read_only=True))
    rule, _, how = problem.partition(" (")
    assert rule == 'duplicate resource "apps/v1/Deployment/shop/web" in component "web"'
    assert how == "delete=false, readOnly=true, mode=Required)"


def test_a_builder_of_a_component_is_not_a_resource() -> None:
    unbuilt: Any = component.Builder("cache", condition_type="CacheReady")
    builder = component.Builder("web", condition_type="WebReady").with_resource(unbuilt)
    assert problems_of(builder) == ('not a resource but Builder registered in component "web"',)


def test_a_registered_builder_is_built_and_its_problems_are_those_of_the_component(web_base: Manifest) -> None:
    (manifest,) = (
        component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(web_base)).build().render()
    )
    assert manifest == web_base
    nameless = deployment.Builder({**web_base, "metadata": {"namespace": "shop"}})
    builder = component.Builder("web", condition_type="").with_resource(nameless)
    assert problems_of(builder) == ("object name cannot be empty", "condition type cannot be empty")


def test_a_resource_is_recognised_by_its_class_and_its_members_are_not_read() -> None:
    read: list[str] = []

    class Watched:
        key = ObjectKey("v1", "ConfigMap", "watched", "shop")
        identity = str(key)

        def render(self, **_: Any) -> Manifest:
            raise AssertionError

        def __getattribute__(self, name: str) -> Any:
            read.append(name)
            return super().__getattribute__(name)

    component.Builder("web", condition_type="WebReady").with_resource(Watched()).build()
    assert "render" not in read
    assert "build" not in read


def test_wrong_options_of_a_builder_are_reported_with_its_kind(web_base: Manifest) -> None:
    builder = component.Builder("web", condition_type="WebReady")
    builder.with_resource(deployment.Builder(web_base), ignore_if_absent=True)
    expected = (
        'resource "ocf.primitives.deployment" in component "web": ignore_if_absent requires read_only or '
        'writes="update-only"'
    )
    assert problems_of(builder) == (expected,)


def test_a_function_is_not_a_prerequisite() -> None:
    function: Any = lambda: None  # noqa: E731 (what a user might pass)
    builder = component.Builder("web", condition_type="WebReady").with_prerequisite(function)
    assert problems_of(builder) == ("a prerequisite needs a check method, function has none",)


def test_a_second_gate_is_rejected_and_none_is_ignored() -> None:
    gate = BooleanGate(True)
    builder = component.Builder("web", condition_type="WebReady").with_feature_gate(gate).with_feature_gate(None)
    assert builder.build().gate is gate
    problems = problems_of(builder.with_feature_gate(BooleanGate(True)))
    assert problems == ("feature gate already set; with_feature_gate can only be called once",)


def test_a_falsy_gate_is_a_gate() -> None:
    class Empty(list[str]):
        def enabled(self) -> bool:
            return False

    gate = Empty()
    assert component.Builder("web", condition_type="WebReady").with_feature_gate(gate).build().gate is gate


def test_none_as_prerequisite_is_ignored() -> None:
    builder = component.Builder("web", condition_type="WebReady").with_prerequisite(None, depends_on("DbReady"))
    assert builder.build().awaits == {"DbReady"}


def test_an_unpublished_component_cannot_have_a_grace_period() -> None:
    builder = component.Builder("web", condition_type="WebReady").unpublished()
    (problem,) = problems_of(builder.with_grace_period(timedelta(minutes=1)))
    assert problem.startswith("an unpublished component has no grace period")


def test_the_last_call_of_suspend_wins() -> None:
    builder = component.Builder("web", condition_type="WebReady").suspend().suspend(False)
    assert builder.build().suspended is False


def test_an_invalid_field_path_is_named(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web, ignore_fields=["spec..replicas"])
    (problem,) = problems_of(builder)
    assert problem.startswith(
        'resource "apps/v1/Deployment/shop/web" in component "web": "spec..replicas" is not a field'
    )


@pytest.mark.parametrize("interval", [timedelta(0), timedelta(seconds=-1)])
def test_a_poll_interval_must_be_positive(interval: timedelta) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_poll_interval(interval)
    assert problems_of(builder)[0].startswith("poll interval must be positive")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("web\x07", "rejects the character U+0007 at position 3", id="control character"),
        pytest.param("a\nb", "rejects the character U+000A at position 1", id="line break"),
        pytest.param("\u200bweb", "rejects the character U+200B at position 0", id="invisible"),
        pytest.param(
            "a\u00a0b", "rejects the character U+00A0 at position 1", id="a space that is not the ASCII space"
        ),
        pytest.param("\ud800", "rejects the character U+D800 at position 0", id="half of a character"),
        pytest.param(5, "component name must be a text, got 5", id="a number"),
        pytest.param(None, "component name cannot be empty", id="None"),
    ],
)
def test_a_name_that_cannot_be_a_field_manager_is_rejected(name: Any, problem: str) -> None:
    (found,) = problems_of(component.Builder(name, condition_type="WebReady"))
    assert found.endswith(problem)


@pytest.mark.parametrize("name", ["web", "web interface", "Weboberfläche", "店舗", "a/b", "x" * 300])
def test_any_printable_name_is_accepted(name: str) -> None:
    assert component.Builder(name, condition_type="WebReady").build().name == name


@pytest.mark.parametrize(
    ("condition_type", "problem"),
    [
        pytest.param("web ready", "a condition type must match", id="space"),
        pytest.param("-Ready", "a condition type must match", id="leading dash"),
        pytest.param("Ready\n", "a condition type must match", id="line break"),
        pytest.param("Example.com/Ready", "a condition type must match", id="domain in upper case"),
        pytest.param("x" * 317, "a condition type has at most 316 characters, got 317", id="too long"),
        pytest.param(5, "condition type must be a text, got 5", id="a number"),
        pytest.param(None, "condition type cannot be empty", id="None"),
    ],
)
def test_a_condition_type_that_the_api_server_would_reject_is_rejected(condition_type: Any, problem: str) -> None:
    (found,) = problems_of(component.Builder("web", condition_type=condition_type))
    assert found.startswith(problem)


@pytest.mark.parametrize("condition_type", ["Ready", "example.com/Ready", "a.b_c-9", "x" * 316])
def test_a_condition_type_of_the_api_is_accepted(condition_type: str) -> None:
    assert component.Builder("web", condition_type=condition_type).build().condition_type == condition_type


def test_settings_of_a_wrong_type_are_reported_together() -> None:
    wrong: Any = "5m"
    builder = component.Builder("web", condition_type="WebReady").with_grace_period(wrong).with_poll_interval(wrong)
    assert problems_of(builder.with_handler_timeout(wrong).suspend(wrong).with_feature_gate(wrong)) == (
        "grace period must be a timedelta, got '5m'",
        "poll interval must be a timedelta, got '5m'",
        "handler timeout must be a timedelta, got '5m'",
        "suspend() takes True or False, got '5m'",
        "a feature gate has a method enabled(), got '5m'",
    )


def test_every_problem_is_reported(web: deployment.Resource) -> None:
    nothing: Any = None
    builder = component.Builder("", condition_type="").with_resource(nothing).with_resource(web).with_resource(web)
    assert len(problems_of(builder)) == 4


@pytest.mark.parametrize("name", ["Weboberfläche", "店舗" * 20, "ü" * 80, "x" * 300])
async def test_the_api_server_accepts_the_field_manager_of_any_printable_name(
    env: Env, web: deployment.Resource, name: str
) -> None:
    await env.reconcile(component.Builder(name, condition_type="WebReady").with_resource(web).build())

    live = await env.cluster.get(env.web)
    (manager,) = {entry["manager"] for entry in live["metadata"]["managedFields"]}
    assert len(manager.encode()) <= 128
