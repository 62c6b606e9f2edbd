"""Admission and conversion webhooks from functions on the models of a kind, and on requests.

What only a process that serves webhooks needs is imported on first use.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, required
from ocf.runtime.admission.match import Match, Operation
from ocf.runtime.admission.policies import ApplyConfiguration, JSONPatch, Parameters, Policy, Validation
from ocf.runtime.admission.requests import AdmissionRequest, AuditAnnotation, Deny, UserInfo, Warn
from ocf.runtime.admission.review import review
from ocf.runtime.admission.webhooks import Step, Webhook, Webhooks

if TYPE_CHECKING:
    from ocf.runtime.admission.certificate_source import FileCertificates
    from ocf.runtime.admission.rotation import Renewal
    from ocf.runtime.admission.secret_certificates import SecretCertificates
    from ocf.runtime.admission.server import serving
    from ocf.runtime.admission.webhook_configurations import Service, Url, configurations, with_conversion

__all__ = [
    "AdmissionRequest",
    "ApplyConfiguration",
    "AuditAnnotation",
    "Deny",
    "FieldError",
    "FileCertificates",
    "JSONPatch",
    "Match",
    "Operation",
    "Parameters",
    "Policy",
    "Renewal",
    "SecretCertificates",
    "Service",
    "Step",
    "Url",
    "UserInfo",
    "Validation",
    "Warn",
    "Webhook",
    "Webhooks",
    "configurations",
    "duplicate",
    "forbidden",
    "invalid",
    "required",
    "review",
    "serving",
    "with_conversion",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "FileCertificates": "certificate_source",
        "Renewal": "rotation",
        "SecretCertificates": "secret_certificates",
        "Service": "webhook_configurations",
        "Url": "webhook_configurations",
        "configurations": "webhook_configurations",
        "serving": "server",
        "with_conversion": "webhook_configurations",
    },
)
