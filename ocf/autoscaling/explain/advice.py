"""Advice for error messages of the HPA controller."""

from collections.abc import Iterator
from typing import Final

__all__ = ["advice"]

_ADVICE: Final = {
    "missing request for ": "Give every container of the pods that the selector matches a request for it; one pod"
    " without it, such as a job's, or one injected container, is enough to stop the metric.",
    "missing pod-level request for ": "Give the pods, or all of their containers, a request for it.",
    " not found in Pod ": "Every pod that the selector matches needs a container of that name.",
    "no pods returned by selector": "The selector of the scale matches no pod: check that pods with these"
    " labels exist.",
    "did not receive metrics for targeted pods": "No pod that counts has been measured: wait until one is ready and has"
    " been measured once.",
    "no metrics returned matched known pods": "The measured pods are not those that the selector matches, or they have"
    " no requests.",
    "resource metrics API": "Check that this API is installed and answers:"
    " `kubectl get apiservice v1beta1.metrics.k8s.io`; metrics-server usually serves it.",
    "custom metrics API": "Check that this API is installed and its adapter knows the metric: `kubectl get apiservice`"
    " lists custom.metrics.k8s.io.",
    "external metrics API": "Check that this API is installed and its adapter knows the metric: `kubectl get"
    " apiservice` lists external.metrics.k8s.io.",
    "selector is required": "The scale of the target has no selector: its `status.selector` must be a string.",
    # The text after it differs since 1.37.
    "pods by selector ": "Pods are counted by selector, not by owner: give the targets selectors that do"
    " not overlap, or remove one of the autoscalers (at the object that controls it, if one does).",
}
"""Advice by a part of the message; the first match counts."""


def advice(message: str) -> Iterator[str]:
    """Return advice for a message.

    Example:
        >>> [text] = advice("no pods returned by selector while calculating replica count")
        >>> text
        'The selector of the scale matches no pod: check that pods with these labels exist.'
    """
    found = next((text for piece, text in _ADVICE.items() if piece in message), None)
    if found is not None:
        yield found
