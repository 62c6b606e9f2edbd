"""Texts of an operator's author in templates of Helm: they are neither expressions nor placeholders."""

import pytest

from ocf.manifests.helm_templates import template
from ocf.objects import load_document


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{{ .Values.secret }}", id="an expression"),
        pytest.param("{{{ a }}}", id="three braces"),
        pytest.param("@todo@", id="the form of a placeholder"),
        pytest.param("use '@name@' here", id="the form of a placeholder within a text"),
        pytest.param("a\n---\nkind: Secret", id="a document of its own"),
    ],
)
def test_a_text_stays_what_it_is(text: str) -> None:
    rendered = template([{"replicas": "@count@", "description": text}], {"count": "{{ .Values.replicas }}"}, note="n")

    # What Helm makes of it: `{{ "{{" }}` gives two braces.
    made = rendered.replace("{{ .Values.replicas }}", "3").replace('{{ "{{" }}', "{{")
    assert "{{" not in rendered.replace("{{ .Values.replicas }}", "").replace('{{ "{{" }}', "")
    assert load_document(made) == {"replicas": 3, "description": text}
