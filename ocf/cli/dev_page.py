"""What `ocf dev` adds to the page: whole explanations, and specs of owners that are edited after a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.explain.owner_snapshot import WantedOwners, read_owners
from ocf.cli.explain.served_kinds import ServedKind, served_kinds
from ocf.cli.operator_loader import operator_components
from ocf.cluster.client import ApiServerCluster
from ocf.component.diff import ComponentDiff, diff
from ocf.concepts import Clock, SystemClock
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.yaml_reader import read_yaml
from ocf.objects.yaml_writer import write_yaml
from ocf.ownership import OwnerExplanation, OwnerSnapshot
from ocf.ownership.explanation import explain_owner
from ocf.runtime.page.options import SpecText

if TYPE_CHECKING:
    from ocf.runtime.operator import Operator

__all__ = ["DevEditor"]

_MANAGER: Final = "ocf-dev-page"
_STALE: Final = timedelta(seconds=30)
"""How old an explanation may get of which only durations have changed."""


class DevEditor:
    """Reads and edits owners in the API server of `ocf dev`.

    Attributes:
        operators: The operators that run.
    """

    def __init__(
        self, operators: Sequence[Operator[Any]], cluster: ApiServerCluster, clock: Clock | None = None
    ) -> None:
        self.operators = tuple(operators)
        self._cluster = cluster
        self._clock = clock or SystemClock()
        self._known: dict[ObjectKey, tuple[datetime, OwnerExplanation]] = {}

    async def explain(self, owner: ObjectKey) -> OwnerExplanation:
        """Return the explanation of an owner from all that the API server has, as `ocf explain` does.

        As long as nothing else has changed, it is the one of some seconds ago: it names durations.
        """
        known = self._known.pop(owner, None)
        now = self._clock.now()
        snapshot, key = await self._read(owner, now)
        # What has happened can be seen at the earlier instant as well, where the durations are still the same.
        if known is None or now - known[0] >= _STALE or explain_owner(replace(snapshot, now=known[0]), key) != known[1]:
            known = now, explain_owner(snapshot, key)
        self._known[owner] = known
        return known[1]

    async def _read(self, owner: ObjectKey, now: datetime) -> tuple[OwnerSnapshot, ObjectKey]:
        served: Sequence[ServedKind] = await served_kinds(self._cluster)
        group, kind = owner.group_kind
        wanted = next((one for one in served if (one.group, one.kind) == (group, kind)), None)
        if wanted is None:
            raise ConfigError(f"the API server does not serve {kind} of {owner.api_version}")
        named = WantedOwners(wanted, owner.namespace, owner.name)
        reading = await read_owners(self._cluster, named, served, now)
        return reading.snapshot, reading.owners[0]

    async def spec(self, owner: ObjectKey) -> SpecText:
        """Return the spec of an owner."""
        live = await self._cluster.get(owner)
        return SpecText(write_yaml(live.get("spec") or {}, "the spec"), _generation(live))

    async def planned(self, owner: ObjectKey, edited: SpecText) -> Sequence[ComponentDiff]:
        """Return what the reconcile that follows an edit would write; nothing is written."""
        changed = await self._changed(owner, edited)
        stored = await self._cluster.update(changed, field_manager=_MANAGER, dry_run=True)
        found: list[ComponentDiff] = []
        for operator in self.operators:
            if operator.owner_kind == (owner.api_version, owner.kind):
                components = partial(operator_components, operator, stored)
                found += await diff(
                    components,
                    stored,
                    self._cluster,
                    operator=operator.name,
                    former_managers=operator.former_managers,
                )
        return found

    async def write(self, owner: ObjectKey, edited: SpecText) -> None:
        """Write the spec of an owner."""
        await self._cluster.update(await self._changed(owner, edited), field_manager=_MANAGER)

    async def _changed(self, owner: ObjectKey, edited: SpecText) -> Manifest:
        """Return the live owner with another spec; an error if its spec is not the one that was edited."""
        documents = [one for one in read_yaml(edited.text, "the spec") if one is not None]
        spec = documents[0] if documents else {}
        if len(documents) > 1 or not isinstance(spec, dict):
            raise ConfigError("the spec must be one map of fields, as below `spec:` of a manifest")
        live = await self._cluster.get(owner)
        if _generation(live) != edited.generation:
            raise ConfigError("the spec has changed meanwhile: load the page again, and edit the new one")
        return {**live, "spec": spec}


def _generation(live: Manifest) -> str:
    return str(live["metadata"].get("generation") or "")
