"""Admission webhooks from plain functions on the model of a kind."""

from ocf.objects.field_errors import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.runtime.admission.declaring import Defaulter, Operation, Step, Validator, Warn, Webhook, Webhooks
from ocf.runtime.admission.manifests import Service, Url, configurations
from ocf.runtime.admission.reviewing import review

__all__ = [
    "Defaulter",
    "ErrorType",
    "FieldError",
    "Operation",
    "Service",
    "Step",
    "Url",
    "Validator",
    "Warn",
    "Webhook",
    "Webhooks",
    "configurations",
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "required",
    "review",
]
