"""Controller that accepts the names of CustomResourceDefinitions, so that kinds are served, and reports approval."""

from dataclasses import dataclass, field

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf_server.api.write_options import WriteOptions
from ocf_server.apiextensions.api_approval import approval_of
from ocf_server.apiextensions.crd_status import accepted_status, has_accepted_names, with_approval
from ocf_server.registry import verbs
from ocf_server.registry.pending_write import run_without_admission
from ocf_server.registry.registry import DEFINITION, Registry
from ocf_server.registry.storage import Place

__all__ = ["NamesAcceptedController"]


@dataclass(slots=True)
class NamesAcceptedController:
    """Accepts the names of CustomResourceDefinitions that do not conflict.

    Args:
        registry: The registry with the definitions.
    """

    registry: Registry
    _seen: int = field(default=0, init=False, repr=False)
    _open: dict[Place, None] = field(default_factory=dict, init=False, repr=False)
    _complete: dict[Place, str] = field(default_factory=dict, init=False, repr=False)
    _reported: dict[Place, str] = field(default_factory=dict, init=False, repr=False)

    def clone(self, registry: Registry) -> "NamesAcceptedController":
        """Return the controller of a clone of the registry."""
        clone = NamesAcceptedController(registry)
        clone._seen, clone._open = self._seen, self._open.copy()
        clone._complete, clone._reported = self._complete.copy(), self._reported.copy()
        return clone

    def run(self) -> None:
        """Update the status of the definitions, if one has changed since the last run."""
        store = self.registry.store
        # The status of one definition may free or take the names of another.
        while self._seen != store.changed_at(DEFINITION):
            changed = store.changed_places(DEFINITION, self._seen, self._complete)
            self._seen = store.changed_at(DEFINITION)
            self._open.update(dict.fromkeys(changed))
            for place, definition in [(place, store.get(DEFINITION, place)) for place in sorted(self._open)]:
                if definition is None:
                    for kept in (self._open, self._complete, self._reported):
                        kept.pop(place, None)
                elif self._complete.get(place) != definition["metadata"]["resourceVersion"]:
                    self._update_status(place, definition)

    def _update_status(self, place: Place, definition: Manifest) -> None:
        # The status of a definition with accepted names follows from itself; others matter only before.
        is_accepted = has_accepted_names(definition)
        definitions = [] if is_accepted else [found for _, found in self.registry.store.objects(DEFINITION)]
        status = accepted_status(definition, definitions, self.registry.timestamp())
        if status is None:
            status = self._approval_status(place, definition)
        if status is not None:
            options = WriteOptions(field_manager="kube-apiserver", subresource=Subresource.STATUS)
            run_without_admission(verbs.update(self.registry, {**definition, "status": status}, options))
        elif is_accepted:
            self._complete[place] = definition["metadata"]["resourceVersion"]
            del self._open[place]

    def _approval_status(self, place: Place, definition: Manifest) -> Manifest | None:
        """Return the status with the condition of approval; None if it has been reported for the annotation already."""
        found = approval_of(definition)
        if found is None or self._reported.get(place) == found.value:
            return None
        status = with_approval(definition, self.registry.timestamp())
        if status is not None:
            # Remembered after a write only, as a real API server does: a condition that a client changes then stays.
            self._reported[place] = found.value
        return status
