"""Validation of StatefulSets.

Source: `pkg/apis/apps/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported
from ocf.objects.json_equality import equal_json
from ocf.objects.metadata_validation import annotation_errors, label_errors
from ocf.objects.name_validation import dns_label, dns_label_prefix
from ocf_server.validation.annotations import pod_annotation_errors
from ocf_server.validation.claims import claim_spec_errors
from ocf_server.validation.fields import (
    each_problem,
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
    selector_errors,
    template_labels,
)
from ocf_server.validation.workload_status import STATUS_RULES

__all__ = ["VALIDATIONS"]

_Json: TypeAlias = Mapping[str, Any]

_STATEFUL_UPDATABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_FORBIDDEN: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _stateful_set_errors(spec: _Json, *, new: bool = True) -> Iterator[FieldError]:
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'", as_json=True)
    yield from _stateful_strategy_errors(spec.get("updateStrategy", {}), "spec.updateStrategy")
    yield from _retention_errors(spec.get("persistentVolumeClaimRetentionPolicy", {}))
    if new:
        # They cannot be changed, so an update does not validate them again.
        for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
            yield from claim_spec_errors(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from nonnegative(spec.get("ordinals", {}).get("start"), "spec.ordinals.start")
    if new and spec.get("serviceName"):
        yield from each_problem(dns_label, spec["serviceName"], "spec.serviceName")
    yield from selector_errors(spec, "statefulset")
    yield from _stateful_template_errors(spec)
    yield from always_errors(spec["template"]["spec"], "StatefulSet")


def _stateful_strategy_errors(strategy: _Json, path: str) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            shown = go_struct("RollingUpdateStatefulSetStrategy", rolling)
            yield invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from _rolling_stateful_errors(rolling or {}, f"{path}.rollingUpdate")
    else:
        yield invalid(path, go_struct("StatefulSetUpdateStrategy", strategy), "must be 'RollingUpdate' or 'OnDelete'")


def _rolling_stateful_errors(rolling: _Json, path: str) -> Iterator[FieldError]:
    yield from nonnegative(rolling.get("partition"), f"{path}.partition")
    if "maxUnavailable" in rolling:
        amount, place = rolling["maxUnavailable"], f"{path}.maxUnavailable"
        yield from positive_int_or_percent(amount, place)
        if not amount_number(amount):
            yield invalid(place, amount, "cannot be 0", as_json=True)
        yield from at_most_all(amount, place)


def _retention_errors(policy: _Json) -> Iterator[FieldError]:
    for name in ("whenDeleted", "whenScaled"):
        value = policy.get(name, "")
        if policy and value not in ("Retain", "Delete"):
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ["Retain", "Delete"])


def _stateful_template_errors(spec: _Json) -> Iterator[FieldError]:
    path, template = "spec.template", _template_of_pods(spec)
    matching = matches(spec.get("selector"), template_labels(template))
    if matching is None:
        yield invalid("spec.selector", shown_selector(spec.get("selector")), "")
        return
    if not matching:
        yield label_mismatch(template, path)
    yield from pod_template_errors(template, path)
    # The API server validates these a second time.
    annotations = template["metadata"].get("annotations") or {}
    yield from label_errors(template_labels(template), f"{path}.labels")
    yield from annotation_errors(annotations, f"{path}.annotations")
    yield from pod_annotation_errors(annotations, template["spec"], f"{path}.annotations")


def _template_of_pods(spec: _Json) -> dict[str, Any]:
    """Return the template with what the controller sets: host names, and a volume for each claim template."""
    template: dict[str, Any] = dict(spec["template"])
    names = [claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates", ())]
    pod = {name: value for name, value in template["spec"].items() if name not in ("hostname", "subdomain")}
    if names:
        own = [volume for volume in pod.get("volumes", ()) if volume["name"] not in names]
        claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
        pod["volumes"] = [*claims, *own]
    return {**template, "spec": pod}


def _stateful_set_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _stateful_set_errors(new["spec"], new=False)
    after, before = (
        {name: value for name, value in manifest["spec"].items() if name not in _STATEFUL_UPDATABLE}
        for manifest in (new, live)
    )
    if not equal_json(after, before):
        yield forbidden("spec", _STATEFUL_FORBIDDEN)


VALIDATIONS: Final = {
    "StatefulSet.apps": Validation(
        create_rule(_stateful_set_errors, dns_label, dns_label_prefix),
        _stateful_set_update,
        STATUS_RULES["StatefulSet"],
    ),
}
