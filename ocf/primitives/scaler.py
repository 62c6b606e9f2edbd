"""Resources of kinds that set the replica count of another object, which `spec.scaleTargetRef` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ocf.concepts import ScaleTarget
from ocf.errors import MutationError, NotReadyError
from ocf.objects import ObjectKey
from ocf.primitives.kind import ModelT, MutatorT
from ocf.primitives.resource import IntegrationResource

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["ScalerResource"]


class ScalerResource(IntegrationResource[ModelT, MutatorT]):
    """An autoscaler as a resource of a component; only it sets the replica count of its target."""

    default_target: ClassVar[tuple[str, str]] = ("", "")
    """API version and kind of a target whose reference does not name them."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget:
        """Return the scale target of the rendered object.

        While a mutation waits for data that is not extracted yet, this is the target of the baseline.

        Args:
            rendered: The object as rendered in this reconcile; None renders it.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        if rendered is None:
            try:
                rendered = self.render()
            except MutationError as error:
                if not isinstance(error.__cause__, NotReadyError):
                    raise
                rendered = self._definition.baseline
        reference = rendered["spec"]["scaleTargetRef"]
        api_version, kind = self.default_target
        key = ObjectKey(
            reference.get("apiVersion") or api_version,
            reference.get("kind") or kind,
            reference["name"],
            self.key.namespace,
        )
        return ScaleTarget(key)
