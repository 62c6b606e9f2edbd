"""Boolean options of a query, as the real API server and the embedded one read them."""

from urllib.parse import urlencode

import pytest

from tests.ocf_server.http.conftest import Either

# A watch ends after a second, so that its body is complete; a list ignores the timeout.
LIST = "configmaps?timeoutSeconds=1"


@pytest.mark.parametrize(
    ("value", "watches"),
    [
        ("true", True),
        ("True", True),
        ("1", True),
        ("yes", True),
        ("", True),
        ("0.0", True),
        ("false", False),
        ("FALSE", False),
        ("0", False),
    ],
)
async def test_only_zero_and_false_are_false(value: str, watches: bool, either: Either) -> None:
    reply = await either.ask("GET", f"{either.path}/{LIST}&{urlencode({'watch': value})}")
    assert reply.status == 200
    assert ('"kind":"ConfigMapList"' in reply.text) is not watches


async def test_an_option_without_a_value_is_true(either: Either) -> None:
    assert '"kind":"ConfigMapList"' not in (await either.ask("GET", f"{either.path}/{LIST}&watch")).text


async def test_the_first_of_several_values_counts(either: Either) -> None:
    assert '"kind":"ConfigMapList"' in (await either.ask("GET", f"{either.path}/{LIST}&watch=0&watch=1")).text
