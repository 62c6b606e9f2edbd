"""Parsing of faults; an invalid text is rejected with the allowed values."""

import pytest

from ocf.cli.serve.faults import read_fault
from ocf.cluster.request_log import Verb
from ocf.errors import ConfigError
from ocf.testing import faults
from ocf.testing.faults import Fault


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("lost-reply", faults.lost_reply(), id="a name with dashes"),
        pytest.param("stale,versions=2,kind=Shop", faults.stale(versions=2, kind="Shop"), id="own keyword"),
        pytest.param(
            "lost_reply,verbs=create+update,times=forever",
            faults.lost_reply(verbs=frozenset({Verb.CREATE, Verb.UPDATE}), times=None),
            id="verbs and no end",
        ),
        pytest.param("dropped_event, name=web, first=2", faults.dropped_event(name="web", first=2), id="spaces"),
    ],
)
def test_a_text_is_parsed_to_its_fault(text: str, expected: Fault) -> None:
    assert read_fault(text) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("conflit", 'unknown fault "conflit": must be one of conflict,', id="name"),
        pytest.param("conflict,colour=red", 'unknown keyword "colour": must be one of api_version,', id="keyword"),
        pytest.param("conflict,first=x", 'first must be a number, got "x"', id="number"),
        pytest.param("conflict,verbs=sing", "verbs must be get, list,", id="verb"),
        pytest.param("lost_reply,verbs=get", "LostReply cannot happen to get", id="what never happens"),
        pytest.param("server_error,code=404", "a status from 500 to 599, got 404", id="own keyword"),
    ],
)
def test_an_invalid_text_is_rejected(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_fault(text)
    assert part in str(caught.value)
