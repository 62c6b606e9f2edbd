"""Admission webhooks from plain functions on the model of a kind."""

from ocf.objects.field_errors import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.runtime.admission.certificate_source import CertificateSource, ServingCertificate
from ocf.runtime.admission.file_certificates import FileCertificates
from ocf.runtime.admission.key_pairs import KeyPair
from ocf.runtime.admission.review import review
from ocf.runtime.admission.rotation import Renewal
from ocf.runtime.admission.secret_certificates import SecretCertificates
from ocf.runtime.admission.server import WebhookServer, serving
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations
from ocf.runtime.admission.webhooks import Defaulter, Operation, Step, Validator, Warn, Webhook, Webhooks

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
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "required",
    "review",
    "serving",
]
