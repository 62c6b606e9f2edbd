"""Validation of Deployments, ReplicaSets, StatefulSets and DaemonSets.

Source: `pkg/apis/apps/validation/validation.go` of Kubernetes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.embedded.validation.annotations import pod_annotation_errors
from ocf.embedded.validation.claims import claim_spec_errors
from ocf.embedded.validation.fields import (
    each_problem,
    immutable,
    label_selector,
    matches,
    nonnegative,
    percent,
    positive_int_or_percent,
    shown_selector,
)
from ocf.embedded.validation.go_structs import go_struct
from ocf.embedded.validation.metadata import metadata_errors, metadata_update_errors
from ocf.embedded.validation.pod_spec import pod_template_errors
from ocf.embedded.validation.validation import CreateRule, Validation
from ocf.embedded.validation.workload_status import STATUS_RULES
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required
from ocf.objects.json_equality import equal_json
from ocf.objects.metadata_validation import annotation_errors, label_errors
from ocf.objects.name_validation import NameRule, dns_label, dns_label_prefix

__all__ = ["VALIDATIONS"]

_Json: TypeAlias = Mapping[str, Any]
_Amount: TypeAlias = int | str

_NO_MATCH: Final = "`selector` does not match template `labels`"
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


def _labels(template: _Json) -> dict[str, str]:
    return template.get("metadata", {}).get("labels") or {}


def _mismatch(template: _Json, path: str) -> FieldError:
    return invalid(f"{path}.metadata.labels", dict(sorted(_labels(template).items())) or None, _NO_MATCH)


def _selector_errors(spec: _Json, what: str) -> Iterator[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", shown_selector(selector), f"empty selector is invalid for {what}")


def _selected_template_errors(spec: _Json, malformed: str) -> Iterator[FieldError]:
    """Yield the errors of the template of a Deployment or ReplicaSet, which a malformed selector hides."""
    given, template = spec.get("selector"), spec["template"]
    matching = matches(given, _labels(template))
    if matching is None:
        yield invalid("spec.selector", shown_selector(given), malformed)
        return
    if not matching:
        yield _mismatch(template, "spec.template")
    yield from pod_template_errors(template, "spec.template")
    yield from _always_errors(template["spec"], "ReplicaSet")


def _always_errors(spec: _Json, what: str) -> Iterator[FieldError]:
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ["Always"])
    if "activeDeadlineSeconds" in spec:
        detail = f"activeDeadlineSeconds in {what} is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _deployment_errors(spec: _Json) -> Iterator[FieldError]:
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from _selector_errors(spec, "deployment")
    yield from _selected_template_errors(spec, "invalid label selector")
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
    if not _number(unavailable) and not _number(surge):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0", as_json=True)
    yield from _at_most_all(unavailable, f"{path}.maxUnavailable")


def _number(amount: _Amount) -> int:
    """Return the number of an integer, a percentage or the text of an integer; 0 for any other text."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%") if not percent(amount) else amount
    try:
        return int(digits)
    except ValueError:
        return 0


def _at_most_all(amount: _Amount, path: str) -> Iterator[FieldError]:
    if isinstance(amount, str) and not percent(amount) and int(amount[:-1]) > 100:  # noqa: PLR2004
        yield invalid(path, amount, "must not be greater than 100%", as_json=True)


def _replica_set_errors(spec: _Json) -> Iterator[FieldError]:
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _selector_errors(spec, "deployment")
    yield from _selected_template_errors(spec, "invalid label selector")


def _daemon_set_errors(spec: _Json) -> Iterator[FieldError]:
    given, template = spec.get("selector"), spec["template"]
    yield from label_selector(given or {}, "spec.selector")
    if matches(given, _labels(template)) is False:
        yield _mismatch(template, "spec.template")
    if given is not None and not given.get("matchLabels") and not given.get("matchExpressions"):
        yield invalid("spec.selector", shown_selector(given), "empty selector is invalid for daemonset")
    yield from pod_template_errors(template, "spec.template")
    yield from _always_errors(template["spec"], "DaemonSet")
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
    for rule in (positive_int_or_percent, _at_most_all):
        yield from rule(unavailable, f"{path}.maxUnavailable")
        yield from rule(surge, f"{path}.maxSurge")
    if _number(unavailable) and _number(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero", as_json=True)
    elif not _number(unavailable) and not _number(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


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
    yield from _selector_errors(spec, "statefulset")
    yield from _stateful_template_errors(spec)
    yield from _always_errors(spec["template"]["spec"], "StatefulSet")


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
        if not _number(amount):
            yield invalid(place, amount, "cannot be 0", as_json=True)
        yield from _at_most_all(amount, place)


def _retention_errors(policy: _Json) -> Iterator[FieldError]:
    for name in ("whenDeleted", "whenScaled"):
        value = policy.get(name, "")
        if policy and value not in ("Retain", "Delete"):
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ["Retain", "Delete"])


def _stateful_template_errors(spec: _Json) -> Iterator[FieldError]:
    path, template = "spec.template", _template_of_pods(spec)
    matching = matches(spec.get("selector"), _labels(template))
    if matching is None:
        yield invalid("spec.selector", shown_selector(spec.get("selector")), "")
        return
    if not matching:
        yield _mismatch(template, path)
    yield from pod_template_errors(template, path)
    # The API server validates these a second time.
    annotations = template["metadata"].get("annotations") or {}
    yield from label_errors(_labels(template), f"{path}.labels")
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


def _stateful_set_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _stateful_set_errors(new["spec"], new=False)
    after, before = (
        {name: value for name, value in manifest["spec"].items() if name not in _STATEFUL_UPDATABLE}
        for manifest in (new, live)
    )
    if not equal_json(after, before):
        yield forbidden("spec", _STATEFUL_FORBIDDEN)


def _created(rule: Callable[[_Json], Iterator[FieldError]], *names: NameRule) -> CreateRule:
    def create(manifest: Manifest) -> Iterator[FieldError]:
        yield from metadata_errors(manifest["metadata"], *names)
        yield from rule(manifest["spec"])

    return create


VALIDATIONS: Final = {
    "DaemonSet.apps": Validation(_created(_daemon_set_errors), _daemon_set_update, STATUS_RULES["DaemonSet"]),
    "Deployment.apps": Validation(_created(_deployment_errors), _deployment_update, STATUS_RULES["Deployment"]),
    "ReplicaSet.apps": Validation(_created(_replica_set_errors), _replica_set_update, STATUS_RULES["ReplicaSet"]),
    "StatefulSet.apps": Validation(
        _created(_stateful_set_errors, dns_label, dns_label_prefix), _stateful_set_update, STATUS_RULES["StatefulSet"]
    ),
}
