"""Serialization as YAML that is easy to read and to compare in version control.

This module builds the nodes and the library prints them. Unlike with the dumper of the library, a value that occurs
twice is written twice and never as an alias, a string is quoted if Kubernetes would read it as another type (`on`,
`1e3`, `0o14`) or if it would act on a terminal or a CI run that shows it, and a value that is not a JSON value is an
error with its path instead of being written with a tag.
"""

import math
from typing import Any, Final

import yaml

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.document_limits import MAX_DEPTH
from ocf.objects.paths import FieldPath, format_path
from ocf.objects.printable import acts, printable_yaml
from ocf.objects.yaml_scalars import read_plain

__all__ = ["write_yaml"]

_Dumper: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG: Final = "tag:yaml.org,2002:"
# Long texts stay on their line: a folded one is hard to read and to compare.
_LINE_WIDTH: Final = 2**30


def write_yaml(value: Any, subject: str) -> str:
    """Serialize a JSON value in block style.

    Args:
        value: The value; keys keep their order.

    Raises:
        ManifestError: If it contains a value that is not a JSON value; it contains all such fields.
    """
    writer = _Writer(subject)
    node = writer.node(value, ())
    if writer.problems:
        raise ManifestError(subject, writer.problems)
    written: str = yaml.serialize(node, Dumper=_Dumper, allow_unicode=True, width=_LINE_WIDTH)
    return printable_yaml(written) if writer.acts else written


class _Writer:
    """Converts values to nodes and collects problems."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self.problems: list[FieldProblem] = []
        self.acts = False

    def node(self, value: Any, path: FieldPath) -> yaml.Node:
        """Return the node of a value, with all values in it."""
        if len(path) >= MAX_DEPTH and isinstance(value, dict | list):
            # Raised at once: a value that contains itself would be traversed forever.
            detail = f"nested more than {MAX_DEPTH} levels deep, or contains itself"
            raise ManifestError(self._subject, [FieldProblem(format_path(path[:3]), detail)])
        if isinstance(value, dict):
            pairs = [(self._key(key, path), self.node(item, (*path, str(key)))) for key, item in value.items()]
            return yaml.MappingNode(f"{_TAG}map", pairs, flow_style=False)
        if isinstance(value, list):
            items = [self.node(item, (*path, index)) for index, item in enumerate(value)]
            return yaml.SequenceNode(f"{_TAG}seq", items, flow_style=False)
        return self._text(value, path) if isinstance(value, str) else self._plain(value, path)

    def _key(self, key: object, path: FieldPath) -> yaml.Node:
        if isinstance(key, str):
            return self._text(key, path)
        self._reject(path, f"the key {key!r} must be a text")
        return yaml.ScalarNode(f"{_TAG}str", "")

    def _text(self, text: str, path: FieldPath) -> yaml.Node:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._reject(path, "a text contains half of a surrogate pair")
        style = "|" if "\n" in text else None
        if not isinstance(read_plain(text), str):
            style = "'"
        if acts(text):
            style, self.acts = '"', True
        return yaml.ScalarNode(f"{_TAG}str", str(text), style=style)

    def _plain(self, value: object, path: FieldPath) -> yaml.Node:
        if value is None:
            return yaml.ScalarNode(f"{_TAG}null", "null")
        if isinstance(value, bool):
            return yaml.ScalarNode(f"{_TAG}bool", str(value).lower())
        if isinstance(value, int):
            return yaml.ScalarNode(f"{_TAG}int", str(value))
        if isinstance(value, float) and math.isfinite(value):
            return yaml.ScalarNode(f"{_TAG}float", _float(value))
        self._reject(path, f"{value if isinstance(value, float) else type(value).__name__} is not a JSON value")
        return yaml.ScalarNode(f"{_TAG}null", "null")

    def _reject(self, path: FieldPath, detail: str) -> None:
        self.problems.append(FieldProblem(format_path(path), detail))


def _float(value: float) -> str:
    text = repr(value)
    # Without a point, `1e+22` is a string in YAML 1.1.
    return text if "." in text else text.replace("e", ".0e", 1)
