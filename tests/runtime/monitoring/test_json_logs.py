import io
import json
import logging
import sys
from collections.abc import Callable
from logging.config import DictConfigurator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.runtime.monitoring import JsonFormatter

EMPTY: Final[dict[str, str]] = {}


def record(message: object = "reconciled", *args: object, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("ocf.component", logging.INFO, __file__, 1, message, args, fields.pop("exc_info", None))
    made.created = 1767268800.25
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def line(made: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter().format(made)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def error_of(raiser: Callable[[], object]) -> dict[str, Any]:
    try:
        raiser()
    except ValueError:
        error: dict[str, Any] = line(record(exc_info=sys.exc_info()))["error"]
        return error
    raise AssertionError("nothing was raised")


def test_a_record_is_a_line_of_its_facts() -> None:
    assert line(record("skipped %s", "it", component="web", resource="v1/Service/town/web")) == {
        "time": "2026-01-01T12:00:00.250Z",
        "level": "info",
        "logger": "ocf.component",
        "message": "skipped it",
        "component": "web",
        "resource": "v1/Service/town/web",
    }


def test_a_logger_hands_its_extras_over() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("ocf.component")
    handler.handle(
        logger.makeRecord(logger.name, logging.INFO, "", 1, "reconciled", (), None, extra={"component": "web"})
    )

    assert json.loads(written.getvalue()).keys() == {"time", "level", "logger", "message", "component"}


def test_the_name_of_the_task_is_not_an_extra() -> None:
    """Python sets it from 3.12 on, so it must not appear with another Python."""
    assert line(record(taskName="Task-1")).keys() == {"time", "level", "logger", "message"}


def test_an_extra_does_not_replace_a_field() -> None:
    written = line(record(time="noon", level=3, error="none"))

    assert (written["time"], written["level"]) == ("2026-01-01T12:00:00.250Z", "info")
    assert (written["time_"], written["level_"], written["error_"]) == ("noon", 3, "none")


def test_what_json_cannot_express_is_text() -> None:
    assert line(record(found={1}, where=logging))["found"] == "{1}"


def test_a_message_that_is_a_mapping_is_written_as_text() -> None:
    """It is not spread over the line, where its keys could take the place of fields."""
    assert line(record({"level": 3}))["message"] == "{'level': 3}"


def test_the_configuration_of_logging_can_make_it() -> None:
    """It passes what any formatter takes; the fields stay."""
    configuration = DictConfigurator({"version": 1})
    made = configuration.configure_formatter({"class": "ocf.runtime.monitoring.JsonFormatter", "format": "%(process)d"})
    assert json.loads(made.format(record())).keys() == {"time", "level", "logger", "message"}


@given(message=st.text(), value=st.text() | st.integers() | st.lists(st.text()))
def test_every_record_is_one_line(message: str, value: object) -> None:
    written = line(record("%s", message, value=value))

    assert (written["message"], written["value"]) == (message, value)


class TestErrors:
    def test_an_error_is_its_type_and_message_and_place(self) -> None:
        def fail() -> None:
            password = "hunter2"
            raise ValueError(f"refused, {len(password)} characters")

        error = error_of(fail)
        assert error == {
            "type": "ValueError",
            "message": "refused, 7 characters",
            "at": f"test_json_logs.py:{fail.__code__.co_firstlineno + 2} in fail",
        }

    def test_causes_are_listed_nearest_first(self) -> None:
        def fail() -> None:
            try:
                try:
                    EMPTY["spec"]
                except KeyError as error:
                    raise TypeError("no manifest") from error
            except TypeError:
                raise ValueError("unreadable")  # noqa: B904 (an error while another is handled)

        assert error_of(fail)["causes"] == ["TypeError: no manifest", "KeyError: 'spec'"]

    def test_what_was_hidden_stays_hidden(self) -> None:
        def fail() -> None:
            try:
                EMPTY["spec"]
            except KeyError:
                raise ValueError("unreadable") from None

        assert "causes" not in error_of(fail)

    def test_notes_are_kept(self) -> None:
        def fail() -> None:
            error = ValueError("refused")
            error.add_note("the status could not be written either")
            raise error

        assert error_of(fail)["notes"] == ["the status could not be written either"]

    @pytest.mark.parametrize("nothing", [None, (None, None, None)])
    def test_without_an_error_there_is_none(self, nothing: object) -> None:
        assert "error" not in line(record(exc_info=nothing))

    def test_an_error_that_was_never_raised_has_no_place(self) -> None:
        assert line(record(exc_info=(ValueError, ValueError("made"), None)))["error"] == {
            "type": "ValueError",
            "message": "made",
        }
