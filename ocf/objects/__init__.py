"""Manifests and models: parsing, serialization, identity, quantities, label selectors, field paths.

What not every program needs is imported on first use, so that a command that reads one file starts without it.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.objects.documents import dump_document, load_document, load_documents
from ocf.objects.manifest import PREFIX, Manifest, ObjectKey, copy_json, split_api_version
from ocf.objects.paths import FieldPath, format_path, get_field, parse_path, with_field, without_field
from ocf.objects.quantity import Quantity

if TYPE_CHECKING:
    from ocf.objects.list_alignment import aligned, entry_labels
    from ocf.objects.model_errors import describe_invalid
    from ocf.objects.model_fields import client_model
    from ocf.objects.models import copy_model, read_base, read_live, write_model
    from ocf.objects.redaction import redacted
    from ocf.objects.selectors import FieldTerm, LabelSelector, parse_field_selector, selector_identity
    from ocf.objects.timestamps import format_time, parse_time

__all__ = [
    "PREFIX",
    "FieldPath",
    "FieldTerm",
    "LabelSelector",
    "Manifest",
    "ObjectKey",
    "Quantity",
    "aligned",
    "client_model",
    "copy_json",
    "copy_model",
    "describe_invalid",
    "dump_document",
    "entry_labels",
    "format_path",
    "format_time",
    "get_field",
    "load_document",
    "load_documents",
    "parse_field_selector",
    "parse_path",
    "parse_time",
    "read_base",
    "read_live",
    "redacted",
    "selector_identity",
    "split_api_version",
    "with_field",
    "without_field",
    "write_model",
]

__getattr__ = lazy_exports(
    __name__,
    {
        name: module
        for module, names in {
            "list_alignment": ("aligned", "entry_labels"),
            "model_errors": ("describe_invalid",),
            "model_fields": ("client_model",),
            "models": ("copy_model", "read_base", "read_live", "write_model"),
            "redaction": ("redacted",),
            "selectors": ("FieldTerm", "LabelSelector", "parse_field_selector", "selector_identity"),
            "timestamps": ("format_time", "parse_time"),
        }.items()
        for name in names
    },
)
