"""Templates: variables and conditional parts."""

import pytest

from ocf.errors import ConfigError
from ocf.scaffold.template import render_template

FLAGS = {"on": True, "off": False}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        pytest.param("@{name}s\n", "shops\n", id="variable"),
        pytest.param("a@b.c @name ${name} {name}\n", "a@b.c @name ${name} {name}\n", id="other signs stay"),
        pytest.param("%% if on\nyes\n%% end\n", "yes\n", id="condition that holds"),
        pytest.param("%% if off\nyes\n%% end\n", "", id="condition that does not"),
        pytest.param("%% if not off\nyes\n%% end\n", "yes\n", id="negation"),
        pytest.param("%% if off\na\n%% else\nb\n%% end\n", "b\n", id="alternative"),
        pytest.param(
            "%% if off\n%% if on\na\n%% else\nb\n%% end\n%% end\nc\n", "c\n", id="nested in one that does not"
        ),
        pytest.param(
            "%% if on\n%% if off\na\n%% else\nb\n%% end\n%% end\nc\n", "b\nc\n", id="nested in one that holds"
        ),
        pytest.param("%% if off\n@{unknown}\n%% end\n", "", id="unknown variable that is not rendered"),
    ],
)
def test_templates(text: str, rendered: str) -> None:
    assert render_template(text, {"name": "shop"}, FLAGS) == rendered


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("@{nam}\n", "unknown variable, 'nam'", id="variable"),
        pytest.param("a\n%% if other\n%% end\n", "line 2 of the template: invalid condition '%% if other'", id="flag"),
        pytest.param("%% end\n", "line 1 of the template: invalid condition '%% end'", id="end of nothing"),
        pytest.param("%% if on\n", "is not ended", id="no end"),
    ],
)
def test_an_invalid_template_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        render_template(text, {"name": "shop"}, FLAGS)
