"""Selectors: parse that of a scale, format that of a metric, and find HPAs that select the same pods.

The pods of an HPA are those that the selector of its scale selects, whatever owns them. Two HPAs that select one pod
would both count it, so the controller does not scale either. It knows the other HPAs by the selector of their last
sync: an HPA that was not synced yet selects nothing.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["format_selector", "overlapping_hpas", "parse_selector"]


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> LabelSelector | str:
    """Parse the selector of a scale.

    Args:
        text: `status.selector`.
    """
    try:
        return LabelSelector.parse(text)
    except ManifestError as error:
        return str(error)


def overlapping_hpas(labels: Iterable[Mapping[str, str]], others: Mapping[str, LabelSelector]) -> list[str]:
    """Return the HPAs that select one of these pods.

    Returns:
        The names, sorted.
    """
    known = list(labels)
    return sorted(name for name, selector in others.items() if any(selector.matches(each) for each in known))


def format_selector(selector: Manifest | None) -> str:
    """Format the selector of a metric as the controller's messages show it.

    Args:
        selector: The selector in object form, or None.

    Example:
        >>> format_selector({"matchLabels": {"queue": "mail"}})
        '&LabelSelector{MatchLabels:map[string]string{queue: mail,},MatchExpressions:[]LabelSelectorRequirement{},}'
    """
    if selector is None:
        # How Go prints a nil pointer with %v inside of this text: without the angle brackets of fmt, from the generated
        # String.
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(map(_expression, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _expression(expression: Manifest) -> str:
    values = " ".join(expression.get("values") or ())
    fields = f"Key:{expression.get('key') or ''},Operator:{expression.get('operator') or ''},Values:[{values}],"
    return f"LabelSelectorRequirement{{{fields}}},"
