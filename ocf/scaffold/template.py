"""Templates of files: Jinja, with signs that Python, YAML, Helm and Make do not use.

`@{name}` stands for a variable; `@% if webhooks %@` and `@% endif %@` are statements, which take their line with them.
`@{name | literal}` writes a text as Python does, with its quotes, and `@{name | scalar}` as YAML does, with quotes if
it needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError
from ocf.objects import dump_document
from ocf.scaffold.python_literal import literal

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Templates"]

_MISSING: Final = "new projects need the template engine Jinja: install it with pip install 'ocf[new]'"


class Templates:
    r"""Renders templates.

    Args:
        variables: Name to value; flags of conditions are variables, too.

    Raises:
        ConfigError: If Jinja is not installed.

    Example:
        >>> templates = Templates({"name": "Ann", "loud": False})
        >>> templates.render("@% if loud %@\nHELLO\n@% else %@\nhello @{name}\n@% endif %@\n")
        'hello Ann\n'
        >>> templates.render("@{name | literal}"), Templates({"kind": "No"}).render("kind: @{kind | scalar}")
        ('"Ann"', "kind: 'No'")
    """

    def __init__(self, variables: Mapping[str, str | bool | list[str]]) -> None:
        self._environment = _environment()
        self._variables = variables

    def render(self, text: str) -> str:
        """Render a template.

        Args:
            text: The template.

        Raises:
            jinja2.TemplateError: If the template is not valid, or a variable is unknown.
        """
        return self._environment.from_string(text).render(self._variables)


def _environment() -> Environment:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ConfigError(_MISSING) from error
    environment = Environment(  # noqa: S701 (source files, not HTML)
        variable_start_string="@{",
        variable_end_string="}",
        block_start_string="@%",
        block_end_string="%@",
        comment_start_string="@#",
        comment_end_string="#@",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(literal=literal, scalar=_scalar)
    return environment


def _scalar(text: str) -> str:
    return dump_document({"text": text}).removeprefix("text: ").rstrip("\n")
