"""PodDisruptionBudgetSpecEditor: each method sets its field and no other, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1LabelSelector, V1PodDisruptionBudgetSpec
from pydantic import ValidationError

from ocf.editors import PodDisruptionBudgetSpecEditor as Editor
from ocf.errors import ConfigError
from ocf.objects import write_model

SETTERS = pytest.mark.parametrize(
    ("setter", "field", "value"),
    [
        pytest.param(Editor.set_min_available, "minAvailable", 0, id="a number, 0 is a value"),
        pytest.param(Editor.set_min_available, "minAvailable", "50%", id="a percentage"),
        pytest.param(Editor.set_max_unavailable, "maxUnavailable", 1, id="the other bound"),
        pytest.param(
            Editor.set_unhealthy_pod_eviction_policy, "unhealthyPodEvictionPolicy", "AlwaysAllow", id="policy"
        ),
    ],
)


@SETTERS
def test_sets_its_field_and_none_unsets_it(setter: Callable[[Editor, object], None], field: str, value: object) -> None:
    editor = Editor(V1PodDisruptionBudgetSpec())
    setter(editor, value)
    assert write_model(editor.raw) == {field: value}
    with pytest.raises(ValidationError):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == {}


def test_one_bound_leaves_the_other() -> None:
    editor = Editor(V1PodDisruptionBudgetSpec(min_available=1))
    editor.set_max_unavailable("25%")
    assert write_model(editor.raw) == {"minAvailable": 1, "maxUnavailable": "25%"}


def test_the_selector_is_a_copy_and_an_empty_one_is_a_value() -> None:
    editor = Editor(V1PodDisruptionBudgetSpec())
    selector = V1LabelSelector()
    editor.set_selector(selector)
    selector.match_labels = {"app": "web"}
    assert write_model(editor.raw) == {"selector": {}}
    with pytest.raises(ConfigError, match=r"selector: must be a kubernetes\.client\.V1LabelSelector"):
        editor.set_selector({"matchLabels": {}})  # type: ignore[arg-type]  # the point of the test
    editor.set_selector(None)
    assert write_model(editor.raw) == {}
