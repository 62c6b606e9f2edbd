"""The manifest of tuned settings: the text of the user with other values, comments included."""

import json
from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.api.betas import as_v2
from ocf.errors import ManifestError
from ocf.objects import Manifest, dump_document
from ocf.objects.documents import load_documents
from ocf.objects.paths import FieldPath, get_field
from ocf.objects.yaml_places import YamlNode, split_path
from ocf.simulation.scenario.autoscaler_file import HPA_KIND
from ocf.simulation.tuning.problem import InvalidCandidate, with_value

__all__ = ["tuned_manifest", "tuned_text"]

_MISSING: Final = object()


def tuned_manifest(hpa: Manifest, tuned: Manifest, values: Mapping[str, Any]) -> Manifest:
    """Return a manifest with the tuned fields; all other fields are as the user wrote them.

    Args:
        tuned: The HPA of the winner, with all defaults.
        values: Values of the settings by field; only those of the HPA are used.
    """
    hpa = as_v2(hpa)
    if hpa.get("apiVersion") != tuned.get("apiVersion", hpa.get("apiVersion")):
        return tuned  # the fields of autoscaling/v1 have other names
    found = hpa
    for path in values:
        steps = split_path(path)
        if steps[0] == "spec":
            found = _with_field(found, steps, tuned)
    return found


def _with_field(manifest: Manifest, steps: FieldPath, tuned: Manifest) -> Manifest:
    """Set a field; if the manifest leaves a list to its defaults, set the whole list."""
    try:
        return with_value(manifest, steps, get_field(tuned, steps))
    except InvalidCandidate:
        at = max(number for number, each in enumerate(steps) if isinstance(each, int))
        return _with_field(manifest, steps[:at], tuned)


def tuned_text(text: str, tuned: Manifest, values: Mapping[str, Any]) -> str:
    r"""Return a text in which the HPA has the tuned fields.

    Comments, order and other documents are kept: a value is replaced where it is written, and a new field is written
    after the key of the map that it belongs to. Where that is not possible, such as with aliases, the document is
    written anew; of a list, and of a text with duplicate keys, only the HPA is.

    Args:
        tuned: The HPA of the winner, with all defaults.

    Example:
        >>> text = "kind: HorizontalPodAutoscaler\nspec:\n  minReplicas: 2  # nights\n  maxReplicas: 9\n"
        >>> print(tuned_text(text, {"spec": {"minReplicas": 4}}, {"spec.minReplicas": 4}), end="")
        kind: HorizontalPodAutoscaler
        spec:
          minReplicas: 4  # nights
          maxReplicas: 9
    """
    documents = _parsed(text) or ()
    found = [number for number, each in enumerate(documents) if each.get("kind") == HPA_KIND]
    if len(found) != 1:
        return dump_document(tuned)
    at = found[0]
    wanted = tuned_manifest(documents[at], tuned, values)
    edited = text
    for steps in _changes(documents[at], wanted, ()):
        edited = _edited(edited, at, steps, get_field(wanted, steps, _MISSING))
    expected = (*documents[:at], wanted, *documents[at + 1 :])
    return edited if _parsed(edited) == expected else "---\n".join(map(dump_document, expected))


def _changes(before: Any, after: Any, path: FieldPath) -> list[FieldPath]:
    """Return the smallest parts that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [
            change
            for name in names
            for change in _changes(before.get(name, _MISSING), after.get(name, _MISSING), (*path, name))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [change for at, (one, other) in pairs for change in _changes(one, other, (*path, at))]
    # In Python, 1 and true are equal.
    return [] if before == after and type(before) is type(after) else [path]


def _edited(text: str, document: int, steps: FieldPath, value: Any) -> str:
    """Return a text with a value replaced or added; as it was if that is not possible."""
    root = YamlNode.root(text, document)
    found = None if root is None else root.descend(steps)
    if found is None or value is _MISSING:
        return text
    if found.exact:
        node = found.node
        return f"{text[: node.start_mark.index]}{_flow(value)}{_gap(node)}{text[node.end_mark.index :]}"
    parent = root.descend(steps[:-1]) if root is not None else found
    if not parent.exact or parent.node.id != "mapping" or not parent.node.value:
        return text
    begin = parent.node.value[0][0].start_mark
    if parent.node.flow_style:
        return f"{text[: begin.index]}{steps[-1]}: {_flow(value)}, {text[begin.index :]}"
    lines = dump_document({str(steps[-1]): value}).splitlines()
    indent = " " * begin.column
    return f"{text[: begin.index]}{''.join(f'{line}{chr(10)}{indent}' for line in lines)}{text[begin.index :]}"


def _flow(value: Any) -> str:
    """Return a value in one line, which is JSON, and so also YAML."""
    return json.dumps(value, ensure_ascii=False)


def _gap(node: Any) -> str:
    """Return the line break that the end of a block includes."""
    return "\n" + " " * node.end_mark.column if node.id != "scalar" and not node.flow_style else ""


def _parsed(text: str) -> tuple[Manifest, ...] | None:
    try:
        return load_documents(text)
    except ManifestError:
        return None
