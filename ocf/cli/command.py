"""The class of every command, and the types of its values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeVar

import click

from ocf.cli.exit_status import FAILED

__all__ = ["Command", "Number", "OneOf", "unknown_options"]

_Choice = TypeVar("_Choice", bound=StrEnum)


class Command(click.Command):
    """A command whose help text is that of `ocf.cli.command_help`, and whose errors are one line for each problem."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; see `unknown_options`."""
        with unknown_options():
            return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line."""
        from ocf.cli.command_help import usage

        formatter.write(usage(ctx))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help text."""
        from ocf.cli.command_help import command_help

        formatter.write(command_help(ctx))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print an error and exit with status 2, or raise it with `--traceback`."""
        traceback = ctx.params.pop("traceback", False)
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, BrokenPipeError):
            # The reader of the output has closed the pipe, which is not an error of the command.
            raise
        except Exception as error:
            if traceback:
                raise
            from ocf.cli.output import print_error

            print_error(error)
            raise click.exceptions.Exit(FAILED) from error


@contextmanager
def unknown_options() -> Iterator[None]:
    """Name the options that are similar to an unknown one; how click words it depends on its release."""
    try:
        yield
    except click.NoSuchOption as error:
        # Here, because commands start faster without it.
        from ocf.objects.suggestions import nearest

        known = [] if error.ctx is None else [name for each in error.ctx.command.params for name in each.opts]
        near = nearest(error.option_name, known)
        hint = f", did you mean {near}?" if near else ""
        raise click.UsageError(f"No such option: {error.option_name}{hint}", error.ctx) from None


class OneOf(click.Choice[_Choice]):
    """The type of a value that is a member of an enumeration, written as its value."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:  # noqa: ARG002 (of the base class)
        """Return the value of a choice; the base class takes the name of the member."""
        return str(choice)

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002 (likewise)
        """Return what is wrong, and the values that are allowed."""
        return f"must be one of {', '.join(self.choices)}, got {value!r}"


class Number(click.IntRange):
    """The type of a whole number.

    Args:
        at_least: Lowest number; None for no limit.
        at_most: Highest number, if there is a lowest one; None for no limit.
    """

    def __init__(self, at_least: int | None = None, at_most: int | None = None) -> None:
        super().__init__(at_least, at_most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value; an error has the numbers that are allowed."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            limits = f" of at least {self.min}" if self.max is None else f" from {self.min} to {self.max}"
            self.fail(f"must be a number{'' if self.min is None else limits}, got {value!r}", param, ctx)
