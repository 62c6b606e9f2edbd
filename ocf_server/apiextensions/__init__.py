"""CustomResourceDefinitions: custom kinds, their schemas, and pruning, defaulting and validation by a schema."""

from ocf_server.apiextensions.crd_status import is_terminating
from ocf_server.apiextensions.crd_validation import definition_problems, format_warnings
from ocf_server.apiextensions.defaulting import set_schema_defaults
from ocf_server.apiextensions.embedded_objects import decoded_metadata
from ocf_server.apiextensions.object_validation import SchemaViolation, schema_faults
from ocf_server.apiextensions.pruning import prune, undeclared
from ocf_server.apiextensions.ratcheting import custom_update_problems
from ocf_server.apiextensions.scale_validation import count_problems
from ocf_server.apiextensions.served_kinds import Established, custom_resource, defined_kind, definition_of, served

__all__ = [
    "Established",
    "SchemaViolation",
    "count_problems",
    "custom_resource",
    "custom_update_problems",
    "decoded_metadata",
    "defined_kind",
    "definition_of",
    "definition_problems",
    "format_warnings",
    "is_terminating",
    "prune",
    "schema_faults",
    "served",
    "set_schema_defaults",
    "undeclared",
]
