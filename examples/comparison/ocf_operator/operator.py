"""The component of a site, and the declaration of the operator."""

from typing import Final

from examples.comparison.ocf_operator.model import Site
from examples.comparison.ocf_operator.objects import autoscaler, entrance, page, server
from ocf import component
from ocf.component import Participation
from ocf.feature import BooleanGate
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["components", "operator"]


def components(site: Site) -> component.Component:
    """Return the component of a site: its objects in their order, with one condition for all."""
    scaled = BooleanGate(site.spec.max_replicas is not None)
    return (
        component.Builder("site", condition_type="Ready")
        .with_resource(page(site))
        .with_resource(server(site))
        # The server is ready without metrics, too, which an autoscaler needs to be operational.
        .with_resource(autoscaler(site), gated_by=scaled, participation=Participation.AUXILIARY)
        .with_resource(entrance(site))
        .suspend(site.spec.suspended)
        .build()
    )


operator: Final = Operator(name="sites", owner=OwnerType.of(Site), components=components)
