"""Manifests and models: parsing, serialization, identity, quantities, label selectors, field paths.

What not every program needs is imported on first use, so that a command that reads one file starts without it.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.objects.documents import dump_document, load_document
from ocf.objects.manifest import Manifest, ObjectKey, copy_json
from ocf.objects.quantity import Quantity

if TYPE_CHECKING:
    from ocf.objects.models import read_live, write_model
    from ocf.objects.selectors import selects
    from ocf.objects.timestamps import format_time, parse_time

__all__ = [
    "Manifest",
    "ObjectKey",
    "Quantity",
    "copy_json",
    "dump_document",
    "format_time",
    "load_document",
    "parse_time",
    "read_live",
    "selects",
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
            "selectors": ("FieldTerm", "LabelSelector", "parse_field_selector", "selector_identity", "selects"),
            "timestamps": ("format_time", "parse_time"),
        }.items()
        for name in names
    },
)
