"""Validation of Deployments, ReplicaSets and DaemonSets.

Source: `pkg/apis/apps/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required
from ocf_server.validation.fields import (
    immutable,
    label_selector,
    matches,
    nonnegative,
    positive_int_or_percent,
    shown_selector,
)
from ocf_server.validation.go_structs import go_struct
from ocf_server.validation.metadata import metadata_update_errors
from ocf_server.validation.pod_spec import pod_template_errors
from ocf_server.validation.validation import Validation
from ocf_server.validation.workload_rules import (
    always_errors,
    amount_number,
    at_most_all,
    create_rule,
    label_mismatch,
    selected_template_errors,
    selector_errors,
    template_labels,
)
from ocf_server.validation.workload_status import STATUS_RULES

__all__ = ["VALIDATIONS"]

_Json: TypeAlias = Mapping[str, Any]


def _deployment_errors(spec: _Json) -> Iterator[FieldError]:
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from selector_errors(spec, "deployment")
    yield from selected_template_errors(spec, "invalid label selector")
    yield from _deployment_strategy_errors(spec.get("strategy", {}), "spec.strategy")
    yield from nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from nonnegative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= spec.get("minReadySeconds", 0):
            yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _deployment_strategy_errors(strategy: _Json, path: str) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif kind == "RollingUpdate":
        yield from _rolling_deployment_errors(rolling or {}, f"{path}.rollingUpdate")
    else:
        yield not_supported(path, go_struct("DeploymentStrategy", strategy), ["Recreate", "RollingUpdate"])


def _rolling_deployment_errors(rolling: _Json, path: str) -> Iterator[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from positive_int_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from positive_int_or_percent(surge, f"{path}.maxSurge")
    if not amount_number(unavailable) and not amount_number(surge):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0", as_json=True)
    yield from at_most_all(unavailable, f"{path}.maxUnavailable")


def _replica_set_errors(spec: _Json) -> Iterator[FieldError]:
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from selector_errors(spec, "deployment")
    yield from selected_template_errors(spec, "invalid label selector")


def _daemon_set_errors(spec: _Json) -> Iterator[FieldError]:
    given, template = spec.get("selector"), spec["template"]
    yield from label_selector(given or {}, "spec.selector")
    if matches(given, template_labels(template)) is False:
        yield label_mismatch(template, "spec.template")
    if given is not None and not given.get("matchLabels") and not given.get("matchExpressions"):
        yield invalid("spec.selector", shown_selector(given), "empty selector is invalid for daemonset")
    yield from pod_template_errors(template, "spec.template")
    yield from always_errors(template["spec"], "DaemonSet")
    yield from nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _daemon_strategy_errors(spec.get("updateStrategy", {}), "spec.updateStrategy")
    yield from nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def _daemon_strategy_errors(strategy: _Json, path: str) -> Iterator[FieldError]:
    kind = strategy.get("type", "")
    if kind == "RollingUpdate":
        yield from _rolling_daemon_errors(strategy["rollingUpdate"], f"{path}.rollingUpdate")
    elif kind != "OnDelete":
        yield not_supported(path, go_struct("DaemonSetUpdateStrategy", strategy), ["RollingUpdate", "OnDelete"])


def _rolling_daemon_errors(rolling: _Json, path: str) -> Iterator[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    for rule in (positive_int_or_percent, at_most_all):
        yield from rule(unavailable, f"{path}.maxUnavailable")
        yield from rule(surge, f"{path}.maxSurge")
    if amount_number(unavailable) and amount_number(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero", as_json=True)
    elif not amount_number(unavailable) and not amount_number(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _deployment_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _deployment_errors(new["spec"])
    yield from _immutable_selector(new, live)


def _replica_set_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _replica_set_errors(new["spec"])
    yield from _immutable_selector(new, live)


def _daemon_set_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _immutable_selector(new, live)
    yield from _daemon_set_errors(new["spec"])


def _immutable_selector(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    selector = new["spec"].get("selector")
    shown = shown_selector(selector)
    return immutable(selector, live["spec"].get("selector"), "spec.selector", shown=shown)


VALIDATIONS: Final = {
    "DaemonSet.apps": Validation(create_rule(_daemon_set_errors), _daemon_set_update, STATUS_RULES["DaemonSet"]),
    "Deployment.apps": Validation(create_rule(_deployment_errors), _deployment_update, STATUS_RULES["Deployment"]),
    "ReplicaSet.apps": Validation(create_rule(_replica_set_errors), _replica_set_update, STATUS_RULES["ReplicaSet"]),
}
