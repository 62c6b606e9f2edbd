"""The HorizontalPodAutoscaler, pure: authoring, defaulting, validation, lint. No cluster and no clock is needed.

What is only needed to write autoscalers, or to look for what is regrettable in them, is loaded when it is asked for: a
command that judges one file, and a server that stores objects, start without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.decoding import decode
from ocf.autoscaling.defaulting import default
from ocf.autoscaling.gates import Gates
from ocf.autoscaling.scale import validate_scale
from ocf.autoscaling.validation import admitted, validate, validate_spec, validate_status
from ocf.objects.field_errors import ErrorType, FieldError, invalid_message

if TYPE_CHECKING:
    from ocf.autoscaling import metrics, scaling
    from ocf.autoscaling.authoring import Autoscaled, autoscale
    from ocf.autoscaling.findings import Code, Finding, Severity
    from ocf.autoscaling.linting import lint
    from ocf.autoscaling.scaling import Select
    from ocf.autoscaling.targets import Renderable, Scalable

__all__ = [
    "Autoscaled",
    "Code",
    "ErrorType",
    "FieldError",
    "Finding",
    "Gates",
    "Renderable",
    "Scalable",
    "Select",
    "Severity",
    "admitted",
    "autoscale",
    "decode",
    "default",
    "invalid_message",
    "lint",
    "metrics",
    "scaling",
    "validate",
    "validate_scale",
    "validate_spec",
    "validate_status",
]

_LATER: Final = {
    "Autoscaled": "authoring",
    "Code": "findings",
    "Finding": "findings",
    "Renderable": "targets",
    "Scalable": "targets",
    "Select": "scaling",
    "Severity": "findings",
    "autoscale": "authoring",
    "lint": "linting",
}
_MODULES: Final = frozenset({"metrics", "scaling"})


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found
