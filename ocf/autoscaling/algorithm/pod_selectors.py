"""Selectors: reading the scale's, printing a metric's, and finding pods that two autoscalers claim.

An autoscaler's pods are what its scale's selector selects, whoever owns them. Two autoscalers that select one pod
would both count it, so the controller refuses to decide. It knows the others only by the selector it saw in their last
round: one that had none yet selects nothing.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ocf.errors import ManifestError
from ocf.objects import LabelSelector, Manifest

__all__ = ["format_selector", "overlapping_hpas", "parse_selector"]


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> LabelSelector | str:
    """Read the selector of a scale.

    Args:
        text: `status.selector`.

    Returns:
        The selector, or what is wrong with the text.
    """
    try:
        return LabelSelector.parse(text)
    except ManifestError as error:
        return str(error)


def overlapping_hpas(labels: Iterable[Mapping[str, str]], others: Mapping[str, LabelSelector]) -> list[str]:
    """Return the autoscalers that select one of these pods.

    Args:
        labels: The labels of the pods.
        others: Selectors by the name of an autoscaler.

    Returns:
        The names, sorted.
    """
    known = list(labels)
    return sorted(name for name, selector in others.items() if any(selector.matches(each) for each in known))


def format_selector(selector: Manifest | None) -> str:
    """Print the selector of a metric as the controller's messages do.

    Args:
        selector: The selector in object form, or None.

    Returns:
        A text in the notation of Go.

    Example:
        >>> printed({"matchLabels": {"queue": "mail"}})
        '&LabelSelector{MatchLabels:map[string]string{queue: mail,},MatchExpressions:[]LabelSelectorRequirement{},}'
    """
    if selector is None:
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
