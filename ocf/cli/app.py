"""Which commands there are.

A command's module is imported when the command is asked for, and for the overview of all; so each starts as fast as it
can by itself. What typer needs to convert options (pydantic) would be a third of what is left; most are texts, or not
given, and need no conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

__all__ = ["app"]

_COMMANDS: Final = ("validate", "default", "explain", "preview", "diff", "serve", "dev", "hpa-controller", "version")
"""The commands in the order of the overview; each is the function of its name, with `_`, in the module of its name."""

_ANY_NUMBER: Final = -1
_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


class _QuickHelp(TyperCommand):
    """A command whose option `--help` is off unless it is given."""

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


class _OnDemand(Mapping[str, Any]):
    """The commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in _COMMANDS:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _OnDemand()  # type: ignore[assignment]  # nobody adds to it

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


def _load(name: str) -> Any:
    written = name.replace("-", "_")
    function: Callable[..., object] = getattr(import_module(f"ocf.cli.{written}"), written)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_SETTINGS)
    single.command(name, cls=_QuickHelp)(function)
    command: Any = get_command(single)
    for parameter in command.params:
        # Where a later typer keeps its converter elsewhere, this changes nothing but the time of the start.
        parameter._runtime_param = _Converter()  # noqa: SLF001 (there is no other way in)
    return command


class _Converter:
    """Takes a value as it is where it is what is wanted; everything else is typer's to convert."""

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """Return a value of the command line as its function wants it."""
        several = param.multiple or param.nargs == _ANY_NUMBER
        if value is None:
            return () if several else None
        wanted = param.type_descriptor.annotation
        if several and wanted == list[str] and isinstance(value, list | tuple):
            return list(value)
        if not several and isinstance(wanted, type) and isinstance(value, wanted):
            return value
        if isinstance(wanted, type) and issubclass(wanted, StrEnum):
            if value not in set(wanted):
                raise typer.BadParameter(f"must be one of {', '.join(wanted)}, got {value!r}", ctx=ctx, param=param)
            return wanted(value)
        from typer._coercion import build_runtime_param  # it is what a parameter of typer calls

        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


def _off(option: Any) -> Any:
    """Give the option a default: to find out that none is given, typer would load pydantic."""
    if option is not None:
        option.default = False
    return option


app = typer.Typer(
    name="ocf",
    cls=_Commands,
    help="Author, check and run components of Kubernetes operators.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


@app.callback()
def _commands() -> None:
    """Author, check and run components of Kubernetes operators."""
