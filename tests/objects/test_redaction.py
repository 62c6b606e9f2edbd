"""Secrets are not shown, that they changed is."""

import json
from typing import Any

import pytest

from ocf.objects.redaction import redacted


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **fields}


def variable(name: str, **content: Any) -> dict[str, Any]:
    """Return a Deployment with one environment variable."""
    containers = [{"name": "app", "env": [{"name": name, **content}]}]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_values_become_digests(field: str) -> None:
    before = secret(**{field: {"token": "hunter2"}})
    after = redacted(before)
    assert "hunter2" not in str(after)
    assert list(after[field]) == ["token"]
    assert before[field] == {"token": "hunter2"}
    assert redacted(secret(**{field: {"token": "hunter3"}})) != after


def test_data_that_is_not_a_map_is_hidden_as_a_whole() -> None:
    assert "hunter2" not in str(redacted(secret(data="hunter2")))


def test_a_secret_hides_the_copy_that_kubectl_keeps() -> None:
    kept = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"token": "hunter2"}}', "example.com/a": "b"}
    annotations = redacted(secret(metadata={"name": "a", "annotations": kept}))["metadata"]["annotations"]
    assert "hunter2" not in str(annotations)
    assert annotations["example.com/a"] == "b"


@pytest.mark.parametrize(
    ("copy", "hidden"),
    [
        pytest.param({"spec": {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}}, True, id="with a secret"),
        pytest.param({"spec": {"env": [{"name": "LEVEL", "value": "debug"}]}}, False, id="without"),
        pytest.param("{hunter2", True, id="unreadable"),
    ],
)
def test_the_copy_of_another_object_is_hidden_if_there_is_a_secret_in_it(copy: Any, hidden: bool) -> None:
    text = copy if isinstance(copy, str) else json.dumps(copy)
    kept = {"kubectl.kubernetes.io/last-applied-configuration": text}
    before = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "annotations": kept}}
    after = redacted(before)
    assert "hunter2" not in str(after)
    assert (after is before) is not hidden


@pytest.mark.parametrize("name", ["DB_PASSWORD", "apiKey", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PASSWD"])
def test_a_variable_with_the_name_of_a_secret_is_hidden(name: str) -> None:
    before = variable(name, value="hunter2")
    after = redacted(before)
    assert "hunter2" not in str(after)
    assert before == variable(name, value="hunter2")
    assert redacted(variable(name, value="hunter3")) != after


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}, id="another kind"),
        pytest.param({"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": "b"}}, id="another group"),
        pytest.param(secret(data=None), id="no data"),
        pytest.param(secret(metadata=None), id="no metadata"),
        pytest.param(variable("LEVEL", value="debug"), id="an ordinary variable"),
        pytest.param(variable("PASSWORD", valueFrom={"secretKeyRef": {"name": "db", "key": "p"}}), id="a reference"),
        pytest.param(variable("PASSWORD", value=""), id="an empty value"),
        pytest.param(variable("PASSWORD_FILE", value="/run/p"), id="where the secret is"),
        pytest.param({"kind": "Odd", "env": ["PASSWORD=x", 3], "spec": {"env": {"a": "b"}}}, id="no variables"),
    ],
)
def test_everything_else_stays_the_same_object(manifest: dict[str, Any]) -> None:
    assert redacted(manifest) is manifest
