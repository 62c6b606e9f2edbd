"""DaemonSetSpecEditor: each method sets its field, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1DaemonSetSpec, V1DaemonSetUpdateStrategy, V1LabelSelector, V1PodTemplateSpec
from pydantic import ValidationError

from ocf.editors import DaemonSetSpecEditor as Editor
from ocf.errors import ConfigError
from ocf.objects import write_model

STRATEGY = V1DaemonSetUpdateStrategy(type="OnDelete")


@pytest.mark.parametrize(
    ("setter", "field", "value", "written"),
    [
        pytest.param(Editor.set_update_strategy, "updateStrategy", STRATEGY, {"type": "OnDelete"}, id="strategy"),
        pytest.param(Editor.set_min_ready_seconds, "minReadySeconds", 0, 0, id="seconds, 0 is a value"),
        pytest.param(Editor.set_revision_history_limit, "revisionHistoryLimit", 2, 2, id="history"),
    ],
)
def test_sets_its_field_none_unsets_it_and_another_type_is_rejected(
    setter: Callable[[Editor, object], None], field: str, value: object, written: object
) -> None:
    editor = Editor(V1DaemonSetSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec()))
    before = write_model(editor.raw)
    setter(editor, value)
    assert write_model(editor.raw) == {**before, field: written}
    assert editor.raw.update_strategy is not STRATEGY
    with pytest.raises((ValidationError, ConfigError)):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == before
