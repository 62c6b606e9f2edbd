"""Validation of MutatingAdmissionPolicies and their bindings; the error texts are those of a real API server."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, not_supported, required
from ocf_server.registry.match_validation import choice_errors, expression_errors
from ocf_server.registry.policy_validation import binding_target_errors, constraint_errors, variable_errors

if TYPE_CHECKING:
    from ocf_server.cel.environment import Environment
    from ocf_server.cel.types import CelType

__all__ = ["mutating_binding_errors", "mutating_policy_errors"]

_Fields = Mapping[str, Any]

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATIONS: Final = ("IfNeeded", "Never")
_PATCHES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def mutating_policy_errors(policy: Manifest) -> Iterator[FieldError]:
    """Validate a MutatingAdmissionPolicy.

    Args:
        policy: The policy, defaulted.

    Yields:
        The errors.

    Raises:
        BadRequestError: If an expression uses a feature of CEL that the embedded cluster does not support.
    """
    from ocf_server.cel.environment import Environment

    spec = policy["spec"]
    variables, mutations = spec.get("variables") or (), spec.get("mutations") or ()
    yield from constraint_errors(spec, _operation_errors(spec.get("matchConstraints"), "spec.matchConstraints"))
    environment = Environment.of_policy(spec)
    for index, variable in enumerate(variables):
        yield from variable_errors(environment, variable, f"spec.variables[{index}]")
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _mutation_errors(environment, mutation, f"spec.mutations[{index}]")
    yield from choice_errors(spec, "reinvocationPolicy", _REINVOCATIONS, "spec")


def _operation_errors(match: _Fields | None, path: str) -> Iterator[FieldError]:
    for rule in (match or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _OPERATIONS:
                yield not_supported(f"{path}.resourceRules.operations", operation, _OPERATIONS)


def _mutation_errors(environment: "Environment", mutation: _Fields, path: str) -> Iterator[FieldError]:
    from ocf_server.cel.patch_types import APPLY_CONFIGURATION, JSON_PATCH

    gives = {"ApplyConfiguration": APPLY_CONFIGURATION, "JSONPatch": JSON_PATCH}
    patch_type = mutation.get("patchType") or ""
    if patch_type not in _PATCHES:
        yield (
            not_supported(f"{path}.patchType", patch_type, tuple(_PATCHES))
            if patch_type
            else required(f"{path}.patchType")
        )
        return
    field = _PATCHES[patch_type]
    if mutation.get(field) is None:
        yield required(f"{path}.{field}", f"must be specified when patchType is {patch_type}")
    else:
        yield from _patch_errors(environment, mutation[field], gives[patch_type], f"{path}.{field}.expression")
    for other in _PATCHES.values():
        if other != field and mutation.get(other) is not None:
            yield invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {patch_type}")


def _patch_errors(environment: "Environment", patch: _Fields, gives: "CelType", path: str) -> Iterator[FieldError]:
    text = str(patch.get("expression") or "").strip()
    if text:
        yield from expression_errors(environment.compiled(text, (gives,), mutates=True), path)
    else:
        yield required(path)


def mutating_binding_errors(binding: Manifest) -> Iterator[FieldError]:
    """Validate a MutatingAdmissionPolicyBinding.

    Args:
        binding: The binding, defaulted.

    Yields:
        The errors.
    """
    spec = binding["spec"]
    yield from binding_target_errors(spec)
    yield from _operation_errors(spec.get("matchResources"), "spec.matchResources")
