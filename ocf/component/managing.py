"""One managed resource: bring its object to the desired state, with as few writes as possible."""

from __future__ import annotations

import marshal
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ocf.component.leaving import hand_over, remembering
from ocf.component.options import Conflicts
from ocf.component.ownership import field_manager, sendable
from ocf.component.quiet import Difference, differences
from ocf.concepts import Operation
from ocf.errors import ConflictError, MutationError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, format_path, is_quantity_field

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.component.entries import Entry

__all__ = ["Applied", "ManagedObject"]

# A hand-over is bound to the version that was read; the autoscaler may be faster than we are this often.
_HAND_OVER_TRIES: Final = 5
_IGNORED_METADATA: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_IGNORED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class Applied:
    """What bringing an object to its desired state did.

    Args:
        live: The object as it is now.
        operation: What changed.
        writes: How many write requests were sent.
        reasons: Why.
    """

    live: Manifest
    operation: Operation
    writes: int = 0
    reasons: tuple[str, ...] = ()


class ManagedObject:
    """The object of one resource, in one pass.

    Args:
        entry: What it should be, and how it is treated.
        component: Name of the component, a part of the field manager's name.
        context: The pass.
        leaves: Fields of it that somebody else sets.
        rendered: The object as it was rendered before in this pass; None where it was not.
    """

    def __init__(
        self,
        entry: Entry,
        component: str,
        context: ReconcileContext,
        leaves: Collection[tuple[str, ...]] = (),
        rendered: Manifest | None = None,
    ) -> None:
        self._rendered = rendered
        self._resource = entry.resource
        self._options = entry.options
        self._component = component
        self._context = context
        self._cluster = context.cluster
        self._leaves = leaves
        owner = context.owned_by
        self._manager = field_manager(owner.key.kind, component, owner.uid)
        self._left_manager = field_manager(owner.key.kind, component, owner.uid, "left")

    async def get(self) -> Manifest | None:
        """Read the live object; None while there is none."""
        try:
            return await self._cluster.get(self._resource.key)
        except NotFoundError:
            return None
        except OcfError as error:
            raise self._failed("check existence of", error) from error

    async def apply(self, live: Manifest | None, *, suspended: bool = False) -> Applied:
        """Bring the object to the desired state, unless it is there already.

        Args:
            live: The live object as just read; None while there is none.
            suspended: Whether the suspended form is wanted.

        Raises:
            ReconcileError: Naming the resource and what was tried.
        """
        wanted = self._wanted(suspended=suspended)
        try:
            if suspended:
                return await self._settle(remembering(wanted, live, self._manager, self._leaves), live)
            live, handed = await self._let_go(live)
            applied = await self._settle(wanted, live)
        except OcfError as error:
            raise self._failed("apply", error) from error
        if not handed:
            return applied
        return Applied(applied.live, Operation.UPDATED, applied.writes + 1, (*handed, *applied.reasons))

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        """Name the resource and what was tried, once."""
        identity = self._resource.identity
        problem = error.problem if isinstance(error, MutationError | ReconcileError) else str(error)
        return ReconcileError(self._component, f"failed to {what} resource {identity}: {problem}", resource=identity)

    def _wanted(self, *, suspended: bool) -> Manifest:
        try:
            rendered = self._rendered
            if rendered is None or suspended or self._leaves:
                rendered = self._resource.render(suspended=suspended, leaves=self._leaves)
            owner = self._context.owned_by
            wanted = sendable(rendered)
            return owner.disowned(wanted) if self._options.unowned else owner.owned(wanted)
        except OcfError as error:
            raise self._failed("mutate", error) from error

    async def _let_go(self, live: Manifest | None) -> tuple[Manifest | None, tuple[str, ...]]:
        """Hand over the fields left to others, where we still own them."""
        for tries_left in reversed(range(_HAND_OVER_TRIES)):
            plan = hand_over(live, self._manager, self._leaves) if live is not None else None
            if plan is None:
                break
            try:
                live = await self._cluster.apply(plan.manifest, field_manager=self._left_manager, force=plan.force)
            except ConflictError:
                if not tries_left:
                    raise
                live = await self.get()
            else:
                return live, tuple(f"{path}: handed over" for path in plan.paths)
        return live, ()

    async def _settle(self, wanted: Manifest, live: Manifest | None) -> Applied:
        if live is None:
            reasons: tuple[str, ...] = ("absent",)
        else:
            reasons = self._reasons(wanted, live)
            if not reasons:
                return Applied(live, Operation.NONE)
        answer = await self._send(wanted)
        self._remember_rewrites(wanted, answer)
        return Applied(answer, _classified(live, answer), 1, reasons)

    def _reasons(self, wanted: Manifest, live: Manifest) -> tuple[str, ...]:
        """Say why the object has to be written; empty if it has not."""
        memory, uid, version = self._cluster.memory, _uid(live), live["metadata"].get("resourceVersion")
        digest = _digest(wanted) if uid and version else b""
        if digest and memory.is_settled(uid, self._manager, version, digest):
            return ()
        reasons = tuple(_shown(difference) for difference in self._differences(wanted, live))
        if digest and not reasons:
            memory.settle(uid, self._manager, version, digest)
        return reasons

    async def _send(self, wanted: Manifest) -> Manifest:
        force = self._options.on_conflict is Conflicts.TAKE
        try:
            return await self._cluster.apply(wanted, field_manager=self._manager, force=force)
        except ConflictError as error:
            if force or not self._is_about_leaves(error):
                raise
        # Only a suspension sends a field that is left to others, and takes it on purpose.
        return await self._cluster.apply(wanted, field_manager=self._manager, force=True)

    def _is_about_leaves(self, error: ConflictError) -> bool:
        leaves = {f".{format_path(path)}" for path in self._leaves}
        return bool(error.causes) and all(cause.field in leaves for cause in error.causes)

    def _differences(self, wanted: Manifest, live: Manifest, *, fresh: bool = False) -> list[Difference]:
        key = self._resource.key
        is_quantity = partial(is_quantity_field, key.api_version, key.kind)
        known = {} if fresh else self._cluster.memory.rewrites(_uid(live), self._manager)
        return differences(wanted, live, manager=self._manager, rewrites=known, is_quantity=is_quantity)

    def _remember_rewrites(self, wanted: Manifest, answer: Manifest) -> None:
        """Note which values came back different from how they were sent."""
        found = self._differences(wanted, answer, fresh=True)
        rewrites = {difference.path: (difference.sent, difference.stored) for difference in found}
        self._cluster.memory.remember(_uid(answer), self._manager, rewrites)


def _uid(live: Manifest) -> str:
    return str(live["metadata"].get("uid", ""))


def _digest(wanted: Manifest) -> bytes:
    """Return a digest of what would be applied; empty where a resource of the user's own renders no plain JSON."""
    try:
        # Version 2 knows no references, so equal manifests of one order give equal bytes.
        return blake2b(marshal.dumps(wanted, 2), digest_size=16).digest()
    except ValueError:
        return b""


def _shown(difference: Difference) -> str:
    return f"{difference.path}: {difference.why}" if difference.path else difference.why


def _classified(before: Manifest | None, after: Manifest) -> Operation:
    """Name what an apply did; what the server counts and what controllers report does not count as a change."""
    if before is None:
        return Operation.CREATED
    return Operation.NONE if _content(before) == _content(after) else Operation.UPDATED


def _content(manifest: Manifest) -> tuple[Any, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _IGNORED_METADATA}
    return metadata, {key: value for key, value in manifest.items() if key not in _IGNORED}
