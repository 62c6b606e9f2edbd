"""JSON paths of printer columns: fields, indices, wildcards, and filters by equality.

This is the subset used in `additionalPrinterColumns`; the full language is described in
https://kubernetes.io/docs/reference/kubectl/jsonpath/. A path with any other syntax matches nothing.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["find"]

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)
    |\[(?P<index>-?[0-9]+)\]
    |\[(?P<wild>\*)\]
    |\[(?P<quote>['"])(?P<name>.*?)(?P=quote)\]
    |\[\?\(@\.(?P<key>[^=\s)]+)\s*==\s*(?P<mark>['"])(?P<value>.*?)(?P=mark)\)\]""",
    re.VERBOSE,
)


def find(path: str, value: Any) -> list[Any]:
    r"""Return the values at a path.

    Args:
        path: The path, for example `.status.conditions[?(@.type=="Ready")].status`.
        value: JSON value that the path starts at.

    Returns:
        The values found, in order.

    Example:
        >>> find('.c[?(@.type=="Ready")].status', {"c": [{"type": "Ready", "status": "True"}]})
        ['True']
        >>> find(r".labels.example\.com/tier", {"labels": {"example.com/tier": "front"}})
        ['front']
    """
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        found = [item for one in found for item in _next(step, one)]
        position = step.end()
    return found


def _next(step: "re.Match[str]", value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        name = step["name"] if step["quote"] else re.sub(r"\\(.)", r"\1", step["field"] or "")
        if name == "*" or step["wild"]:
            yield from value.values()
        elif name in value:
            yield value[name]
    elif isinstance(value, list):
        yield from _items(step, value)


def _items(step: "re.Match[str]", value: list[Any]) -> Iterator[Any]:
    if step["wild"]:
        yield from value
    elif step["index"]:
        number = int(step["index"])
        if -len(value) <= number < len(value):
            yield value[number]
    elif step["key"]:
        for item in value:
            if isinstance(item, dict) and str(item.get(step["key"])) == step["value"]:
                yield item
