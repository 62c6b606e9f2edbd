"""Validation of Events, in the older API and in `events.k8s.io`.

Source: `pkg/apis/core/validation/events.go` of Kubernetes. Clients of the newer API write fewer fields and more values,
so what is validated depends on the version of the request; the paths of errors are those of the older API in both.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, required
from ocf.objects.metadata_validation import creation_errors, update_errors
from ocf.objects.name_validation import (
    dns_subdomain,
    dns_subdomain_prefix,
    path_segment,
    path_segment_prefix,
    qualified_name,
)
from ocf_server.validation.fields import immutable
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_CHARACTERS: Final = {"reportingInstance": 128, "action": 128, "reason": 128}
_OF_NOTE: Final = 1024  # characters
_LEAST: Final = 2  # events of a series
_DEPRECATED: Final = {
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_IMMUTABLE: Final = {
    "involvedObject": "regarding",
    "reason": "reason",
    "message": "note",
    "source": "deprecatedSource",
    **_DEPRECATED,
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}


def _legacy_errors(event: Manifest, subject: Mapping[str, Any], controller: str, note: str) -> Iterator[FieldError]:
    namespace, of_subject = event["metadata"].get("namespace") or "", subject.get("namespace") or ""
    if not event.get("eventTime"):
        # Events about objects without a namespace are in the default one.
        if namespace != of_subject and (of_subject or namespace != "default"):
            yield invalid("involvedObject.namespace", of_subject, "does not match event.namespace")
        return
    # Clients of the newer API put them in kube-system, too.
    if not of_subject and namespace not in ("default", "kube-system"):
        yield invalid("involvedObject.namespace", of_subject, "does not match event.namespace")
    name = event.get(controller) or ""
    if not name:
        yield required(controller)
    yield from (invalid(controller, name, problem) for problem in qualified_name(name))
    for field, limit in _CHARACTERS.items():
        text = event.get(field) or ""
        if not text:
            yield required(field)
        if len(text.encode()) > limit:
            yield invalid(field, "", f"can have at most {limit} characters")
    if len((event.get(note) or "").encode()) > _OF_NOTE:
        yield invalid("message", "", f"can have at most {_OF_NOTE} characters")


def _core_errors(event: Manifest) -> Iterator[FieldError]:
    yield from _legacy_errors(event, event.get("involvedObject") or {}, "reportingComponent", "message")
    yield from creation_errors(event["metadata"], path_segment, path_segment_prefix)


def _core_update_errors(event: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from _legacy_errors(event, event.get("involvedObject") or {}, "reportingComponent", "message")
    yield from update_errors(event["metadata"], live["metadata"])


def _new_errors(event: Manifest) -> Iterator[FieldError]:
    yield from _legacy_errors(event, event.get("regarding") or {}, "reportingController", "note")
    yield from creation_errors(event["metadata"], dns_subdomain, dns_subdomain_prefix)
    yield from _series_errors(event.get("series"))
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {event.get('type') or ''}")
    for field, name in _DEPRECATED.items():
        if event.get(name):
            yield invalid(field, "", "needs to be unset")
    if any((event.get("deprecatedSource") or {}).values()):
        yield invalid("source", "", "needs to be unset")


def _new_update_errors(event: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from _legacy_errors(event, event.get("regarding") or {}, "reportingController", "note")
    yield from update_errors(event["metadata"], live["metadata"])
    if event.get("series") != live.get("series"):
        yield from _series_errors(event.get("series"))
    for field, name in _IMMUTABLE.items():
        yield from immutable(event.get(name), live.get(name), field)


def _series_errors(series: Mapping[str, Any] | None) -> Iterator[FieldError]:
    if series is None:
        return
    if (series.get("count") or 0) < _LEAST:
        yield invalid("series.count", "", f"should be at least {_LEAST}")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


VALIDATIONS: Final = {
    "Event": Validation(_core_errors, _core_update_errors),
    "Event.events.k8s.io": Validation(_new_errors, _new_update_errors),
}
