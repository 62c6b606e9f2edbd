"""Admission webhooks from plain functions on the model of a kind."""

from ocf.objects.field_errors import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.runtime.admission.declaring import Defaulter, Operation, Step, Validator, Warn, Webhook, Webhooks
from ocf.runtime.admission.files import FileCertificates
from ocf.runtime.admission.manifests import Service, Url, configurations
from ocf.runtime.admission.offers import Certificates, Offer
from ocf.runtime.admission.pairs import Pair
from ocf.runtime.admission.reviewing import review
from ocf.runtime.admission.rotating import Renewal
from ocf.runtime.admission.secret import SecretCertificates
from ocf.runtime.admission.server import Server, serving

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
