"""Choice of instance types for new nodes."""

from ocf.nodegroups.selection.cheapest import cheapest_packing, quick_packing, total_requests
from ocf.nodegroups.selection.instance_type import Selection, select_instance_type, templates
from ocf.nodegroups.selection.prices import unit_prices

__all__ = [
    "Selection",
    "cheapest_packing",
    "quick_packing",
    "select_instance_type",
    "templates",
    "total_requests",
    "unit_prices",
]
