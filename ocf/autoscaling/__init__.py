"""The HorizontalPodAutoscaler, pure: authoring, defaulting, validation, lint. No cluster and no clock is needed.

What is only needed to write autoscalers, or to look for what is regrettable in them, is loaded when it is asked for: a
command that judges one file, and a server that stores objects, start without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.defaulting import default
from ocf.autoscaling.validation.scale import validate_scale
from ocf.autoscaling.validation.validation import admitted, validate, validate_spec, validate_status
from ocf.objects.field_errors import ErrorType, FieldError, invalid_message
from ocf.schema.kubernetes import FeatureGates

if TYPE_CHECKING:
    from ocf.autoscaling.builders import behavior as scaling
    from ocf.autoscaling.builders import metrics
    from ocf.autoscaling.builders.autoscaler import Autoscaled, autoscale
    from ocf.autoscaling.builders.behavior import Select
    from ocf.autoscaling.linter.findings import Code, Finding, Severity
    from ocf.autoscaling.linter.linter import lint
    from ocf.autoscaling.targets.targets import Renderable, Scalable

__all__ = [
    "Autoscaled",
    "Code",
    "ErrorType",
    "FeatureGates",
    "FieldError",
    "Finding",
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
    "Autoscaled": "builders.autoscaler",
    "Code": "linter.findings",
    "Finding": "linter.findings",
    "Renderable": "targets.targets",
    "Scalable": "targets.targets",
    "Select": "builders.behavior",
    "Severity": "linter.findings",
    "autoscale": "builders.autoscaler",
    "lint": "linter.linter",
}
_MODULES: Final = {"metrics": "builders.metrics", "scaling": "builders.behavior"}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found
