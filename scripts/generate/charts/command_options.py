"""Options of a command as values of a chart: defaults and descriptions come from the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import click

from scripts.generate.charts.values import Value

__all__ = ["DURATION", "CommandOption", "CommandValues", "command_options"]

DURATION: Final[Mapping[str, Any]] = {"pattern": r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$"}
"""Schema of a duration as Go writes it, such as 5m0s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOption:
    """An option of the command line that is a value of the chart.

    Args:
        parameter: The parameter of the command's function.
        default: The default of the chart where it is not that of the command.
        schema: What its JSON schema has beside type and description.
    """

    parameter: str
    default: Any = None
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Known:
    flag: str
    value: Value

    def argument(self, path: str) -> str:
        """Return the lines of a template that pass the value to the command."""
        match self.value.default:
            case bool():
                return f"{{{{- if {path} }}}}\n- {self.flag}\n{{{{- end }}}}\n"
            case dict():
                text = f'{{{{ printf "{self.flag}=%s=%v" $name $value | quote }}}}'
                return f"{{{{- range $name, $value := {path} }}}}\n- {text}\n{{{{- end }}}}\n"
            case list():
                return f'{{{{- range {path} }}}}\n- {{{{ printf "{self.flag}=%s" . | quote }}}}\n{{{{- end }}}}\n'
            case "":
                return f'{{{{- with {path} }}}}\n- {{{{ printf "{self.flag}=%s" . | quote }}}}\n{{{{- end }}}}\n'
            case int():
                return f'- {{{{ printf "{self.flag}=%d" (int {path}) | quote }}}}\n'
            case _:
                return f'- {{{{ printf "{self.flag}=%v" {path} | quote }}}}\n'


@dataclass(frozen=True, slots=True)
class CommandValues:
    """Options of a command as values.

    Args:
        known: Each option, by the key of its value.
        path: The path of the section with the values.
    """

    known: Mapping[str, _Known]
    path: str

    @property
    def values(self) -> dict[str, Value]:
        """The values, by key."""
        return {key: each.value for key, each in self.known.items()}

    @property
    def arguments(self) -> str:
        """Lines of a template that pass the values to the command, each an item of a list."""
        return "".join(each.argument(f"{self.path}.{key}") for key, each in self.known.items())


def command_options(command: click.Command, options: Mapping[str, CommandOption], path: str) -> CommandValues:
    """Return options of a command as values of a chart.

    Args:
        command: The command.
        options: The options, by the key of their value.
        path: The path of the section with the values, such as `.Values.hpaController`.
    """
    return CommandValues({key: _known(command, each) for key, each in options.items()}, path)


def _known(command: click.Command, option: CommandOption) -> _Known:
    (found,) = (each for each in command.params if each.name == option.parameter)
    default = found.get_default(click.Context(command)) if option.default is None else option.default
    description = _described(found.help or "")
    if isinstance(default, Enum):
        default = default.value
    return _Known(found.opts[0], Value(default=default, description=description, schema=option.schema))


def _described(text: str) -> str:
    """Return a help text without what is only true of the command line."""
    sentence = re.sub(r"^For [\w-]+: |; repeatable(?=\.)", "", text)
    return sentence[:1].upper() + sentence[1:]
