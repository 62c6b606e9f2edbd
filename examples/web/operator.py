"""Declaration of the operator: `ocf run examples.web` runs it in a cluster, `ocf dev examples.web` on your machine.

`components` is a plain function of the owner, without a cluster: tests, golden files and `ocf preview` call it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.web.application import application
from examples.web.database import database
from examples.web.shop import Shop
from ocf.runtime.operator import Operator, OwnerType

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext
    from ocf.runtime.operator import ReconcileOutcome

__all__ = ["CONDITION", "components", "operator", "report"]

CONDITION: Final = "Ready"


def components(shop: Shop) -> tuple[Component, ...]:
    """Return the components of a shop; each one follows the component that it depends on."""
    return database(shop), application(shop)


def report(context: ReconcileContext, shop: Shop, _outcome: ReconcileOutcome) -> None:
    """Set one condition for all components, which `kubectl get` shows."""
    context.aggregate(CONDITION, *components(shop))


operator: Final = Operator(
    name="web-shops",
    owner=OwnerType.of(Shop),
    components=components,
    report=report,
    published_conditions=[CONDITION],
)
