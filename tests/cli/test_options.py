"""Rules for the options of all commands."""

import inspect
from collections.abc import Iterator
from typing import get_type_hints

import pytest
from typer import Context
from typer.main import get_command
from typer.models import OptionInfo

from ocf.cli.app import app


def options() -> Iterator[tuple[str, str, OptionInfo]]:
    """Yield command, parameter and declaration of every option."""
    group = get_command(app)
    context = Context(group)
    for command in group.list_commands(context):  # type: ignore[attr-defined]  # of several commands, it is a group
        function = inspect.unwrap(group.get_command(context, command).callback)  # type: ignore[attr-defined]
        for parameter, hint in get_type_hints(function, include_extras=True).items():
            for declared in getattr(hint, "__metadata__", ()):
                if isinstance(declared, OptionInfo):
                    yield command, parameter, declared


@pytest.mark.parametrize("option", [pytest.param(found, id=f"{found[0]} {found[1]}") for found in options()])
def test_a_flag_is_written_out_where_its_metavar_is_its_name(option: tuple[str, str, OptionInfo]) -> None:
    """Typer 0.27 would take the flag from the metavar: `--IMAGE`."""
    _, parameter, declared = option
    written_out = declared.default is not ...  # in Annotated the first argument is the flag, whatever its name
    assert written_out or (declared.metavar or "").lower() != parameter
