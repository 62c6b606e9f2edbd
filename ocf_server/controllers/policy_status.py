"""Controller of ValidatingAdmissionPolicies: reports in the status what the types of their expressions have shown.

Source: pkg/controller/validatingadmissionpolicystatus of Kubernetes 1.36.
"""

from typing import Final

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource, builtin_plural
from ocf_server.controllers.actions import Action, Outcome, Write
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_policy"]

_REPORTED: Final = "spec.validations["


def reconcile_policy(view: ClusterView, policy: Manifest) -> Outcome:
    """Check the types of a policy once for each generation."""
    # Imported here, because the controllers start without CEL.
    from ocf_server.registry.policy_types import type_warnings

    generation = policy["metadata"]["generation"]
    if generation <= (policy.get("status") or {}).get("observedGeneration", 0):
        return Outcome()

    def find(group: str, version: str, plural: str) -> ApiResource | None:
        key = (group, version, plural)
        custom = (one for one in view.registry.custom_kinds() if (one.group, one.version, one.plural) == key)
        return next(custom, None) or builtin_plural(group, version, plural, view.registry.release)

    warnings = [one for one in type_warnings(policy, find) if one["fieldRef"].startswith(_REPORTED)]
    checked = {"expressionWarnings": warnings} if warnings else {}
    head = {name: policy[name] for name in ("apiVersion", "kind")} | {"metadata": {"name": policy["metadata"]["name"]}}
    status = {"observedGeneration": generation, "typeChecking": checked}
    return Outcome((Action(Write.APPLY_STATUS, {**head, "status": status}),))
