"""Admission webhooks from plain functions on the model of a kind."""

from ocf.objects.field_errors import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.runtime.admission.certificate_source import Certificates, Offer
from ocf.runtime.admission.file_certificates import FileCertificates
from ocf.runtime.admission.key_pairs import Pair
from ocf.runtime.admission.review import review
from ocf.runtime.admission.rotation import Renewal
from ocf.runtime.admission.secret_certificates import SecretCertificates
from ocf.runtime.admission.server import Server, serving
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations
from ocf.runtime.admission.webhooks import Defaulter, Operation, Step, Validator, Warn, Webhook, Webhooks

__all__ = [
    "Certificates",
    "Defaulter",
    "ErrorType",
    "FieldError",
    "FileCertificates",
    "Offer",
    "Operation",
    "Pair",
    "Renewal",
    "SecretCertificates",
    "Server",
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
    "serving",
]
