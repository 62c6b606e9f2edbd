"""A 500 that the request caused is a client error. The messages are those of a real API server (1.36.3)."""

import pytest

from ocf.cluster.client.responses import status_error
from ocf.cluster.server_errors import as_client_error
from ocf.embedded import EmbeddedCluster
from ocf.errors import ApiError, InvalidError, ServerError, api_error

UNFITTING = (
    "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
    ".spec.colour: field not declared in schema"
)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(UNFITTING, id="an apply that does not match the schema"),
        pytest.param("unknown patch type: smash in map: map[$patch:smash]", id="an unknown directive"),
        pytest.param("map: map[image:x] does not contain declared merge key: name", id="an item without its key"),
    ],
)
def test_a_500_for_an_invalid_request_is_an_invalid_error(message: str) -> None:
    error = as_client_error(api_error(message, code=500))

    assert isinstance(error, InvalidError)
    assert (error.code, error.message) == (500, message)


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        pytest.param("etcdserver: request timed out", 500, "", id="storage"),
        pytest.param(UNFITTING, 500, "InternalError", id="with a reason"),
        pytest.param(UNFITTING, 503, "", id="with another code"),
    ],
)
def test_any_other_error_is_unchanged(message: str, code: int, reason: str) -> None:
    assert isinstance(as_client_error(api_error(message, code=code, reason=reason)), ServerError)


async def test_both_clusters_raise_the_same_error() -> None:
    """The client raises for the answer of a real API server what the embedded cluster raises."""
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    with pytest.raises(InvalidError) as caught:
        await EmbeddedCluster().apply({**web, "spec": {"colour": "red"}}, field_manager="us")
    status = {"kind": "Status", "status": "Failure", "message": UNFITTING, "code": 500}
    answered: ApiError = status_error(status, request_line="PATCH /apis/apps/v1/namespaces/default/deployments/web")

    assert type(answered) is type(caught.value)
    assert (answered.message, answered.code) == (caught.value.message, caught.value.code)
