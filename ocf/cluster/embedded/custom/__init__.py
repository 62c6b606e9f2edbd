"""CustomResourceDefinitions: the kinds of users, their schemas, and what a schema does to an object."""

from ocf.cluster.embedded.custom.checking import Fault, custom_update_problems, schema_faults
from ocf.cluster.embedded.custom.counts import count_problems
from ocf.cluster.embedded.custom.defaults import set_schema_defaults
from ocf.cluster.embedded.custom.definitions import definition_problems
from ocf.cluster.embedded.custom.kinds import custom_resource, definition_of, established, served
from ocf.cluster.embedded.custom.pruning import prune, undeclared

__all__ = [
    "Fault",
    "count_problems",
    "custom_resource",
    "custom_update_problems",
    "definition_of",
    "definition_problems",
    "established",
    "prune",
    "schema_faults",
    "served",
    "set_schema_defaults",
    "undeclared",
]
