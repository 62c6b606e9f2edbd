"""Naming: the controllers of a real server that accept the names of a definition, and so begin to serve its kind."""

from dataclasses import dataclass, field

from ocf.cluster.protocol import Subresource
from ocf.embedded.api.write_options import WriteOptions
from ocf.embedded.apiextensions.crd_status import accepted_status
from ocf.embedded.registry import verbs
from ocf.embedded.registry.pending_write import run_without_admission
from ocf.embedded.registry.registry import DEFINITION, Registry
from ocf.embedded.registry.storage import Place
from ocf.objects import Manifest
from ocf.objects.conditions import is_condition_true

__all__ = ["NamesAcceptedController"]


@dataclass(slots=True)
class NamesAcceptedController:
    """Accepts the names of definitions.

    Args:
        core: The server.
    """

    core: Registry
    _seen: int = field(default=0, init=False, repr=False)

    def run(self) -> None:
        """Write the status that the definitions shall have now, if one has changed since the last look."""
        store = self.core.store
        while self._seen != store.changed_at(DEFINITION):
            self._seen = store.changed_at(DEFINITION)
            for place, definition in store.objects(DEFINITION):
                if "deletionTimestamp" not in definition["metadata"]:
                    self._judge(place, definition)

    def _judge(self, place: Place, definition: Manifest) -> None:
        # Whoever came first keeps the name.
        others = [
            other
            for elsewhere, other in self.core.store.objects(DEFINITION)
            if elsewhere != place and _is_accepted(other) and not _is_accepted(definition)
        ]
        status = accepted_status(definition, others, self.core.timestamp())
        if status is not None:
            options = WriteOptions(field_manager="kube-apiserver", subresource=Subresource.STATUS)
            run_without_admission(verbs.update(self.core, {**definition, "status": status}, options))


def _is_accepted(definition: Manifest) -> bool:
    return is_condition_true((definition.get("status") or {}).get("conditions"), "NamesAccepted")
