"""What the component's builder refuses, all at once."""

from datetime import timedelta
from typing import Any

import pytest

from ocf import component
from ocf.errors import BuildError
from ocf.primitives import deployment


def refused(builder: component.Builder) -> tuple[str, ...]:
    with pytest.raises(BuildError) as caught:
        builder.build()
    return caught.value.problems


def test_an_empty_name_and_an_empty_condition_type_are_reported_together() -> None:
    assert refused(component.Builder("", condition_type="")) == (
        "component name cannot be empty",
        "condition type cannot be empty",
    )


def test_none_is_no_resource() -> None:
    nothing: Any = None
    builder = component.Builder("web", condition_type="WebReady").with_resource(nothing)
    assert refused(builder) == ('nil resource registered in component "web"',)


def test_two_resources_of_one_identity_collide(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web).with_resource(web)
    assert refused(builder) == ('duplicate resource "apps/v1/Deployment/shop/web" in component "web"',)


def test_a_field_that_is_no_path_is_named(web: deployment.Resource) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web, leaves=["spec..replicas"])
    (problem,) = refused(builder)
    assert problem.startswith('resource "apps/v1/Deployment/shop/web" in component "web": "spec..replicas" is no field')


@pytest.mark.parametrize("interval", [timedelta(0), timedelta(seconds=-1)])
def test_a_poll_interval_lasts(interval: timedelta) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_poll_interval(interval)
    assert refused(builder)[0].startswith("poll interval must be positive")


def test_every_problem_is_reported(web: deployment.Resource) -> None:
    nothing: Any = None
    builder = component.Builder("", condition_type="").with_resource(nothing).with_resource(web).with_resource(web)
    assert len(refused(builder)) == 4
