"""What to do about the messages of the controller."""

from collections.abc import Iterator
from typing import Final

__all__ = ["advice"]

_ADVICE: Final = {
    "missing request for ": "Give every container of the pods that the selector matches a request for it; one pod"
    " without, a job or a container that was injected, is enough to stop the metric.",
    "missing pod-level request for ": "Give the pods, or all of their containers, a request for it.",
    " not found in Pod ": "Every pod that the selector matches needs a container of that name.",
    "no pods returned by selector": "The selector of the scale matches no pod: are there any, with these labels?",
    "did not receive metrics for targeted pods": "No pod that counts has been measured: wait until one is ready and has"
    " been measured once.",
    "no metrics returned matched known pods": "What is measured is not what the selector matches, or requests nothing.",
    "resource metrics API": "Is that API there, and does it answer? `kubectl get apiservice v1beta1.metrics.k8s.io`"
    " says so; mostly it is metrics-server.",
    "custom metrics API": "Is that API there, and does its adapter know the metric? `kubectl get apiservice` lists"
    " custom.metrics.k8s.io.",
    "external metrics API": "Is that API there, and does its adapter know the metric? `kubectl get apiservice` lists"
    " external.metrics.k8s.io.",
    "selector is required": "The target's scale tells no selector: its `status.selector` has to be a text.",
    "are controlled by multiple HPAs": "Pods are counted by selector, not by owner: give the targets selectors that do"
    " not overlap, or delete one of the autoscalers.",
}
"""What to do, by a piece of the message; the first that fits counts."""


def advice(message: str) -> Iterator[str]:
    """Say what to do about a message.

    Args:
        message: What the controller says.

    Yields:
        A sentence, if there is one.

    Example:
        >>> [text] = advice("no pods returned by selector while calculating replica count")
        >>> text
        'The selector of the scale matches no pod: are there any, with these labels?'
    """
    found = next((text for piece, text in _ADVICE.items() if piece in message), None)
    if found is not None:
        yield found
