"""Rendered manifests of the samples, and the effect of each feature."""

from typing import Any

import pytest

from examples.memcached import samples
from examples.memcached.component import memcached
from examples.memcached.defaulting import default
from examples.memcached.features import image_tag
from examples.memcached.model import Memcached
from examples.memcached.secrets import SECRET_HASH, secret_hash
from ocf.objects import Manifest, load_document
from ocf.testing.plugin import GoldenCheck

KINDS = ["Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy"]


def of_sample(name: str) -> Memcached:
    return default(Memcached.model_validate(load_document(getattr(samples, name))))


def rendered(**spec: Any) -> dict[str, Manifest]:
    cache = Memcached.model_validate({"metadata": {"name": "my-cache", "namespace": "default"}, "spec": spec})
    return {one["kind"]: one for one in memcached(default(cache)).render()}


def pod_of(manifests: dict[str, Manifest]) -> Manifest:
    found: Manifest = manifests["Deployment"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("name", samples.__all__)
def test_samples(name: str, golden: GoldenCheck) -> None:
    golden(f"{name.lower()}.yaml", memcached(of_sample(name)))


def test_the_order_and_the_names() -> None:
    made = memcached(of_sample("EVERYTHING")).render()

    assert [one["kind"] for one in made] == KINDS
    assert {(one["metadata"]["name"], one["metadata"]["namespace"]) for one in made} == {("my-cache", "default")}


def test_a_plain_cache_has_no_feature() -> None:
    subject = memcached(of_sample("PLAIN"))

    assert subject.firing_set() == ("version-label",)
    assert [one["kind"] for one in subject.render()] == ["Deployment", "Service"]


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("memcached:1.6", "1.6"),
        ("memcached", ""),
        ("registry:5000/memcached", ""),
        ("registry:5000/team/memcached:1.6.29-alpine", "1.6.29-alpine"),
        ("memcached@sha256:" + "0" * 64, ""),
        ("memcached:1.6@sha256:" + "0" * 64, ""),
        ("memcached:" + "a" * 64, ""),
        ("memcached:1.6-", ""),
    ],
)
def test_the_tag_of_an_image(image: str, tag: str) -> None:
    assert image_tag(image) == tag
    labels = rendered(image=image)["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels.get("app.kubernetes.io/version", "") == tag


@pytest.mark.parametrize(("verbosity", "more"), [(0, []), (1, ["-v"]), (2, ["-vv"])])
def test_arguments(verbosity: int, more: list[str]) -> None:
    pod = pod_of(rendered(memcached={"verbosity": verbosity, "extraArgs": ["-o", "modern"]}))

    assert pod["containers"][0]["args"] == ["-m", "64", "-c", "1024", "-t", "4", "-I", "1m", *more, "-o", "modern"]


def test_soft_and_hard_anti_affinity() -> None:
    soft = pod_of(rendered(highAvailability={}))["affinity"]["podAntiAffinity"]
    hard = pod_of(rendered(highAvailability={"antiAffinityPreset": "hard"}))["affinity"]["podAntiAffinity"]

    (preferred,) = soft["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["weight"] == 100
    assert hard == {"requiredDuringSchedulingIgnoredDuringExecution": [preferred["podAffinityTerm"]]}
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert "affinity" not in pod_of(rendered())


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        pytest.param({}, {"minAvailable": 1}, id="none"),
        pytest.param({"minAvailable": 2}, {"minAvailable": 2}, id="minimum"),
        pytest.param({"minAvailable": 0}, {"minAvailable": 0}, id="zero"),
        pytest.param({"maxUnavailable": "25%"}, {"maxUnavailable": "25%"}, id="maximum"),
        pytest.param({"minAvailable": 2, "maxUnavailable": 1}, {"minAvailable": 2}, id="the minimum wins"),
    ],
)
def test_the_disruption_budget(budget: Manifest, limit: Manifest) -> None:
    made = rendered(highAvailability={"podDisruptionBudget": {"enabled": True, **budget}})["PodDisruptionBudget"]

    assert {key: value for key, value in made["spec"].items() if key != "selector"} == limit


@pytest.mark.parametrize(
    ("monitoring", "there"),
    [
        pytest.param({"enabled": True, "serviceMonitor": {}}, True, id="wanted"),
        pytest.param({"enabled": True}, False, id="not asked for"),
        pytest.param({"enabled": False, "serviceMonitor": {}}, False, id="no exporter"),
    ],
)
def test_the_monitor_needs_an_exporter(monitoring: Manifest, there: bool) -> None:
    assert ("ServiceMonitor" in rendered(monitoring=monitoring)) is there


def test_labels_of_the_user_do_not_replace_ours() -> None:
    labels = {"app.kubernetes.io/name": "mine", "release": "prometheus"}
    made = rendered(monitoring={"enabled": True, "serviceMonitor": {"additionalLabels": labels}})["ServiceMonitor"]

    assert made["metadata"]["labels"]["app.kubernetes.io/name"] == "memcached"
    assert made["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize("sources", [None, []])
def test_without_sources_every_client_may_connect(sources: list[Manifest] | None) -> None:
    security = {"networkPolicy": {"enabled": True, "allowedSources": sources}}
    (rule,) = rendered(security=security)["NetworkPolicy"]["spec"]["ingress"]

    assert rule == {"ports": [{"port": 11211, "protocol": "TCP"}]}


def test_one_secret_for_two_purposes_is_read_once() -> None:
    reference = {"name": "both"}
    security = {
        "sasl": {"enabled": True, "credentialsSecretRef": reference},
        "tls": {"enabled": True, "certificateSecretRef": reference},
    }
    volumes = pod_of(rendered(security=security))["volumes"]

    assert [volume["secret"]["secretName"] for volume in volumes] == ["both", "both"]


def test_no_annotation_before_a_secret_was_read() -> None:
    security = {"sasl": {"enabled": True, "credentialsSecretRef": {"name": "sasl"}}}
    template = rendered(security=security)["Deployment"]["spec"]["template"]

    assert SECRET_HASH not in template["metadata"].get("annotations", {})


def test_the_hash_of_secrets() -> None:
    """SHA-256 of `name NUL key NUL value`, names and keys sorted."""
    import hashlib

    expected = hashlib.sha256(b"a\0k1\0xa\0k2\0yb\0k\0z").hexdigest()

    assert secret_hash({"b": {"k": b"z"}, "a": {"k2": b"y", "k1": b"x"}}) == expected
