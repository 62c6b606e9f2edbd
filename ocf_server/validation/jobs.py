"""Validation of Jobs and CronJobs.

Source: `pkg/apis/batch/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, not_supported, required, too_long
from ocf.objects.name_validation import dns_label, dns_subdomain
from ocf_server.validation.fields import (
    each_problem,
    immutable,
    label_selector,
    matches,
    nonnegative,
    required_enumeration,
    shown_selector,
)
from ocf_server.validation.go_structs import go_struct
from ocf_server.validation.job_policies import failure_policy_errors, success_policy_errors
from ocf_server.validation.job_status import job_status_errors
from ocf_server.validation.job_templates import template_errors
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.pod_spec import pod_template_errors
from ocf_server.validation.schedules import schedule_errors, time_zone_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_Json: TypeAlias = Mapping[str, Any]

_INDEXED: Final = "Indexed"
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
# maxParallelismForIndexedJob, completionsSoftLimit and the two limits above it, maxManagedByLength. A CronJob adds 11
# characters to its name for that of a Job, which is a label.
_MOST_INDEXED: Final = 100_000
_MANY_COMPLETIONS: Final = 100_000
_MOST_WITH_MANY: Final = 10_000
_LONGEST_MANAGER: Final = 63
_LONGEST_CRON_NAME: Final = 52
_HTTP_PATH: Final = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
_is_http_path: Final = re.compile(_HTTP_PATH).fullmatch
_IMMUTABLE: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_STRUCTS: Final = {"podFailurePolicy": "PodFailurePolicy", "successPolicy": "SuccessPolicy"}


def _spec_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    for name in _COUNTS:
        yield from nonnegative(spec.get(name), f"{path}.{name}")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if "managedBy" in spec:
        yield from _manager_errors(spec["managedBy"], f"{path}.managedBy")
    yield from _mode_errors(spec, path)
    if "podFailurePolicy" in spec:
        yield from failure_policy_errors(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        if spec.get("completionMode") == _INDEXED:
            yield from success_policy_errors(spec, f"{path}.successPolicy")
        else:
            shown = go_struct("SuccessPolicy", spec["successPolicy"])
            yield invalid(f"{path}.successPolicy", shown, "requires indexed completion mode")
    policy = spec.get("podReplacementPolicy")
    replacements = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    if policy is not None and policy not in replacements:
        yield not_supported(f"{path}.podReplacementPolicy", policy, replacements)
    yield from pod_template_errors(spec["template"], f"{path}.template")
    yield from _restart_errors(spec, f"{path}.template.spec.restartPolicy")


def _manager_errors(manager: str, path: str) -> Iterator[FieldError]:
    host, slash, rest = manager.partition("/")
    if not manager:
        yield required(path)
    elif not slash or not host or not rest:
        yield invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from each_problem(dns_subdomain, host, path)
        if not _is_http_path(rest):
            yield invalid(path, rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')")
    if len(manager.encode(errors="surrogatepass")) > _LONGEST_MANAGER:
        yield too_long(path, _LONGEST_MANAGER)


def _mode_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", _INDEXED):
        yield not_supported(f"{path}.completionMode", mode, ("NonIndexed", _INDEXED))
    if mode == _INDEXED:
        yield from _indexed_errors(spec, path)
    if mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")


def _indexed_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    completions, failed, parallel = (spec.get(name) for name in ("completions", "maxFailedIndexes", "parallelism"))
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallel is not None and parallel > _MOST_INDEXED:
        detail = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
        yield invalid(f"{path}.parallelism", parallel, detail)
    if completions is not None and failed is not None and failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MOST_INDEXED:
        yield invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MOST_INDEXED}")
    if completions is None or completions <= _MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return
    if failed is None:
        detail = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield required(f"{path}.maxFailedIndexes", detail)
    for name, value in (("parallelism", parallel), ("maxFailedIndexes", failed)):
        if value is not None and value > _MOST_WITH_MANY:
            when = f"when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
            yield invalid(f"{path}.{name}", value, f"must be less than or equal to {_MOST_WITH_MANY} {when}")


def _restart_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("Always", ""):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified', as_json=True)


def _job_errors(job: Manifest, *, prefixed: bool = True) -> Iterator[FieldError]:
    metadata, spec = job["metadata"], job["spec"]
    yield from metadata_errors(metadata)
    yield from _generated_errors(job, prefixed=prefixed)
    yield from _job_spec_errors(spec)
    completions = spec.get("completions", 0)
    # The longest name that a pod of it gets.
    if spec.get("completionMode") == _INDEXED and completions > 0:
        longest = f"{metadata['name']}-{completions - 1}"
        if dns_label(longest):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid("metadata.name", metadata["name"], detail)


def _job_spec_errors(spec: _Json) -> Iterator[FieldError]:
    yield from _spec_errors(spec, "spec")
    selector, labels = spec.get("selector"), spec["template"].get("metadata", {}).get("labels") or {}
    if selector is None:
        yield required("spec.selector")
    else:
        yield from label_selector(selector, "spec.selector")
    # A malformed selector has been reported, and gives None.
    if matches(selector, labels) is False:
        shown = dict(sorted(labels.items())) or None
        yield invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def _generated_errors(job: Manifest, *, prefixed: bool) -> Iterator[FieldError]:
    """Yield the errors of the generated selector, and of the labels of the template that it selects."""
    metadata, spec = job["metadata"], job["spec"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    labels = spec["template"].get("metadata", {}).get("labels") or {}
    expected = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
    if prefixed:
        expected |= {f"batch.kubernetes.io/{name}": value for name, value in expected.items()}
    for name, value in expected.items():
        yield from _label_errors(labels, name, value)
    if matches(selector, expected) is False:
        yield invalid("spec.selector", shown_selector(selector), "`selector` not auto-generated")


def _label_errors(labels: Mapping[str, str], name: str, value: str) -> Iterator[FieldError]:
    path = f"spec.template.metadata.labels[{name}]"
    if name not in labels:
        yield required(path, f"must be '{value}'")
    elif labels[name] != value:
        shown = dict(sorted(labels.items()))
        yield invalid(path, shown, f"must be '{value}'")


def _job_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    spec, before = new["spec"], live["spec"]
    known = before["template"].get("metadata", {}).get("labels") or {}
    # Jobs of before Kubernetes 1.27 lack the prefixed labels, and stay valid.
    prefixed = all(f"batch.kubernetes.io/{name}" in known for name in ("job-name", "controller-uid"))
    yield from _job_errors(new, prefixed=prefixed)
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _job_spec_errors(spec)
    yield from _completion_errors(spec, before)
    yield from immutable(
        spec.get("selector"), before.get("selector"), "spec.selector", shown=shown_selector(spec.get("selector"))
    )
    yield from template_errors(new, live)
    for name in _IMMUTABLE:
        value = spec.get(name)
        shown = go_struct(_STRUCTS[name], value) if name in _STRUCTS else value
        yield from immutable(value, before.get(name), f"spec.{name}", shown=shown)


def _completion_errors(spec: _Json, before: _Json) -> Iterator[FieldError]:
    after, old = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != _INDEXED:
        yield from immutable(after, old, "spec.completions")
    elif after != old and after is not None and after != spec.get("parallelism"):
        yield invalid("spec.completions", after, "can only be modified in tandem with spec.parallelism")


def _cron_job_errors(job: Manifest) -> Iterator[FieldError]:
    name = job["metadata"]["name"]
    yield from metadata_errors(job["metadata"])
    yield from _cron_spec_errors(job["spec"], None)
    if len(name.encode(errors="surrogatepass")) > _LONGEST_CRON_NAME:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters")


def _cron_job_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _cron_spec_errors(new["spec"], live["spec"])


def _cron_spec_errors(spec: _Json, before: _Json | None) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if schedule:
        # A zone in the schedule is rejected in new ones only.
        zone_allowed = before is not None and "TZ" in before.get("schedule", "")
        yield from schedule_errors(schedule, zone, "spec.schedule", zone_allowed=zone_allowed)
    else:
        yield required("spec.schedule")
    yield from nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if before is None or before.get("timeZone") != zone:
        yield from time_zone_errors(zone, "spec.timeZone")
    policies = ("Allow", "Forbid", "Replace")
    yield from required_enumeration(spec.get("concurrencyPolicy"), policies, "spec.concurrencyPolicy")
    yield from _job_template_errors(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from nonnegative(spec.get(name), f"spec.{name}")


def _job_template_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    yield from _spec_errors(spec, path)
    if spec.get("selector") is not None:
        yield invalid(f"{path}.selector", shown_selector(spec["selector"]), "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", value=True, supported=("nil", "false"))


VALIDATIONS: Final = {
    "CronJob.batch": Validation(_cron_job_errors, _cron_job_update),
    "Job.batch": Validation(_job_errors, _job_update, {Subresource.STATUS: job_status_errors}),
}
