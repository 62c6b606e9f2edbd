"""Renewal, in virtual time: there is no moment at which a server shows what API servers do not trust."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Renewal, SecretCertificates, Service, Webhooks, configurations
from ocf.runtime.admission.key_pairs import KeyPair, authorities, issue
from ocf.runtime.admission.rotation import RotationPolicy, StoredCertificates, Trust, choose_pair, plan
from ocf.testing import RecordingCluster, VirtualClock
from ocf_server import EmbeddedCluster
from tests import support

ADDRESS: Final = Service("shops-webhook", "ops")
SECRET: Final = ObjectKey("v1", "Secret", "shops-webhook-certificates", "ops")
LAG: Final = timedelta(seconds=25)  # how long an API server may not have heard of a change
QUICK: Final = Renewal(timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=30))
HASTY: Final = Renewal(timedelta(minutes=20), QUICK.propagation, QUICK.interval)
CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def is_trusted(pair: KeyPair, bundle: bytes, now: datetime) -> bool:
    return pair.not_before <= now < pair.not_after and is_verified(pair, bundle)


@lru_cache(maxsize=4096)
def is_verified(pair: KeyPair, bundle: bytes) -> bool:
    """Ask a verifier that is not ours."""
    leaf = x509.load_pem_x509_certificate(pair.chain)
    try:
        store = Store(x509.load_pem_x509_certificates(bundle))
        verifier = PolicyBuilder().store(store).time(pair.not_after - timedelta(minutes=1))
        verifier.build_server_verifier(x509.DNSName(ADDRESS.host)).verify(leaf, [])
    except (VerificationError, ValueError):
        return False
    return True


class Unsteady:
    """A cluster whose answers take a while, so that replicas get into each other's way; `seen` looks on writes."""

    def __init__(self, cluster: Cluster, chance: random.Random, seen: Callable[[], None]) -> None:
        self._cluster, self._chance, self._seen = cluster, chance, seen

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._cluster, name)

        async def delayed(*arguments: Any, **more: Any) -> Any:
            for _ in range(self._chance.randrange(4)):
                await asyncio.sleep(0)
            try:
                return await verb(*arguments, **more)
            finally:
                if name != "get":
                    self._seen()
                for _ in range(self._chance.randrange(4)):
                    await asyncio.sleep(0)

        return delayed


class Behind:
    """A clock that is late."""

    def __init__(self, clock: VirtualClock, by: timedelta) -> None:
        self._clock, self._by = clock, by

    def now(self) -> datetime:
        return self._clock.now() - self._by

    def elapsed(self) -> timedelta:
        return self._clock.elapsed()


class Env(support.Env[EmbeddedCluster, VirtualClock]):
    """Several replicas, and API servers that see changes late."""

    def __init__(self, webhooks: Webhooks, seed: int, renewal: Renewal = QUICK) -> None:
        clock = VirtualClock()
        super().__init__(EmbeddedCluster(now=clock.now), clock)
        self.webhooks = webhooks
        self.chance = random.Random(seed)  # noqa: S311 (no secret)
        self.renewal = renewal
        self.replicas: dict[SecretCertificates, KeyPair] = {}
        self.shown: list[KeyPair] = []
        self.bundles: list[tuple[timedelta, frozenset[bytes]]] = []
        self.is_strict = False

    async def begin(self, replicas: int) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}}
        await self.cluster.create(namespace, field_manager="t")
        for manifest in configurations(self.webhooks, ADDRESS):
            await self.cluster.create(manifest, field_manager="t")
        self.look()
        await asyncio.gather(*(self.refresh(self.replica()) for _ in range(replicas)))
        await self.spend(timedelta(minutes=1))
        self.is_strict = True

    def replica(self, clock: Clock | None = None) -> SecretCertificates:
        cluster: Any = Unsteady(self.cluster, self.chance, self.look)
        clock = clock or self.clock
        return SecretCertificates(cluster, self.webhooks, ADDRESS, namespace="ops", clock=clock, renewal=self.renewal)

    async def refresh(self, replica: SecretCertificates) -> str:
        offer = await replica.refresh()
        self.replicas[replica] = offer.pair
        if offer.pair not in self.shown:
            self.shown.append(offer.pair)
        self.look()
        return offer.problem

    def look(self) -> None:
        """Check what every API server thinks of every replica."""
        now = self.clock.elapsed()
        held = frozenset(self.live_bundles())
        if not self.bundles or self.bundles[-1][1] != held:
            self.bundles.append((now, held))
        heard = [one for index, (_, one) in enumerate(self.bundles) if self.lasted(index) >= now - LAG]
        if self.is_strict:
            for pair in self.replicas.values():
                assert all(is_trusted(pair, each, self.clock.now()) for bundle in heard for each in bundle)

    def lasted(self, index: int) -> timedelta:
        return self.bundles[index + 1][0] if index + 1 < len(self.bundles) else self.clock.elapsed()

    def live_bundles(self) -> Iterable[bytes]:
        for kind in CONFIGURATIONS:
            key = ObjectKey("admissionregistration.k8s.io/v1", kind, "shops", "")
            for entry in get(self.cluster, key)["webhooks"]:
                yield base64.b64decode(entry["clientConfig"].get("caBundle", ""))

    async def spend(self, time: timedelta) -> None:
        """Let time pass; every replica looks twice a minute, at its own seconds and often together with others."""
        end = self.clock.elapsed() + time
        while self.clock.elapsed() < end:
            self.clock.advance(timedelta(seconds=self.chance.randrange(10, 21)))
            self.look()
            chosen = [one for one in self.replicas if self.chance.random() < 0.7]
            await asyncio.gather(*map(self.refresh, chosen))


def get(cluster: EmbeddedCluster, key: ObjectKey) -> Manifest:
    """Read without waiting: the embedded cluster never waits for anything."""
    reading = cluster.get(key)
    try:
        reading.send(None)
    except StopIteration as stop:
        found: Manifest = stop.value
        return found
    raise AssertionError("the embedded cluster waits")


@pytest.mark.promise("webhook-certificate", runs="ten renewals of three replicas, seen by API servers that hear late")
@pytest.mark.parametrize("seed", range(2))
async def test_ten_renewals_without_a_moment_of_mistrust(webhooks: Webhooks, seed: int) -> None:
    env = Env(webhooks, seed, HASTY)
    await env.begin(3)
    while len(env.shown) < 11:
        before = len(env.shown)
        await env.spend(timedelta(minutes=10))
        assert len(env.shown) - before <= 1
    assert len(set(env.replicas.values())) <= 2
    assert all(len(authorities(bundle)) <= 6 for bundle in env.live_bundles())


async def test_the_one_who_comes_first_makes_the_secret(webhooks: Webhooks) -> None:
    env = Env(webhooks, 1)
    await env.begin(5)
    assert len(env.shown) == 1
    assert len(set(env.live_bundles())) == 1


async def test_nothing_is_written_while_nothing_is_due(webhooks: Webhooks) -> None:
    env = Env(webhooks, 1)
    await env.begin(2)
    objects = [SECRET, *map(ObjectKey.of, configurations(webhooks, ADDRESS))]
    before = [get(env.cluster, key) for key in objects]
    await env.spend(timedelta(minutes=10))
    assert [get(env.cluster, key) for key in objects] == before


async def test_a_deleted_secret_is_a_wish_for_another_certificate(webhooks: Webhooks) -> None:
    env = Env(webhooks, 2)
    await env.begin(3)
    await env.cluster.delete(SECRET)
    await env.spend(timedelta(minutes=5))
    assert len(env.shown) == 2
    assert set(env.replicas.values()) == {env.shown[1]}


GARBAGE: Final[dict[str, Callable[[dict[str, str]], Any]]] = {
    "no PEM": lambda data: {**data, "tls.key": base64.b64encode(b"x").decode()},
    "nothing": lambda _: {},
    "half a pair": lambda data: {"tls.crt": data["tls.crt"]},
    "half a following pair": lambda data: {**data, "next.crt": data["tls.crt"]},
    "no bundle": lambda data: {**data, "ca.crt": ""},
    "a pair of an unknown authority": lambda _: StoredCertificates(
        issue([ADDRESS.host], datetime(2026, 1, 1, 12, tzinfo=UTC), QUICK.lifetime)
    ).data(),
    "a pair for another host": lambda _: StoredCertificates(
        issue(["else"], datetime(2026, 1, 1, 12, tzinfo=UTC), QUICK.lifetime)
    ).data(),
    "a key of another": lambda data: {
        **data,
        "tls.key": StoredCertificates(issue(["else"], datetime(2026, 1, 1, tzinfo=UTC), QUICK.lifetime)).data()[
            "tls.key"
        ],
    },
}


@pytest.mark.parametrize("edit", GARBAGE.values(), ids=GARBAGE)
async def test_an_edited_secret_is_repaired(webhooks: Webhooks, edit: Callable[[Any], Any]) -> None:
    env = Env(webhooks, 3)
    await env.begin(2)
    secret = get(env.cluster, SECRET)
    await env.cluster.update({**secret, "data": edit(secret["data"])}, field_manager="user")
    await env.spend(timedelta(minutes=8))
    repaired = StoredCertificates.read(get(env.cluster, SECRET)["data"])
    assert repaired is not None
    assert set(env.replicas.values()) == {repaired.current}
    assert repaired.current.hosts == (ADDRESS.host,)
    assert await env.refresh(next(iter(env.replicas))) == ""


@pytest.mark.parametrize("back", [timedelta(minutes=5), timedelta(minutes=50)])
async def test_a_replica_whose_clock_is_behind_does_no_harm(webhooks: Webhooks, back: timedelta) -> None:
    """Only its own clock is wrong, so what it makes is judged by the right one."""
    env = Env(webhooks, 4)
    await env.begin(2)
    await env.refresh(env.replica(Behind(env.clock, back)))
    await env.spend(timedelta(hours=3))
    assert 3 <= len(env.shown) <= 10


async def test_a_clock_set_back_a_little_renews_nothing(webhooks: Webhooks) -> None:
    env = Env(webhooks, 5)
    await env.begin(2)
    env.clock.jump(env.clock.now() - timedelta(minutes=30))
    await env.spend(timedelta(minutes=10))
    assert len(env.shown) == 1


async def test_all_clocks_set_back_together(webhooks: Webhooks) -> None:
    env = Env(webhooks, 5)
    await env.begin(2)
    await env.spend(timedelta(minutes=30))
    env.is_strict = False
    env.clock.jump(env.clock.now() - timedelta(days=30))
    await env.spend(timedelta(minutes=5))
    env.is_strict = True
    await env.spend(timedelta(minutes=60))
    assert all(pair.is_usable(env.clock.now()) for pair in env.replicas.values())


async def test_after_a_long_sleep_everything_is_made_anew(webhooks: Webhooks) -> None:
    env = Env(webhooks, 6)
    await env.begin(2)
    env.is_strict = False
    env.clock.advance(timedelta(days=30))
    await env.spend(timedelta(minutes=1))
    env.is_strict = True
    await env.spend(timedelta(minutes=30))


async def test_a_new_replica_shows_what_is_kept(webhooks: Webhooks) -> None:
    env = Env(webhooks, 7)
    await env.begin(1)
    for _ in range(10):
        await env.spend(timedelta(minutes=6))
        assert await env.refresh(env.replica()) == ""


async def test_only_the_bundle_of_the_configurations_is_ours(webhooks: Webhooks) -> None:
    env = Env(webhooks, 8)
    await env.begin(1)
    key = ObjectKey("admissionregistration.k8s.io/v1", CONFIGURATIONS[0], "shops", "")
    managers = get(env.cluster, key)["metadata"]["managedFields"]
    (ours,) = [entry for entry in managers if entry["manager"] == "shops-webhook-certificates"]
    assert ours["operation"] == "Apply"
    name = 'k:{"name":"default.shops.example.com"}'
    fields: Any = {".": {}, "f:clientConfig": {"f:caBundle": {}}, "f:name": {}}
    assert ours["fieldsV1"] == {"f:webhooks": {name: fields}}


async def test_a_configuration_that_comes_later_is_filled_in(webhooks: Webhooks) -> None:
    env = Env(webhooks, 9)
    await env.begin(1)
    env.is_strict = False
    (replica,) = env.replicas
    for manifest in configurations(webhooks, ADDRESS):
        await env.cluster.delete(ObjectKey.of(manifest))
        await env.cluster.create(manifest, field_manager="t")
    assert await env.refresh(replica) == ""
    env.is_strict = True
    env.bundles.clear()
    env.look()


async def test_a_certificate_that_is_not_trusted_is_a_problem(webhooks: Webhooks) -> None:
    """Another writer keeps changing the bundle after this process."""

    class Stubborn(EmbeddedCluster):
        async def apply(self, manifest: Manifest, **more: Any) -> Manifest:
            del more
            return await self.get(ObjectKey.of(manifest))

    cluster = Stubborn()
    for manifest in configurations(webhooks, ADDRESS):
        await cluster.create(manifest, field_manager="t")
    certificates = SecretCertificates(cluster, webhooks, ADDRESS, namespace="default")
    problem = (await certificates.refresh()).problem
    assert "the caBundle of MutatingWebhookConfiguration shops and Validating" in problem


NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
POLICY: Final = RotationPolicy(("a",), timedelta(days=90))


def at(hours: float) -> KeyPair:
    return issue(["a"], NOW + timedelta(hours=hours), POLICY.lifetime)


def test_what_is_kept_survives_the_secret() -> None:
    kept = StoredCertificates(at(0), at(1), (at(2).authority,))
    assert StoredCertificates.read(kept.data()) == kept
    assert StoredCertificates.read(StoredCertificates(at(0)).data()) is not None


def test_renewal_begins_after_two_thirds() -> None:
    pair = at(0)
    due = NOW + POLICY.lifetime * 2 / 3
    kept = StoredCertificates(pair)
    assert plan(kept, pair, Trust(), due - timedelta(seconds=1), POLICY) == kept
    renewed = plan(kept, pair, Trust(), due, POLICY)
    assert renewed.current == pair
    assert renewed.next is not None
    assert renewed.bundle == pair.authority + renewed.next.authority


@pytest.mark.parametrize(
    ("bundles", "established", "hours", "taken"),
    [
        pytest.param(["both", "both"], True, 0, True, id="trusted for a while"),
        pytest.param(["both", "both"], False, 0, False, id="trusted since just now"),
        pytest.param(["both", "old"], True, 0, False, id="trusted by one"),
        pytest.param(["both", "both"], False, 24 * 90, True, id="nothing to lose"),
        pytest.param(["old", "old"], False, 24 * 90, False, id="nothing to win"),
        pytest.param(["both", "both"], False, -24 * 100, False, id="a clock set back is no hurry"),
        pytest.param([], False, 0, True, id="no requests yet"),
    ],
)
def test_a_following_pair_takes_over_when_it_is_trusted(
    bundles: list[str], established: bool, hours: float, taken: bool
) -> None:
    old, following = at(0), at(hours)
    named = {"both": frozenset({old.authority, following.authority}), "old": frozenset({old.authority})}
    trust = Trust([named[name] for name in bundles], frozenset({following.authority} if established else ()))
    planned = plan(StoredCertificates(old, following), old, trust, NOW + timedelta(hours=hours), POLICY)
    assert (planned.current == following) is taken
    assert choose_pair(planned, old, trust, NOW + timedelta(hours=hours)) == (following if taken else old)


def test_a_pair_that_works_is_not_left_for_one_that_does_not() -> None:
    shown, foreign = at(0), at(0)
    trust = Trust([frozenset({shown.authority})])
    planned = plan(StoredCertificates(foreign), shown, trust, NOW, POLICY)
    assert choose_pair(planned, shown, trust, NOW) == shown
    assert shown.authority in planned.retired


def test_the_authority_of_a_pair_that_was_followed_stays() -> None:
    old, following = at(0), at(0)
    planned = plan(StoredCertificates(old, following), None, Trust(), NOW, POLICY)
    assert (planned.current, planned.retired) == (following, (old.authority,))
    assert plan(planned, None, Trust(), old.not_after - timedelta(seconds=1), POLICY).retired == (old.authority,)
    assert plan(planned, None, Trust(), old.not_after, POLICY).retired == ()


async def test_who_is_late_does_not_take_back_what_others_have_published(webhooks: Webhooks) -> None:
    """One replica thinks for long between looking and writing; meanwhile another one begins a renewal."""
    cluster = EmbeddedCluster()
    arrived, allowed = asyncio.Event(), asyncio.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(cluster, name)

        async def apply(self, *arguments: Any, **more: Any) -> Manifest:
            arrived.set()
            await allowed.wait()
            return await cluster.apply(*arguments, **more)

    def certificates(held: Any) -> SecretCertificates:
        return SecretCertificates(held, webhooks, ADDRESS, namespace="default")

    quick = certificates(cluster)
    shown = (await quick.refresh()).pair
    for manifest in configurations(webhooks, ADDRESS):
        await cluster.create(manifest, field_manager="t")
    late = asyncio.create_task(certificates(Slow()).refresh())
    await arrived.wait()
    await quick.refresh()
    await cluster.delete(ObjectKey("v1", "Secret", "shops-webhook-certificates", "default"))
    await quick.refresh()
    key = ObjectKey("admissionregistration.k8s.io/v1", CONFIGURATIONS[0], "shops", "")
    published = get(cluster, key)
    allowed.set()
    assert (await late).pair == shown
    assert get(cluster, key) == published


async def test_the_privileges_are_what_is_sent_and_nothing_more(webhooks: Webhooks) -> None:
    env = Env(webhooks, 11)
    await env.begin(1)
    cluster = RecordingCluster(env.cluster)
    await cluster.delete(SECRET)
    certificates = SecretCertificates(cluster, webhooks, ADDRESS, namespace="ops", clock=env.clock, renewal=QUICK)
    for _ in range(2):
        await certificates.refresh()
        env.clock.advance(timedelta(minutes=45))
    verbs = {"apply": "patch"}
    sent = {(verbs.get(one.verb, one.verb), one.kind) for one in cluster.requests if one.verb != "delete"}
    plurals = {"Secret": "secrets", **{kind: f"{kind.lower()}s" for kind in CONFIGURATIONS}}
    assert {(verb, plurals[kind]) for verb, kind in sent} == {
        (one.verb, one.resource) for one in certificates.policy_rules
    }
    assert {one.name for one in certificates.policy_rules if one.verb != "create"} == {SECRET.name, "shops"}
