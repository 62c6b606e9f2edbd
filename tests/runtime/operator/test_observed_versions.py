"""What a reconcile observes, recorded from its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import (
    Cluster,
    DeleteOptions,
    Index,
    InterceptingCluster,
    ListOptions,
    PatchOptions,
    PatchType,
    Propagation,
    Request,
    Subresource,
)
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.serialization import pack
from ocf.errors import ApiError, ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator.observed_versions import ListScope, ObservationIndex, ObservedVersions
from ocf.runtime.operator.recording_reads import RecordingReads
from ocf_server import EmbeddedCluster

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")
WEB: Final = ObjectKey("apps/v1", "Deployment", "web", "town")
LABELS: Final = {"app": "web"}
DEPLOYMENT: Final[Manifest] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "town"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    },
}
OWNED: Final[Manifest] = {
    **DEPLOYMENT,
    "metadata": {
        **DEPLOYMENT["metadata"],
        "ownerReferences": [
            {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": "1", "controller": True}
        ],
    },
}

READS: Final[dict[str, dict[str, Any]]] = {
    "found": {"key": WEB},
    "absent": {"key": WEB._replace(name="shop")},
    "scale": {"key": WEB, "subresource": Subresource.SCALE},
    "absent scale": {"key": WEB._replace(name="shop"), "subresource": Subresource.SCALE},
    "unknown kind": {"key": WEB._replace(kind="Shop")},
}
APPLIES: Final[dict[str, dict[str, Any]]] = {
    "changed": {"manifest": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}},
    "unchanged": {"manifest": DEPLOYMENT},
    "owned": {"manifest": OWNED},
    "dry run": {"manifest": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}, "dry_run": True},
    "status": {
        "manifest": {**DEPLOYMENT, "spec": {}, "status": {"replicas": 1}},
        "subresource": Subresource.STATUS,
        "force": True,
    },
    "scale": {"manifest": {**DEPLOYMENT, "spec": {"replicas": 2}}, "subresource": Subresource.SCALE},
    "without a name": {"manifest": {**DEPLOYMENT, "metadata": {"namespace": "town"}}},
    "without metadata": {"manifest": {"apiVersion": "apps/v1", "kind": "Deployment"}},
    "empty": {"manifest": {}},
}


class Conflicting(InterceptingCluster):
    """A cluster on which every request conflicts."""

    async def intercept(self, request: Request, send: object) -> Any:
        del send
        raise ConflictError(f"conflict of {request.verb}", code=409, reason="Conflict")


def recorded(verb: str, arguments: dict[str, Any], *, whole: bool, conflicting: bool) -> tuple[object, ...]:
    """Send a request, and return what was recorded of it.

    Args:
        verb: Name of the method.
        arguments: Its arguments.
        whole: Whether the request is described in whole, and goes through `intercept`.
        conflicting: Whether the cluster rejects it.
    """

    async def send() -> tuple[object, ...]:
        cluster: Cluster = EmbeddedCluster(namespaces=("town",))
        await cluster.apply(DEPLOYMENT, field_manager="me")
        observed, followed = ObservedVersions(OWNER), list[tuple[str, str, str]]()
        reads = RecordingReads(
            Conflicting(cluster) if conflicting else cluster,
            observed,
            lambda *kind: followed.append(kind),
            lambda *_: None,
        )
        call = getattr(InterceptingCluster if whole else RecordingReads, verb)
        try:
            live = await call(reads, **arguments)
        except ApiError as error:
            answer: object = (type(error), str(error))
        else:
            answer = ObjectKey.of(live)
        state = (observed.versions, observed.requested, observed.superseded, observed.uncontrolled)
        return (answer, followed, *state)

    return asyncio.run(send())


@pytest.mark.parametrize("conflicting", [False, True])
@pytest.mark.parametrize("case", READS)
def test_a_read_is_recorded_as_any_other_request(case: str, conflicting: bool) -> None:
    direct = recorded("get", READS[case], whole=False, conflicting=conflicting)
    assert direct == recorded("get", READS[case], whole=True, conflicting=conflicting)


@pytest.mark.parametrize("conflicting", [False, True])
@pytest.mark.parametrize("case", APPLIES)
def test_an_apply_is_recorded_as_any_other_request(case: str, conflicting: bool) -> None:
    arguments = {"field_manager": "me", **APPLIES[case]}
    direct = recorded("apply", arguments, whole=False, conflicting=conflicting)
    assert direct == recorded("apply", arguments, whole=True, conflicting=conflicting)


Server: TypeAlias = tuple[Cluster, str]


@pytest.fixture(params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Server:
    """Return a cluster and a namespace; requested outside of the event loop, which the client needs."""
    if request.param == "embedded":
        return EmbeddedCluster(namespaces=("town",)), "town"
    return request.getfixturevalue("envtest_cluster"), request.getfixturevalue("envtest").namespace


class Counting(InterceptingCluster):
    """A cluster that counts writes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.writes = 0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.writes += not request.verb.is_read
        return await send()


def placed(namespace: str, **changed: Any) -> Manifest:
    return {**DEPLOYMENT, "metadata": {"name": "web", "namespace": namespace}, **changed}


def options(patch_type: PatchType, subresource: Subresource | None = None) -> PatchOptions:
    return PatchOptions(patch_type=patch_type, field_manager="me", subresource=subresource)


Act: TypeAlias = Callable[[Cluster, ObjectKey], Awaitable[object]]
PAUSED: Final[Manifest] = {"spec": {"paused": True}}


async def _update(cluster: Cluster, key: ObjectKey) -> None:
    manifest = placed(key.namespace, spec={**DEPLOYMENT["spec"], "paused": True})
    await cluster.update(manifest, field_manager="me")


WRITES: Final[dict[str, Act]] = {
    "apply": lambda cluster, key: cluster.apply(
        placed(key.namespace, spec={**DEPLOYMENT["spec"], "paused": True}), field_manager="me", force=True
    ),
    "update": _update,
    "merge patch": lambda cluster, key: cluster.patch(key, PAUSED, options(PatchType.MERGE)),
    "strategic merge patch": lambda cluster, key: cluster.patch(key, PAUSED, options(PatchType.STRATEGIC_MERGE)),
    "JSON patch": lambda cluster, key: cluster.patch(
        key, [{"op": "add", "path": "/spec/paused", "value": True}], options(PatchType.JSON)
    ),
    "patch of the status": lambda cluster, key: cluster.patch(
        key, {"status": {"replicas": 2}}, options(PatchType.MERGE, Subresource.STATUS)
    ),
    "apply that changes nothing": lambda cluster, key: cluster.apply(placed(key.namespace), field_manager="me"),
}


async def _fail(cluster: Cluster, key: ObjectKey) -> None:
    failed = {"type": "Failed", "status": "True", "reason": "Broken", "message": ""}
    patch = {"status": {"conditions": [failed]}}
    await cluster.patch(
        key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=Subresource.STATUS)
    )


async def _replace(cluster: Cluster, key: ObjectKey) -> None:
    await cluster.delete(key, DeleteOptions(propagation=Propagation.BACKGROUND))
    await cluster.create(placed(key.namespace), field_manager="other")


FOREIGN: Final[dict[str, Act]] = {
    "status": _fail,
    "annotation": lambda cluster, key: cluster.patch(
        key,
        {"metadata": {"annotations": {"a": "b"}}},
        PatchOptions(patch_type=PatchType.MERGE, field_manager="other"),
    ),
    "replaced": _replace,
}


@pytest.mark.promise("no-lost-change", runs="every kind of write after another writer, on a real API server, too")
@pytest.mark.parametrize("change", FOREIGN)
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_does_not_hide_what_another_writer_has_changed_before(
    server: Server, write: str, change: str
) -> None:
    """https://github.com/operator-framework/java-operator-sdk/issues/3398."""
    cluster, namespace = server
    key = WEB._replace(namespace=namespace)
    await cluster.apply(placed(namespace), field_manager="me")
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    before = await reads.get(key)
    await FOREIGN[change](cluster, key)
    await WRITES[write](reads, key)
    live = await cluster.get(key)
    assert not observed.has_seen(key, live["metadata"]["resourceVersion"])
    assert (live["metadata"]["uid"] != before["metadata"]["uid"]) is (change == "replaced")
    assert bool((live.get("status") or {}).get("conditions")) is (change == "status")


@pytest.mark.promise("no-lost-change", runs="every kind of write without another writer, on a real API server, too")
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_alone_is_observed_and_takes_one_request(server: Server, write: str) -> None:
    cluster, namespace = Counting(server[0]), server[1]
    key = WEB._replace(namespace=namespace)
    await cluster.apply(placed(namespace), field_manager="me")
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await reads.get(key)
    for _ in range(2):
        cluster.writes = 0
        await WRITES[write](reads, key)
        assert cluster.writes == 1
        assert observed.has_seen(key, (await cluster.get(key))["metadata"]["resourceVersion"])


@pytest.mark.parametrize("made", [True, False], ids=["by another writer", "by the reconcile"])
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "read by name"])
async def test_an_object_that_was_absent_is_observed_if_the_reconcile_has_made_it(
    server: Server, *, made: bool, listed: bool
) -> None:
    cluster, namespace = server
    key = WEB._replace(namespace=namespace)
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    if listed:
        await reads.list("apps/v1", "Deployment", ListOptions(namespace=namespace))
    else:
        with pytest.raises(NotFoundError):
            await reads.get(key)
    if made:
        await cluster.create(placed(namespace), field_manager="other")
    live = await reads.apply(placed(namespace), field_manager="me", force=True)
    assert observed.has_seen(key, live["metadata"]["resourceVersion"]) is not made
    observed.end()
    assert observed.has_seen(key, live["metadata"]["resourceVersion"]) is not made


@pytest.mark.parametrize(
    ("patch", "subresource", "seen"),
    [
        pytest.param({"spec": {"paused": True}}, None, False, id="spec"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, None, False, id="label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, None, False, id="annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/a"]}}, None, True, id="finalizer"),
        pytest.param({"status": {"replicas": 3}}, Subresource.STATUS, True, id="status"),
        pytest.param({"spec": {"paused": None}}, None, True, id="nothing"),
    ],
)
async def test_a_write_of_the_owner_is_observed_unless_it_changes_what_was_read(
    server: Server, patch: Manifest, subresource: Subresource | None, *, seen: bool
) -> None:
    cluster, namespace = server
    owner = WEB._replace(namespace=namespace)
    await cluster.apply(placed(namespace), field_manager="me")
    observed = ObservedVersions(owner)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await reads.get(owner)
    live = await reads.patch(owner, patch, options(PatchType.MERGE, subresource))
    assert observed.has_seen(owner, live["metadata"]["resourceVersion"]) is seen
    if not seen:
        return
    live = await reads.patch(owner, {"metadata": {"labels": {"c": "d"}}}, options(PatchType.MERGE))
    assert not observed.has_seen(owner, live["metadata"]["resourceVersion"])


async def test_a_generated_name_is_observed_as_it_was_completed(server: Server) -> None:
    cluster, namespace = server
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    metadata = {"generateName": "made-", "namespace": namespace}
    made = await reads.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="me")
    assert observed.has_seen(ObjectKey.of(made), made["metadata"]["resourceVersion"])


async def test_a_write_that_replaces_a_deleted_object_is_not_observed(server: Server) -> None:
    """An apply creates the object, although it names the version of the deleted one."""
    cluster, namespace = server
    key = WEB._replace(namespace=namespace)
    await cluster.apply(placed(namespace), field_manager="me")
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await reads.get(key)
    await cluster.delete(key, DeleteOptions(propagation=Propagation.BACKGROUND))
    made = await reads.apply(placed(namespace), field_manager="me")
    assert not observed.has_seen(key, made["metadata"]["resourceVersion"])


async def test_what_the_reconcile_deletes_and_makes_anew_is_observed(server: Server) -> None:
    cluster, namespace = server
    key = WEB._replace(namespace=namespace)
    await cluster.apply(placed(namespace), field_manager="me")
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await reads.get(key)
    await reads.delete(key, DeleteOptions(propagation=Propagation.BACKGROUND))
    made = await reads.apply(placed(namespace), field_manager="me")
    assert observed.has_seen(key, made["metadata"]["resourceVersion"])


async def test_the_first_of_several_reads_counts_and_the_write_after_them_takes_one_request() -> None:
    cluster = Counting(EmbeddedCluster(namespaces=("town",)))
    before = await cluster.apply(DEPLOYMENT, field_manager="me")
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await reads.list("apps/v1", "Deployment", ListOptions(namespace="town"))
    assert observed.has_seen(WEB, before["metadata"]["resourceVersion"])
    await _fail(cluster, WEB)
    after = await reads.get(WEB)
    assert not observed.has_seen(WEB, after["metadata"]["resourceVersion"])
    cluster.writes = 0
    stored = await reads.patch(WEB, PAUSED, options(PatchType.MERGE))
    assert cluster.writes == 1
    assert not observed.has_seen(WEB, stored["metadata"]["resourceVersion"])


async def test_a_dry_run_is_not_observed_and_names_no_version() -> None:
    cluster = EmbeddedCluster(namespaces=("town",))
    observed = ObservedVersions(OWNER)
    reads = RecordingReads(cluster, observed, lambda *_: None, lambda *_: None)
    await cluster.apply(DEPLOYMENT, field_manager="me")
    before = await reads.get(WEB)
    changed = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}}
    await reads.apply(changed, field_manager="me", dry_run=True)
    await _fail(cluster, WEB)
    await reads.apply(changed, field_manager="me", dry_run=True)
    assert observed.versions[WEB] == before["metadata"]["resourceVersion"]


async def test_a_conflict_about_a_field_is_not_repeated() -> None:
    """Nor is a conflict with a version that the caller names."""
    cluster = Counting(EmbeddedCluster(namespaces=("town",)))
    reads = RecordingReads(cluster, ObservedVersions(OWNER), lambda *_: None, lambda *_: None)
    await cluster.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 3}}, field_manager="other")
    live = await reads.get(WEB)
    cluster.writes = 0
    with pytest.raises(ConflictError, match="replicas"):
        await reads.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 2}}, field_manager="me")
    assert cluster.writes == 1
    again = RecordingReads(cluster, ObservedVersions(OWNER), lambda *_: None, lambda *_: None)
    await again.get(WEB)
    await cluster.patch(WEB, PAUSED, options(PatchType.MERGE))
    cluster.writes = 0
    with pytest.raises(ConflictError, match="modified"):
        await again.update(live, field_manager="me")
    assert cluster.writes == 1


_SELECTORS: Final = ["", "app=web", "app==api", "app in (web)", "app in (web,api)", "app!=web", "app", "tier=a,app=web"]
_FIELDS: Final = ["", "metadata.name=web", "metadata.name!=web", "metadata.namespace=town", "status.phase=Running"]
_VALUES: Final = ["web", "api", "a"]
_BY_VALUE: Final = Index[str](lambda live: live["metadata"]["labels"].values())
_STATES: Final = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(_VALUES))


@given(
    lists=st.lists(
        st.tuples(
            st.sampled_from(["Pod", "Secret"]),
            st.sampled_from(["", "town", "city"]),
            st.sampled_from(_SELECTORS),
            st.sampled_from(_FIELDS),
        ),
        max_size=8,
    ),
    name=st.sampled_from(["web", "api"]),
    states=st.lists(_STATES, min_size=1, max_size=2),
    forgotten=st.integers(0, 8),
)
def test_the_owners_that_a_change_affects_are_those_with_a_list_that_selects_it(
    lists: list[tuple[str, str, str, str]], name: str, states: list[dict[str, str]], forgotten: int
) -> None:
    index, expected = ObservationIndex(), set()
    key = ObjectKey("v1", "Pod", name, "town")
    entries = [pack(named_pod(name, labels)) for labels in states]
    for number, (kind, namespace, labels, fields) in enumerate(lists):
        owner = ObjectKey("example.com/v1", "Shop", f"shop-{number}", "town")
        # Half of the lists also select by an index, whose keys are the values of the labels.
        indexed = _BY_VALUE.at(_VALUES[number % len(_VALUES)]) if number % 2 else None
        scope = ListScope("v1", kind, namespace, ListFilter.parse(labels, fields), indexed=indexed)
        observed = ObservedVersions(owner)
        observed.lists.append(scope)
        index.replace(observed)
        if number == forgotten:
            index.forget(owner)
        elif any(scope.covers(key, entry.labels, entry.controller, entry.unpack) for entry in entries):
            expected.add(owner)

    assert set(index.dependents(key, entries)) == expected


def named_pod(name: str, labels: dict[str, str]) -> Manifest:
    metadata = {"name": name, "namespace": "town", "uid": "u", "resourceVersion": "1", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
