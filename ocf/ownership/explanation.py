"""The explanation of an owner: a tree of what belongs to it, and the chain of causes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from ocf.errors import ConfigError, OcfError
from ocf.objects import Manifest, ObjectKey
from ocf.ownership import operator, values
from ocf.ownership.findings import findings, is_replaced, named
from ocf.ownership.ranks import Finding, Rank
from ocf.ownership.references import links
from ocf.ownership.relations import DEEPEST, Relations, component_of, other_writers
from ocf.ownership.runs import has_completed, superseded
from ocf.ownership.snapshot import OwnerSnapshot, SnapshotIndex
from ocf.ownership.status import Report, bad_conditions, has_rules, ready_since, report
from ocf.ownership.tree import CauseStep, Link, OwnerExplanation, State, TreeNode

__all__ = ["explain_owner", "explain_owners"]

# What the parent of these says is said by the parent's own counts.
_BETWEEN: Final = frozenset({("", "Pod"), ("apps", "ReplicaSet"), ("discovery.k8s.io", "EndpointSlice")})
_WITH_PODS: Final = frozenset(
    {
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
    }
)
# A Service selects pods; their ReplicaSet and their Job say the same of it.
_SELECTED: Final = frozenset({("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet")})
# These are ready as soon as they exist, and what they select may not be: their parts do not follow from their state.
_LOOKED_INTO: Final = frozenset({("", "Service"), ("batch", "CronJob")})
_AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
_OBJECTS: Final = re.compile(
    r"\b(components?|deployments?|endpoints?|instances?|members?|nodes?|objects?|pods?|replicas?|resources?|services?|"
    r"stateful ?sets?|workloads?)\b",
    re.IGNORECASE,
)


class _Candidate(NamedTuple):
    """A cause that may be named, in the order in which it is."""

    rank: Rank
    depth: int
    order: int
    finding: Finding
    live: Manifest


def explain_owner(snapshot: OwnerSnapshot, owner: ObjectKey) -> OwnerExplanation:
    """Explain why an owner is ready or not.

    Args:
        snapshot: What was read; it may lack objects, and then says less.
        owner: The owner, in any version of its API.

    Returns:
        The tree and the chain of causes. Texts of others are on one line, and may contain any character: who prints
        them escapes what acts on a terminal.

    Raises:
        ConfigError: If the snapshot does not have the owner.

    Example:
        >>> from datetime import UTC, datetime
        >>> condition = {"type": "Ready", "status": "False", "reason": "NoDatabase", "message": "no database is given"}
        >>> shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"},
        ...         "status": {"conditions": [condition]}}
        >>> snapshot = OwnerSnapshot(objects=[shop], now=datetime(2026, 1, 31, 12, tzinfo=UTC))
        >>> explain_owner(snapshot, ObjectKey.of(shop)).sentence
        'Shop corner is not ready: NoDatabase: no database is given.'
    """
    return next(explain_owners(snapshot, [owner]))


def explain_owners(snapshot: OwnerSnapshot, owners: Iterable[ObjectKey]) -> Iterator[OwnerExplanation]:
    """Explain several owners of one snapshot; see `explain_owner`."""
    index = SnapshotIndex(snapshot)
    for owner in owners:
        live = index.find_key(owner)
        if live is None:
            raise ConfigError(f"{owner.kind} {owner.name} is not in the snapshot")
        yield _Explainer(live, index).explanation()


class _Explainer:
    def __init__(self, owner: Manifest, index: SnapshotIndex) -> None:
        self.owner, self.index = owner, index
        self.key = ObjectKey.of(owner)
        self.relations = Relations(owner, index)
        self._reports: dict[ObjectKey, Report] = {}

    def explanation(self) -> OwnerExplanation:
        candidates = sorted(self._candidates(self.owner, 0), key=lambda one: one[:3])
        root = self._root(candidates)
        cause = tuple(CauseStep(values.flat(each.text), each.key) for each in self._cause(candidates, root))
        remarks = tuple(map(values.flat, self._remarks(cause)))
        unread, has_given_up = tuple(self.index.snapshot.unread), operator.has_given_up(self.owner)
        return OwnerExplanation(root, cause, remarks, unread, has_given_up)

    def _report(self, live: Manifest) -> Report:
        key = ObjectKey.of(live)
        if key not in self._reports:
            self._reports[key] = Report(State.READY) if _is_at_zero(live) else report(live)
        return self._reports[key]

    # The tree.

    def _root(self, candidates: list[_Candidate]) -> TreeNode:
        found = self._report(self.owner)
        children = tuple(self._components())
        state, best = found.state, candidates[0] if candidates else None
        if state is State.UNKNOWN or (state is State.READY and not values.mapping(self.owner, "status")):
            # An owner whose own status does not say it is as ready as what belongs to it.
            is_waiting = best is not None and best.rank < Rank.FOLLOWS
            are_ready = any(one.state is State.READY for one in children)
            state = State.PROGRESSING if is_waiting else State.READY if are_ready else State.UNKNOWN
        is_calm = state in {State.READY, State.UNKNOWN}
        if is_calm and operator.stale(self.owner, self.index) is not None:
            state = State.PROGRESSING
        if state is State.PROGRESSING and best is not None and best.rank < Rank.SUSPENDED:
            state = State.FAILING
        return TreeNode(
            self._name(self.owner),
            state,
            self.key,
            ready_since(self.owner),
            found.text,
            warnings=self._warnings(self.owner),
            children=children,
            links=self._links(self.owner),
        )

    def _components(self) -> Iterator[TreeNode]:
        """Yield a node for each component, and one for each object of none."""
        uid = values.uid(self.owner)
        groups: dict[str, list[Manifest]] = {}
        shown = {node.key: node for node in self._nodes(self.owner)}
        for child in self.relations.children(self.owner):
            groups.setdefault(component_of(child, uid), []).append(child)
        external = self._external()
        for name in external:
            groups.setdefault(name, [])
        for name, members in groups.items():
            nodes = tuple(shown[ObjectKey.of(child)] for child in members)
            if not name:
                yield from nodes
                continue
            condition = self._condition_of(name, len(groups))
            nodes = (*nodes, *(self._external_node(one, condition) for one in external.get(name, ())))
            is_ready = condition is None or condition.get("status") == "True"
            states = (one.state for one in nodes if one.state is not State.SUPERSEDED)
            state = max(states, key=_trouble, default=State.READY)
            state = State.READY if is_ready and condition is not None else max(state, State.PROGRESSING, key=_trouble)
            text = " ".join(self._condition_texts(condition)) if condition is not None else ""
            since = values.time_of(condition or {}, "lastTransitionTime")
            yield TreeNode(values.one_line(f"component {name}"), state, None, since, text, children=nodes)

    def _external(self) -> dict[str, list[str]]:
        """Return the identities of the external resources that the components have recorded in the owner's status.

        As conditions spell them. The records are those of `ocf.component.external`, which may not be imported here.
        """
        found: dict[str, list[str]] = {}
        records = values.mapping(self.owner, "status", "external").values()
        for one in (each for each in records if isinstance(each, dict)):
            component, kind, name, target = (values.text(one, each) for each in ("component", "kind", "name", "target"))
            if component and kind and name and values.text(one, "key"):
                found.setdefault(component, []).append(f"external/{kind}/{name}{f'@{target}' if target else ''}")
        return found

    @staticmethod
    def _external_node(identity: str, condition: Manifest | None) -> TreeNode:
        """Return the node of an external resource, whose state is what the condition of its component says of it."""
        state = State.UNKNOWN
        if condition is not None and condition.get("status") == "True":
            state = State.READY
        elif re.search(rf"{re.escape(identity)}(?![\w@.-])", values.text(condition, "message")):
            state = State.PROGRESSING
        return TreeNode(values.one_line(identity), state)

    def _condition_of(self, component: str, among: int) -> Manifest | None:
        """Return the condition of a component: the one with its name, or the only one."""
        plain = component.replace("-", "").lower()
        listed = [one for one in values.conditions(self.owner) if "/" not in one["type"]]
        own = [one for one in listed if one["type"].lower().removesuffix("ready") == plain]
        return own[0] if own else listed[0] if among == 1 and len(listed) == 1 else None

    @staticmethod
    def _condition_texts(condition: Manifest) -> Iterator[str]:
        yield values.one_line(f"{condition['type']}={values.text(condition, 'status')}")
        yield values.one_line(f"({values.text(condition, 'reason')})")
        if condition.get("status") != "True":
            yield values.one_line(values.text(condition, "message"))

    def _nodes(self, parent: Manifest) -> Iterator[TreeNode]:
        past = self._superseded(parent)
        for child in self.relations.children(parent):
            key, state = ObjectKey.of(child), self._report(child).state
            if state is State.FAILING and (key in past or is_replaced(child, self.index)):
                text = "it has failed, and a newer one has taken its place"
                yield TreeNode(self._name(child), State.SUPERSEDED, key, ready_since(child), text)
            else:
                yield self._node(child)

    def _node(self, live: Manifest) -> TreeNode:
        found, uid = self._report(live), values.uid(self.owner)
        own = findings(live, found, self.index)
        # That nothing is reported is no state of an object with which something is known to be wrong.
        state = State.PROGRESSING if own and found.state in {State.READY, State.UNKNOWN} else found.state
        state = State.FAILING if own and own[0].rank < Rank.SUSPENDED and state is State.PROGRESSING else state
        gone = tuple(self._gone(live)) if state is not State.READY else ()
        return TreeNode(
            self._name(live),
            state,
            ObjectKey.of(live),
            own[0].since if own else ready_since(live),
            own[0].clause("", self.index.now) if own else found.text if state is State.UNKNOWN else "",
            tuple(dict.fromkeys(other_writers(live, uid))) if component_of(live, uid) else (),
            self._warnings(live),
            (*self._nodes(live), *gone),
            self._links(live),
        )

    @cached_property
    def _workloads(self) -> list[Manifest]:
        keys = (key for key in self.relations.parents if key.group_kind in _SELECTED)
        return [live for key in keys if (live := self.index.find_key(key)) is not None]

    def _links(self, live: Manifest) -> tuple[Link, ...]:
        """Return the objects in the tree that an object names."""
        try:
            found = links(live, self.index, self._workloads)
        except (OcfError, AttributeError, TypeError, ValueError):
            # Any client may have written values of other types.
            return ()
        return tuple(one for one in found if one.key == self.key or one.key in self.relations.parents)

    def _gone(self, live: Manifest) -> Iterator[TreeNode]:
        """Yield the objects that one names and that do not exist."""
        namespace = values.text(live, "metadata", "namespace")
        is_claim = values.group_kind(live) == ("", "PersistentVolumeClaim")
        name = values.text(live, "spec", "storageClassName") if is_claim else ""
        if name and self.index.is_missing("storage.k8s.io", "StorageClass", "", name):
            yield TreeNode(
                values.one_line(f"StorageClass {name}"),
                State.GONE,
                ObjectKey("storage.k8s.io/v1", "StorageClass", name),
            )
        for volume in values.members(live, "spec", "volumes"):
            claim = values.text(volume, "persistentVolumeClaim", "claimName")
            if claim and self.index.is_missing("", "PersistentVolumeClaim", namespace, claim):
                key = ObjectKey("v1", "PersistentVolumeClaim", claim, namespace)
                yield TreeNode(values.one_line(f"PersistentVolumeClaim {claim}"), State.GONE, key)

    def _name(self, live: Manifest) -> str:
        key = ObjectKey.of(live)
        elsewhere = key.namespace not in {"", self.key.namespace}
        return values.one_line(f"{key.kind} {f'{key.namespace}/' if elsewhere else ''}{key.name}")

    def _warnings(self, live: Manifest) -> int:
        return sum(one.times for one in self.index.events(live) if one.is_warning)

    # The cause.

    def _candidates(self, live: Manifest, depth: int) -> Iterator[_Candidate]:
        """Yield what may be the cause: what is wrong with an object, and with what belongs to it unless it is ready."""
        found = self._report(live)
        for order, finding in enumerate(findings(live, found, self.index)):
            # That an owner waits is explained by what it waits for, if that is known.
            is_wait = live is self.owner and finding.rank is Rank.WAITING
            if not (live is self.owner and finding.rank is Rank.HELD):
                yield _Candidate(_own_wait(finding) if is_wait else finding.rank, -depth, order, finding, live)
        if found.state is State.READY and (has_completed(live) or (live is not self.owner and _is_settled(live))):
            return
        for child in self._counted(live):
            yield from self._candidates(child, depth + 1)

    def _counted(self, live: Manifest) -> Iterator[Manifest]:
        """Yield the children of an object without the runs whose result does not matter any more."""
        past = self._superseded(live)
        yield from (one for one in self.relations.children(live) if ObjectKey.of(one) not in past)

    def _superseded(self, live: Manifest) -> frozenset[ObjectKey]:
        return superseded(live, self.relations.children(live))

    def _cause(self, candidates: list[_Candidate], root: TreeNode) -> Iterator[CauseStep]:
        subject = named(self.owner, self.key.namespace)
        best = candidates[0] if candidates else None
        decisive = list(self._decisive(subject, root, is_failing=best is not None and best.rank < Rank.SUSPENDED))
        if decisive:
            yield from decisive
            return
        says_ready = root.state is State.READY
        paused = operator.pause(self.owner)
        if paused is not None and not says_ready and (best is None or best.rank >= Rank.SUSPENDED):
            yield CauseStep(f"{subject} is {paused.word} by {paused.by}{self._for(paused)}", self.key)
            yield from [CauseStep("it is not ready", self.key)] if root.state is not State.UNKNOWN else []
        elif best is None or (says_ready and best.rank > Rank.FAILED):
            yield CauseStep(self._all_well(subject, root), self.key)
        else:
            yield from self._chain(best, subject, root.state)

    def _for(self, paused: operator.Pause) -> str:
        return f" for {values.age(paused.since, self.index.now)}" if paused.since is not None else ""

    def _decisive(self, subject: str, root: TreeNode, *, is_failing: bool) -> Iterator[CauseStep]:
        """Yield the chain of causes that keep the operator from doing anything for the owner.

        Args:
            is_failing: Whether an object of the owner fails. Where no status was ever written, that is the cause: an
                operator has made the object, and may be one that reports nothing.
        """
        since = values.time_of(self.owner, "metadata", "deletionTimestamp")
        stopped, stale = operator.stopped_operator(self.owner, self.index), operator.stale(self.owner, self.index)
        namespace = operator.terminating_namespace(self.owner, self.index)
        if since is not None:
            held = list(operator.deletion(self.owner))
            yield from [stopped] if stopped is not None and held else []
            yield from self._remaining(held)
            yield from held[:1]
            yield CauseStep(f"{subject} is being deleted for {values.age(since, self.index.now)}", self.key)
        elif namespace is not None and root.state is not State.READY:
            yield namespace
            yield CauseStep(f"{subject} cannot become ready", self.key)
        elif is_failing and stopped is None and not values.mapping(self.owner, "status"):
            return
        elif stale is not None and operator.pause(self.owner) is None:
            yield from [stopped] if stopped is not None else []
            yield CauseStep(f"{subject} is not up to date: {stale.text}", self.key)

    def _remaining(self, held: list[CauseStep]) -> Iterator[CauseStep]:
        """Yield the dependent that a foreground deletion waits for: one with a finalizer of its own."""
        if not held or "garbage collector" not in held[0].text:
            return
        for child in self.relations.children(self.owner):
            for finding in findings(child, self._report(child), self.index):
                if finding.rank is Rank.HELD:
                    yield CauseStep(
                        finding.clause(named(child, self.key.namespace), self.index.now), ObjectKey.of(child)
                    )
                    return

    def _chain(self, best: _Candidate, subject: str, state: State) -> Iterator[CauseStep]:
        name = subject if best.live is self.owner else named(best.live, self.key.namespace)
        yield CauseStep(self._with_unread(best, best.finding.clause(name, self.index.now)), ObjectKey.of(best.live))
        if best.live is self.owner:
            return
        for parent in self.relations.path(best.live):
            if parent is self.owner or values.group_kind(parent) in _BETWEEN:
                continue
            effect = findings(parent, self._report(parent), self.index)
            text = effect[-1].what if effect else "is not complete"
            yield CauseStep(f"{named(parent, self.key.namespace)} {text}", ObjectKey.of(parent))
        effects = {
            State.READY: "has a problem, although it reports that it is ready",
            State.UNKNOWN: "has a problem; it does not report whether it is ready",
        }
        # An owner whose status does not say it is shown as its objects are.
        own = State.UNKNOWN if self._report(self.owner).state is State.UNKNOWN else state
        yield CauseStep(f"{subject} {effects.get(own, 'is not ready')}", self.key)

    def _with_unread(self, best: _Candidate, clause: str) -> str:
        """Add that the pods of a workload could not be read, where they would have said more."""
        pods = self.index.unread("pods")
        if pods is None or values.group_kind(best.live) not in _WITH_PODS or best.rank < Rank.FAILED:
            return clause
        return f"{clause}, and why is not known, because {pods}"

    def _all_well(self, subject: str, root: TreeNode) -> str:
        since = f" for {values.age(root.since, self.index.now)}" if root.since is not None else ""
        own, size = self._report(self.owner), values.plural_count(root.size, "object")
        if root.state is State.UNKNOWN and own.state is State.READY and not root.children:
            return f"{subject} has no status and no objects{since}: no operator has reported anything"
        if root.state is State.UNKNOWN:
            why = own.text or "it has no status, and those of its objects do not say whether they are ready"
            return f"{subject} is in an unknown state{since}: {why}"
        return f"{subject} is ready{since}, with {size}{f'; {own.text}' if own.state is State.UNKNOWN else ''}"

    def _remarks(self, cause: tuple[CauseStep, ...]) -> Iterator[str]:
        paused = operator.pause(self.owner)
        if paused is not None and not any(f" is {paused.word} by " in one.text for one in cause):
            yield f"It is {paused.word} by {paused.by}{self._for(paused)}."
        if self.relations.is_cut:
            yield f"Objects that are more than {DEEPEST} owner references below it were not looked at."
        stopped = operator.stopped_operator(self.owner, self.index)
        for fact in (stopped, operator.terminating_namespace(self.owner, self.index)):
            if fact is not None and not any(fact.key == one.key for one in cause):
                text = values.flat(fact.text).rstrip(".")
                yield f"{text[:1].upper()}{text[1:]}."


def _trouble(state: State) -> int:
    return state.trouble


def _is_at_zero(live: Manifest) -> bool:
    """Return whether an autoscaler does not scale because its target has been scaled to zero, which is intended."""
    found = values.condition(live, "ScalingActive")
    return values.group_kind(live) == _AUTOSCALER and values.text(found, "reason") == "ScalingDisabled"


def _own_wait(finding: Finding) -> Rank:
    """Return the rank of what an owner waits for: if these are its objects, what they wait for says more."""
    return Rank.FOLLOWS if not finding.why or _OBJECTS.search(finding.why) else Rank.OWN


def _is_settled(live: Manifest) -> bool:
    """Return whether an object that is ready needs no look into its parts."""
    return values.group_kind(live) not in _LOOKED_INTO and (has_rules(live) or _says_ready(live))


def _says_ready(live: Manifest) -> bool:
    """Return whether an object of another kind reports that it is ready, so that its parts need no look."""
    listed: Iterable[Manifest] = values.conditions(live)
    return any(one.get("status") == "True" for one in listed) and next(bad_conditions(live), None) is None
