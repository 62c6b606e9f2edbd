"""Lines and columns of fields in a document, and the kind of a document that Kubernetes cannot read.

The places come from the nodes of the YAML library, which has no opinion on tags and keys: positions are found in a
document that Kubernetes would reject, too. A text is parsed for this only if it has a problem.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.objects.paths import get_field
from ocf.objects.yaml_places import YamlNode, root_of, split_path

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.objects import Manifest

__all__ = ["Place", "find_place", "has_plain_keys", "names_autoscaler"]

_KIND: Final = "HorizontalPodAutoscaler"
_KINDS: Final = frozenset({_KIND, f"{_KIND}List"})
_LONGEST: Final = 3 * 2**20
_WRITTEN_KIND: Final = re.compile(rf"""(?:^([ \t-]*)|[{{,]\s*)["']?kind["']?\s*:\s*["']?{_KIND}""", re.MULTILINE)
_PROBLEM_LINE: Final = re.compile(r"\bline (\d+):")
_V1_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"


class Place(NamedTuple):
    """A place in a file."""

    line: int
    column: int


def find_place(document: Document, path: str) -> Place:
    """Return the place of a field: of its key, or of an item of a list.

    Args:
        path: The field, `spec.metrics[0].resource`; empty for the object as a whole.
    """
    if document.manifest is None:
        named = _PROBLEM_LINE.search(document.problem)
        return Place(int(named[1]) if named else document.line, 1)
    node = YamlNode.root(document.text)
    found = None if node is None else node.descend(split_path(document.path))
    if found is None or not found.exact:
        return Place(document.line, 1)
    field = found.descend(split_path(path))
    if not field.exact and document.manifest.get("apiVersion") == "autoscaling/v1":
        field = found.descend(_v1_path(document.manifest, path))
    return Place(document.line + field.line - 1, field.column)


def names_autoscaler(text: str) -> bool:
    """Return whether a text that Kubernetes cannot read is meant to be an HPA, or a list with one.

    Only the kind of the document counts, and those of the items of a list: a script in a CI workflow may contain
    the manifest of an HPA, and the workflow is none. If the text cannot be parsed at all, each `kind` counts.
    """
    text = text.replace("\0", "")  # UTF-16 and UTF-32 without a byte order mark
    if _KIND not in text:
        return False
    try:
        return _names_autoscaler(json.loads(text))
    except (ValueError, RecursionError):
        pass
    long = len(text) > _LONGEST
    node = None if long else root_of(text)
    if node is not None:
        return _names_autoscaler(_outline(node, 6))
    return any(not long or found[1] == "" for found in _WRITTEN_KIND.finditer(text))


def has_plain_keys(text: str) -> bool:
    """Return whether a text is YAML, and no key of it is a map or a list.

    In a template, the braces of a placeholder are a map with a map as its key, if they are YAML at all.
    """
    node = None if len(text) > _LONGEST else root_of(text)
    waiting, seen = [node] if node is not None else [], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen or each.id == "scalar":
            continue
        seen.add(id(each))
        if each.id == "mapping":
            if any(key.id != "scalar" for key, _ in each.value):
                return False
            waiting += (value for _, value in each.value)
        else:
            waiting += each.value
    return node is not None


def _names_autoscaler(value: Any, depth: int = 6) -> bool:
    if depth < 0:
        return False
    if isinstance(value, list):
        return any(_names_autoscaler(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return False
    return value.get("kind") in _KINDS or _names_autoscaler(value.get("items"), depth - 1)


def _outline(node: Any, depth: int) -> Any:
    """Return the value of a node as texts, dicts and lists; None below the given depth."""
    if node.id == "scalar" or depth < 0:
        return node.value if node.id == "scalar" else None
    if node.id == "sequence":
        return [_outline(each, depth - 1) for each in node.value]
    return {key.value: _outline(value, depth - 1) for key, value in node.value if key.id == "scalar"}


def _v1_path(manifest: Manifest, path: str) -> tuple[str | int, ...]:
    """Return where autoscaling/v1 has a field of autoscaling/v2: metrics and behavior are in annotations."""
    steps = split_path(path)
    annotation = f"{_V1_PREFIX}{steps[1]}" if steps[0] == "spec" and len(steps) > 1 else ""
    if annotation in (get_field(manifest, ("metadata", "annotations")) or ()):
        return ("metadata", "annotations", annotation)
    return ("spec", "targetCPUUtilizationPercentage") if steps[:2] == ("spec", "metrics") else steps
