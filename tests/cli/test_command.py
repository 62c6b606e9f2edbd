"""What all commands share: how values are read, and how errors end a command."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ocf.cli.command import Command, Number, OneOf
from ocf.errors import BuildError, ConfigError


class Color(StrEnum):
    """Choices whose values are not their names."""

    DARK_RED = "dark-red"
    BLUE = "blue"


def command(*parameters: Callable[..., Any], run: Callable[..., object] = click.echo) -> Command:
    """Return a command with some parameters, which runs a function."""

    def call(**given: object) -> None:
        run(repr(given))

    for declare in reversed(parameters):
        declare(call)
    return click.command("paint", cls=Command)(call)


def run(tested: Command, *words: str) -> tuple[int, str, str]:
    """Run a command; return its exit status, its output, and the last line of its errors."""
    done = CliRunner().invoke(tested, list(words))
    return done.exit_code, done.stdout.strip(), (done.stderr.splitlines() or [""])[-1]


COLOR = click.option("--color", type=OneOf(Color), default=Color.BLUE)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        pytest.param([], Color.BLUE, id="default"),
        pytest.param(["--color", "dark-red"], Color.DARK_RED, id="value"),
        pytest.param(["--color=dark-red"], Color.DARK_RED, id="value in the same word"),
        pytest.param(["--color=dark-red", "--color=blue"], Color.BLUE, id="the last one of two"),
    ],
)
def test_a_choice_is_written_as_its_value(words: list[str], value: Color) -> None:
    """Click takes the names of members since 8.2: https://github.com/pallets/click/issues/2970."""
    assert run(command(COLOR), *words) == (0, repr({"color": value}), "")


@pytest.mark.parametrize("word", ["DARK_RED", "Blue", "dark", "", "blue "])
def test_what_is_not_the_value_of_a_choice_is_rejected_with_the_choices(word: str) -> None:
    error = f"Error: Invalid value for '--color': must be one of dark-red, blue, got {word!r}"
    assert run(command(COLOR), "--color", word) == (2, "", error)


@pytest.mark.parametrize(
    ("number", "word", "problem"),
    [
        pytest.param(Number(), "many", "must be a number, got 'many'", id="text"),
        pytest.param(Number(), "1.5", "must be a number, got '1.5'", id="fraction"),
        pytest.param(Number(), "", "must be a number, got ''", id="nothing"),
        pytest.param(Number(1), "0", "must be a number of at least 1, got '0'", id="too low"),
        pytest.param(Number(1), "all", "must be a number of at least 1, got 'all'", id="text, with a limit"),
        pytest.param(Number(0, 65535), "65536", "must be a number from 0 to 65535, got '65536'", id="too high"),
        pytest.param(Number(0, 65535), "-1", "must be a number from 0 to 65535, got '-1'", id="below zero"),
    ],
)
def test_a_number_out_of_its_limits_is_rejected_with_them(number: Number, word: str, problem: str) -> None:
    option = click.option("--count", type=number)
    assert run(command(option), f"--count={word}") == (2, "", f"Error: Invalid value for '--count': {problem}")


@pytest.mark.parametrize("word", ["0", "65535", "+7"])
def test_a_number_within_its_limits_is_a_number(word: str) -> None:
    option = click.option("--port", type=Number(0, 65535))
    assert run(command(option), f"--port={word}") == (0, repr({"port": int(word)}), "")


@pytest.mark.parametrize(
    ("word", "error"),
    [
        pytest.param("--colour", "No such option: --colour, did you mean --color?", id="similar"),
        pytest.param("--colour=blue", "No such option: --colour, did you mean --color?", id="with a value"),
        pytest.param("--file", "No such option: --file", id="nothing similar"),
        pytest.param("-c", "No such option: -c", id="short"),
        pytest.param("--col", "No such option: --col, did you mean --color?", id="shortened"),
    ],
)
def test_an_unknown_option_is_rejected_with_similar_ones(word: str, error: str) -> None:
    """How click words it depends on its release; a shortened name is not taken for an option."""
    assert run(command(COLOR), word) == (2, "", f"Error: {error}")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param(click.option("--file"), None, id="text"),
        pytest.param(click.option("--file", multiple=True), (), id="several texts"),
        pytest.param(click.option("--file", is_flag=True), False, id="flag"),
        pytest.param(click.option("--file", type=Number(0)), None, id="number"),
        pytest.param(click.option("--file", type=OneOf(Color)), None, id="choice"),
        pytest.param(click.argument("file", nargs=-1), (), id="arguments"),
    ],
)
def test_a_value_that_is_not_given_has_none_of_the_marks_of_click(option: Callable[..., Any], value: object) -> None:
    """Its mark of an unset value has reached functions: https://github.com/pallets/click/issues/3066."""
    assert run(command(option)) == (0, repr({"file": value}), "")


def fails(error: BaseException) -> Command:
    """Return a command that raises an error."""

    def fail(_: object) -> None:
        raise error

    return command(click.option("--traceback", is_flag=True), run=fail)


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        pytest.param(ConfigError("no\n  file"), ["error: no file"], id="of ours"),
        pytest.param(ValueError("no file"), ["error: ValueError: no file"], id="any other"),
        pytest.param(ValueError(), ["error: ValueError"], id="without a text"),
        pytest.param(BuildError(["no kind", "no name"]), ["error: no kind; no name"], id="several"),
        pytest.param(
            ExceptionGroup("two", [OSError("a"), OSError("b")]), ["error: OSError: a; OSError: b"], id="group"
        ),
    ],
)
def test_an_error_is_one_line_and_status_2(error: Exception, lines: list[str]) -> None:
    done = CliRunner().invoke(fails(error), [])
    assert (done.exit_code, done.stdout, done.stderr.splitlines()) == (2, "", lines)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(ConfigError("no file"), ["--traceback"], id="on request"),
        pytest.param(BrokenPipeError(), [], id="the reader of the output has ended"),
        pytest.param(KeyboardInterrupt(), [], id="an interrupt"),
    ],
)
def test_an_error_is_raised(error: BaseException, words: list[str]) -> None:
    tested = fails(error)
    with pytest.raises(type(error)), tested.make_context("paint", words) as context:
        tested.invoke(context)
