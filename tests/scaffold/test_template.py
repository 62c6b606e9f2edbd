"""Templates: the signs of variables and conditions."""

import sys

import pytest
from jinja2 import UndefinedError

from ocf.errors import ConfigError
from ocf.scaffold.template import Templates

VARIABLES: dict[str, str | bool] = {"name": "shop", "on": True, "off": False}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        pytest.param("@{name}s\n", "shops\n", id="variable"),
        pytest.param("a@b.c @name ${name} {name}\n", "a@b.c @name ${name} {name}\n", id="other signs stay"),
        pytest.param("{{ .Values.a }} {% x %} {# y #}\n", "{{ .Values.a }} {% x %} {# y #}\n", id="usual signs stay"),
        pytest.param("<a href='x'>&</a>", "<a href='x'>&</a>", id="nothing is escaped"),
        pytest.param("a\n@% if on %@\nyes\n@% endif %@\nb\n", "a\nyes\nb\n", id="condition that holds"),
        pytest.param("a\n\n@% if on %@\n\nb\n@% endif %@\n\nc\n", "a\n\n\nb\n\nc\n", id="empty lines stay"),
        pytest.param("a\n@% if off %@\nyes\n@% endif %@\nb\n", "a\nb\n", id="condition that does not"),
        pytest.param("@% if off %@\na\n@% else %@\nb\n@% endif %@\n", "b\n", id="alternative"),
    ],
)
def test_signs(text: str, rendered: str) -> None:
    assert Templates(VARIABLES).render(text) == rendered


@pytest.mark.parametrize("text", ["@{nam}\n", "@% if other %@\n@% endif %@\n"], ids=["variable", "condition"])
def test_an_unknown_variable_is_an_error(text: str) -> None:
    with pytest.raises(UndefinedError, match="is undefined"):
        Templates(VARIABLES).render(text)


def test_without_jinja_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match=r"pip install 'ocf\[new\]'"):
        Templates(VARIABLES)
