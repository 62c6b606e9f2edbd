"""ServiceAccountEditor: pull secrets by name, and the token."""

import pytest
from kubernetes.client import V1ServiceAccount
from pydantic import ValidationError

from ocf.editors import ServiceAccountEditor
from ocf.errors import ConfigError
from ocf.objects import write_model


@pytest.fixture
def editor() -> ServiceAccountEditor:
    return ServiceAccountEditor(V1ServiceAccount())


def test_a_pull_secret_is_there_once_and_removed_by_name(editor: ServiceAccountEditor) -> None:
    for name in ("a", "b", "a"):
        editor.ensure_image_pull_secret(name)
    assert write_model(editor.raw) == {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}
    editor.remove_image_pull_secret("a")
    editor.remove_image_pull_secret("never there")
    editor.remove_image_pull_secret("b")
    assert write_model(editor.raw) == {}
    with pytest.raises(ConfigError, match="imagePullSecrets: must be a text"):
        editor.ensure_image_pull_secret(1)  # type: ignore[arg-type]  # the point of the test


def test_false_is_a_value_and_none_unsets_it(editor: ServiceAccountEditor) -> None:
    editor.set_automount_service_account_token(False)
    assert write_model(editor.raw) == {"automountServiceAccountToken": False}
    with pytest.raises(ValidationError):
        editor.set_automount_service_account_token("no")  # type: ignore[arg-type]  # the point of the test
    editor.set_automount_service_account_token(None)
    assert write_model(editor.raw) == {}
