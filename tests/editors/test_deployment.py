"""DeploymentSpecEditor: each method sets its field, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1DeploymentSpec, V1LabelSelector, V1PodTemplateSpec
from pydantic import ValidationError

from ocf.editors import DeploymentSpecEditor
from ocf.objects import write_model

Setter = Callable[[DeploymentSpecEditor, object], None]


@pytest.fixture
def spec() -> V1DeploymentSpec:
    return V1DeploymentSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec())


SETTERS = pytest.mark.parametrize(
    ("setter", "field", "value"),
    [
        pytest.param(DeploymentSpecEditor.set_replicas, "replicas", 0, id="replicas, 0 is a value"),
        pytest.param(DeploymentSpecEditor.set_paused, "paused", False, id="paused, false is a value"),
        pytest.param(DeploymentSpecEditor.set_min_ready_seconds, "minReadySeconds", 5, id="minReadySeconds"),
        pytest.param(DeploymentSpecEditor.set_revision_history_limit, "revisionHistoryLimit", 2, id="history"),
        pytest.param(DeploymentSpecEditor.set_progress_deadline_seconds, "progressDeadlineSeconds", -1, id="deadline"),
    ],
)


@SETTERS
def test_sets_its_field_and_none_unsets_it(spec: V1DeploymentSpec, setter: Setter, field: str, value: object) -> None:
    before = write_model(spec)
    editor = DeploymentSpecEditor(spec)

    setter(editor, value)

    assert write_model(spec) == {**before, field: value}

    setter(editor, None)

    assert write_model(spec) == before


@SETTERS
@pytest.mark.parametrize("wrong", ["3", 1.5])
def test_the_model_rejects_another_type(
    spec: V1DeploymentSpec,
    setter: Setter,
    field: str,
    value: object,  # noqa: ARG001 (the table has one column more)
    wrong: object,
) -> None:
    with pytest.raises(ValidationError):
        setter(DeploymentSpecEditor(spec), wrong)

    assert field not in write_model(spec)


def test_raw_is_the_live_spec(spec: V1DeploymentSpec) -> None:
    assert DeploymentSpecEditor(spec).raw is spec
