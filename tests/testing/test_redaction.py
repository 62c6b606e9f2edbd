"""The values of a Secret are not shown, that they changed is."""

from typing import Any

import pytest

from ocf.testing.redaction import redacted


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **fields}


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_values_become_digests(field: str) -> None:
    before = secret(**{field: {"token": "hunter2"}})
    after = redacted(before)
    assert "hunter2" not in str(after)
    assert list(after[field]) == ["token"]
    assert before[field] == {"token": "hunter2"}
    assert redacted(secret(**{field: {"token": "hunter3"}})) != after


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}, id="another kind"),
        pytest.param({"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": "b"}}, id="another group"),
        pytest.param(secret(data=None), id="no data"),
    ],
)
def test_everything_else_stays(manifest: dict[str, Any]) -> None:
    assert redacted(manifest) == manifest
