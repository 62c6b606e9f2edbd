"""ReplicaSetSpecEditor: each method sets its field, and None unsets it."""

from collections.abc import Callable

import pytest
from kubernetes.client import V1LabelSelector, V1ReplicaSetSpec
from pydantic import ValidationError

from ocf.editors import ReplicaSetSpecEditor as Editor
from ocf.objects import write_model


@pytest.mark.parametrize(
    ("setter", "field"),
    [
        pytest.param(Editor.set_replicas, "replicas", id="replicas"),
        pytest.param(Editor.set_min_ready_seconds, "minReadySeconds", id="seconds"),
    ],
)
def test_sets_its_field_none_unsets_it_and_another_type_is_rejected(
    setter: Callable[[Editor, object], None], field: str
) -> None:
    editor = Editor(V1ReplicaSetSpec(selector=V1LabelSelector()))
    before = write_model(editor.raw)
    setter(editor, 0)
    assert write_model(editor.raw) == {**before, field: 0}
    with pytest.raises(ValidationError):
        setter(editor, 1.5)
    setter(editor, None)
    assert write_model(editor.raw) == before
