"""Choice of instance types for new nodes."""

from ocf.nodegroups.selection.cheapest import (
    cheap_packings,
    cheapest_packing,
    count_topologies,
    quick_packing,
    quick_packings,
    total_requests,
)
from ocf.nodegroups.selection.instance_type import Selection, promised_node, select_instance_type, templates
from ocf.nodegroups.selection.learned import Learned
from ocf.nodegroups.selection.prices import unit_prices
from ocf.nodegroups.selection.survey import Survey, survey

__all__ = [
    "Learned",
    "Selection",
    "Survey",
    "cheap_packings",
    "cheapest_packing",
    "count_topologies",
    "promised_node",
    "quick_packing",
    "quick_packings",
    "select_instance_type",
    "survey",
    "templates",
    "total_requests",
    "unit_prices",
]
