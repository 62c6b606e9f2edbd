"""Choice of instance types for new nodes."""

from ocf.nodegroups.selection.cheapest import cheapest_packing, quick_packing, total_requests
from ocf.nodegroups.selection.instance_type import Selection, promised_node, select_instance_type, templates
from ocf.nodegroups.selection.learned import Learned
from ocf.nodegroups.selection.prices import unit_prices
from ocf.nodegroups.selection.survey import Survey, survey

__all__ = [
    "Learned",
    "Selection",
    "Survey",
    "cheapest_packing",
    "promised_node",
    "quick_packing",
    "select_instance_type",
    "survey",
    "templates",
    "total_requests",
    "unit_prices",
]
