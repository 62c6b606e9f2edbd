"""Answers of component statuses and of health checks, as those of a real API server."""

import pytest

from tests.ocf_server.http.conftest import Client


async def test_component_statuses_are_not_watched(ask: Client) -> None:
    """The answer of a real API server; a list would be read as an event."""
    reply = await ask("GET", "/api/v1/componentstatuses?watch=true")
    assert (reply.status, reply.json["message"], reply.json["details"]) == (
        405,
        'watch is not supported on resources of kind "componentstatuses"',
        {"kind": "componentstatuses"},
    )


@pytest.mark.parametrize(
    ("query", "unknown"), [("exclude=nope&exclude=etcd&exclude=abc", '"abc","nope"'), ("exclude=b,a", '"b,a"')]
)
async def test_health_names_the_excluded_checks_that_do_not_exist(ask: Client, query: str, unknown: str) -> None:
    lines = (await ask("GET", f"/readyz?verbose&{query}")).text.splitlines()
    assert lines[-2:] == [
        f"warn: some health checks cannot be excluded: no matches for {unknown}",
        "readyz check passed",
    ]
