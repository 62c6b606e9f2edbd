"""Admission and conversion webhooks from plain functions on the models of a kind.

What only a process that serves webhooks needs is imported on first use.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.objects.field_errors import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.runtime.admission.conversion_review import conversion_review
from ocf.runtime.admission.review import review
from ocf.runtime.admission.webhooks import Defaulter, Operation, Step, Validator, Warn, Webhook, Webhooks

if TYPE_CHECKING:
    from ocf.runtime.admission.certificate_source import CertificateSource, FileCertificates, ServingCertificate
    from ocf.runtime.admission.key_pairs import KeyPair
    from ocf.runtime.admission.rotation import Renewal
    from ocf.runtime.admission.secret_certificates import SecretCertificates
    from ocf.runtime.admission.server import WebhookServer, serving
    from ocf.runtime.admission.webhook_configurations import Service, Url, configurations, with_conversion

__all__ = [
    "CertificateSource",
    "Defaulter",
    "ErrorType",
    "FieldError",
    "FileCertificates",
    "KeyPair",
    "Operation",
    "Renewal",
    "SecretCertificates",
    "Service",
    "ServingCertificate",
    "Step",
    "Url",
    "Validator",
    "Warn",
    "Webhook",
    "WebhookServer",
    "Webhooks",
    "configurations",
    "conversion_review",
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "required",
    "review",
    "serving",
    "with_conversion",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CertificateSource": "certificate_source",
        "FileCertificates": "certificate_source",
        "KeyPair": "key_pairs",
        "Renewal": "rotation",
        "SecretCertificates": "secret_certificates",
        "Service": "webhook_configurations",
        "ServingCertificate": "certificate_source",
        "Url": "webhook_configurations",
        "WebhookServer": "server",
        "configurations": "webhook_configurations",
        "serving": "server",
        "with_conversion": "webhook_configurations",
    },
)
