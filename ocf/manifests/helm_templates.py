"""Templates of Helm charts made of manifests: placeholders in them become expressions of the chart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import dump_document

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["KUBERNETES", "NAMESPACE", "SCHEMA", "in_release", "json_type", "kept", "only", "template", "when"]

KUBERNETES: Final = ">=1.30.0-0"
"""The releases of Kubernetes in which charts are installed."""

NAMESPACE: Final = "ocf-release-namespace"
"""Stands for the namespace of the release while the objects are built."""

SCHEMA: Final = "http://json-schema.org/draft-07/schema#"
"""The dialect of the schema of values."""

_PLACEHOLDER: Final = re.compile(r"'@(\w+)@'")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def template(manifests: Sequence[Manifest], expressions: Mapping[str, str], *, note: str) -> str:
    """Return the text of a template; braces in the objects themselves are escaped.

    Args:
        manifests: The objects. A value `@name@` is a placeholder.
        expressions: What stands in place of each placeholder, by its name; other texts of its form stay.
        note: A comment for the first line.

    Returns:
        The text; empty without objects.

    Example:
        >>> print(template([{"replicas": "@count@"}], {"count": "{{ .Values.replicas }}"}, note="Generated."), end="")
        # Generated.
        replicas: {{ .Values.replicas }}
    """
    if not manifests:
        return ""
    text = "---\n".join(map(dump_document, manifests)).replace("{{", '{{ "{{" }}')
    return f"# {note}\n{_PLACEHOLDER.sub(lambda found: expressions.get(found[1], found[0]), text)}"


def when(value: str, text: str) -> str:
    """Render a template only if a value is set.

    Args:
        value: Its path below `.Values`.
        text: The template.
    """
    return only(f".Values.{value}", text)


def only(condition: str, text: str) -> str:
    """Render a template only under a condition; the note stays its first line.

    Args:
        condition: An expression.
        text: The template.
    """
    if not text:
        return ""
    note, _, body = text.partition("\n")
    return f"{note}\n{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n"


def kept(definition: Manifest) -> Manifest:
    """Return an object that Helm does not delete when the release is uninstalled.

    Args:
        definition: The object.
    """
    annotations = {**definition["metadata"].get("annotations", {}), "helm.sh/resource-policy": "keep"}
    return {**definition, "metadata": {**definition["metadata"], "annotations": annotations}}


def in_release(text: str, namespace: str = NAMESPACE) -> str:
    """Return a template whose objects are in the namespace of the release.

    Args:
        text: The template.
        namespace: What stands for the namespace of the release in it.
    """
    return text.replace(namespace, "{{ .Release.Namespace }}")


def json_type(value: Any) -> str:
    """Return the type that JSON Schema has for a value.

    Args:
        value: A value of JSON, which is not null.

    Example:
        >>> json_type(0.1)
        'number'
    """
    return _TYPES[type(value)]
