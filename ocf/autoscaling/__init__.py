"""HorizontalPodAutoscalers as pure functions: builders, defaults, validation, lint. No cluster or clock is needed.

The builders and the linter are imported on first use, so that a command that validates one file, and a server that
stores objects, start without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.defaulting import default
from ocf.autoscaling.validation.validation import admitted, validate, validate_status
from ocf.lazy_exports import lazy_exports
from ocf.objects.field_errors import FieldError, invalid_message
from ocf.schema.kubernetes import FeatureGates

if TYPE_CHECKING:
    from ocf.autoscaling.builders import behavior as scaling
    from ocf.autoscaling.builders import metrics
    from ocf.autoscaling.builders.autoscaler import autoscale
    from ocf.autoscaling.builders.behavior import Select
    from ocf.autoscaling.linter.findings import Finding, Severity
    from ocf.autoscaling.linter.linter import lint
    from ocf.autoscaling.targets.targets import Scalable
    from ocf.autoscaling.validation.scale import validate_scale

__all__ = [
    "FeatureGates",
    "FieldError",
    "Finding",
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
    "validate_status",
]

_LATER: Final = {
    "Finding": "linter.findings",
    "Scalable": "targets.targets",
    "Select": "builders.behavior",
    "Severity": "linter.findings",
    "autoscale": "builders.autoscaler",
    "lint": "linter.linter",
    "validate_scale": "validation.scale",
}
_MODULES: Final = {"metrics": "builders.metrics", "scaling": "builders.behavior"}


_export = lazy_exports(__name__, _LATER)


def __getattr__(name: str) -> Any:
    """Import a builder, the linter or a target type on first use."""
    return import_module(f"{__name__}.{_MODULES[name]}") if name in _MODULES else _export(name)
