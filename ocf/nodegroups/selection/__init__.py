"""Choice of instance types for new nodes."""

from ocf.nodegroups.selection.cheapest import cheapest_packing
from ocf.nodegroups.selection.instance_type import Selection, select_instance_type, templates

__all__ = ["Selection", "cheapest_packing", "select_instance_type", "templates"]
