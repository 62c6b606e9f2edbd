"""Validation of PriorityClasses.

Source: `pkg/apis/scheduling/validation/validation.go` and `pkg/apis/scheduling/v1/helpers.go` of Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden
from ocf_server.validation.fields import immutable, required_enumeration
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["SYSTEM", "VALIDATIONS"]

# HighestUserDefinablePriority: what is above it belongs to the classes of the system.
_HIGHEST: Final = 1_000_000_000
_PREFIX: Final = "system-"
SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")


def _class_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    name, value = manifest["metadata"].get("name", ""), manifest.get("value", 0)
    if name.startswith(_PREFIX):
        problem = _system_problem(name, value, is_default=bool(manifest.get("globalDefault")))
        if problem:
            rule = f"priority class names with '{_PREFIX}' prefix are reserved for system use only"
            yield forbidden("metadata.name", f"{rule}. error: {problem}")
    elif value > _HIGHEST:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if "preemptionPolicy" in manifest:
        yield from required_enumeration(manifest["preemptionPolicy"], _PREEMPTION, "preemptionPolicy")


def _system_problem(name: str, value: int, *, is_default: bool) -> str:
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _class_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    if new.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


VALIDATIONS: Final = {"PriorityClass.scheduling.k8s.io": Validation(_class_errors, _class_update_errors)}
