"""The commands of `ocf`.

A command's module is imported when the command is looked up, and for the overview of all commands, so each command
starts as fast as possible. typer converts every value with pydantic, even text to text, and loading pydantic would
nearly double the time of `ocf validate`. So values that need no conversion are used without it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

__all__ = ["app"]

_COMMANDS: Final = (
    "validate",
    "default",
    "explain",
    "simulate",
    "tune",
    "record",
    "preview",
    "diff",
    "serve",
    "dev",
    "new",
    "manifests",
    "hpa-controller",
    "nodegroups",
    "completion",
    "version",
)
"""The commands in the order of the overview. Each is a function in a module of the same name, with `_` for `-`, or a
group of such commands."""

_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
_TEXT: Final = (str, str | None)
_TEXTS: Final = (list[str], list[str] | None)
_ANY_NUMBER: Final = -1


class _Command(TyperCommand):
    """A command whose option `--help` has a default."""

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


class _Commands(TyperGroup):
    """The group of all commands; each is loaded when it is looked up."""

    names: ClassVar[tuple[str, ...]] = _COMMANDS
    prefix: ClassVar[str] = ""
    """Begins the names of the modules of the commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Only the names matter here: for the overview, and for suggestions for a misspelled name.
        self.commands = {name: TyperCommand(name) for name in self.names}
        for parameter in self.params:
            _convert_on_demand(parameter, bool)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 (given by the base class)
        return _load(cmd_name, self.prefix) if cmd_name in self.commands else None

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


class _NewCommands(_Commands):
    """The commands of `ocf new`."""

    names = ("operator", "kind")
    prefix = "new_"


_GROUPS: Final = {"new": (_NewCommands, "Write a project of an operator, or a kind of another project.")}
"""Commands that have commands of their own, with their help."""


def _off(option: Any) -> Any:
    """Set the default of the option; without one, None would be converted."""
    if option is not None:
        option.default = False
    return option


def _load(name: str, prefix: str) -> Any:
    if name in _GROUPS:
        return _group(name)
    module = f"{prefix}{name.replace('-', '_')}"
    function: Callable[..., object] = getattr(import_module(f"ocf.cli.{module}"), module)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_SETTINGS)
    single.command(name, cls=_Command)(function)
    command: Any = get_command(single)
    hints = get_type_hints(function)
    for parameter in command.params:
        if parameter.callback is None:  # it is called after the conversion, and by it
            _convert_on_demand(parameter, hints[parameter.name])
    return command


def _group(name: str) -> Any:
    group, text = _GROUPS[name]
    commands = typer.Typer(
        name=name,
        cls=group,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=_SETTINGS,
    )
    commands.callback()(lambda: None)
    return get_command(commands)


def _convert_on_demand(parameter: Any, hint: Any) -> None:
    """Let a parameter accept its default, text and names of choices without a conversion by typer.

    Args:
        parameter: The parameter; changed in place.
        hint: The type that the function expects.
    """
    convert = parameter.process_value
    several = parameter.multiple or parameter.nargs == _ANY_NUMBER
    choices = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, StrEnum)]

    def process_value(ctx: Any, value: Any) -> Any:
        if value is parameter.default and not parameter.required:
            return () if value is None and several else value
        if isinstance(value, str) and choices:
            return _chosen(choices[0], value, ctx, parameter)
        is_text = isinstance(value, str) and hint in _TEXT
        are_texts = isinstance(value, list | tuple) and len(value) > 0 and hint in _TEXTS
        return value if is_text or are_texts else converted(ctx, value)

    def converted(ctx: Any, value: Any) -> Any:
        try:
            return convert(ctx, value)
        except typer.BadParameter as error:
            if isinstance(value, str):
                error.message = f"{error.message}, got {value!r}"
            raise

    parameter.process_value = process_value


def _chosen(choices: type[StrEnum], value: str, ctx: Any, parameter: Any) -> StrEnum:
    if value not in set(choices):
        raise typer.BadParameter(f"must be one of {', '.join(choices)}, got {value!r}", ctx=ctx, param=parameter)
    return choices(value)


app = typer.Typer(
    name="ocf",
    cls=_Commands,
    help="Author, check and run components of Kubernetes operators.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


@app.callback(invoke_without_command=True)
def _commands(*, version: Annotated[bool, typer.Option("--version", help="Print the version of ocf.")] = False) -> None:
    """Author, check and run components of Kubernetes operators."""
    if version:
        from ocf.cli.version import version as print_version

        print_version()
        raise typer.Exit
