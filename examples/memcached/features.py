"""Optional features of a cache: mutations of the Deployment, each with its name and gate.

Tests, `ocf preview` and `ocf explain` refer to the features by these names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kubernetes.client import (
    V1Affinity,
    V1Container,
    V1ContainerPort,
    V1KeyToPath,
    V1LabelSelector,
    V1Lifecycle,
    V1PodAffinityTerm,
    V1PodAntiAffinity,
    V1SecretVolumeSource,
    V1Volume,
    V1VolumeMount,
    V1WeightedPodAffinityTerm,
)

from examples.memcached.model import GROUP
from examples.memcached.naming import EXPORTER, MEMCACHED, METRICS_PORT, TLS_PORT
from ocf.editors import ContainerEditor, ObjectMetaEditor, PodSpecEditor, all_containers, container_named
from ocf.feature import BooleanGate
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.memcached.model import Memcached

__all__ = [
    "RESTART_TRIGGER",
    "exporter",
    "extra_arguments",
    "graceful_shutdown",
    "hardening",
    "image_tag",
    "placement",
    "restart",
    "sasl",
    "tls",
    "version_label",
]

RESTART_TRIGGER: Final = f"{GROUP}/restart-trigger"
"""An annotation of the cache: a new value replaces all pods."""

_SASL: Final = "/etc/memcached/sasl"
_TLS: Final = "/etc/memcached/tls"
_VERSION: Final = "app.kubernetes.io/version"
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def image_tag(image: str) -> str:
    """Return the tag of an image.

    Args:
        image: A reference to an image; the port of a registry and a digest are not tags.

    Returns:
        The tag; empty if the reference has none, or if the tag is not a valid label value.

    Example:
        >>> image_tag("memcached:1.6"), image_tag("registry:5000/memcached"), image_tag("memcached@sha256:0a1b")
        ('1.6', '', '')
    """
    name = image.partition("@")[0].rpartition("/")[2]
    tag = name.partition(":")[2]
    return tag if "@" not in image and _LABEL_VALUE.fullmatch(tag) else ""


def version_label(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that labels the Deployment and its pods with the image version; selectors do not use it."""
    tag = image_tag(cache.spec.image)

    def mutate(m: deployment.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.ensure_label(_VERSION, tag))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_label(_VERSION, tag))

    return deployment.Mutation("version-label", mutate, feature=BooleanGate(bool(tag)))


def placement(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that sets pod anti-affinity and the user's topology spread constraints."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_spec
        def _(pod: PodSpecEditor) -> None:
            pod.raw.affinity = V1Affinity(pod_anti_affinity=_apart(cache))
            pod.raw.topology_spread_constraints = cache.availability.topology_spread_constraints

    return deployment.Mutation("placement", mutate, feature=BooleanGate(cache.spec.high_availability is not None))


def _apart(cache: Memcached) -> V1PodAntiAffinity:
    own = {"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": cache.metadata.name}
    term = V1PodAffinityTerm(topology_key="kubernetes.io/hostname", label_selector=V1LabelSelector(match_labels=own))
    if cache.availability.anti_affinity_preset == "hard":
        return V1PodAntiAffinity(required_during_scheduling_ignored_during_execution=[term])
    soft = V1WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return V1PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=[soft])


def graceful_shutdown(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that delays shutdown, because clients notice the removal from the Service with a delay."""
    wait = {"preStop": {"exec": {"command": ["sleep", str(cache.shutdown.pre_stop_delay_seconds)]}}}

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_spec
        def _(pod: PodSpecEditor) -> None:
            pod.raw.termination_grace_period_seconds = cache.shutdown.termination_grace_period_seconds

        @m.edit_containers(container_named(MEMCACHED))
        def _(container: ContainerEditor) -> None:
            container.raw.lifecycle = V1Lifecycle.model_validate(wait)

    return deployment.Mutation("graceful-shutdown", mutate, feature=BooleanGate(cache.shutdown.enabled))


def sasl(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that requires clients to log in with a password from the user's Secret."""

    def mutate(m: deployment.Mutator) -> None:
        _mount(m, "sasl-credentials", _SASL, cache.sasl.credentials_secret_ref.name, ["password-file"])
        _append(m, "-Y", f"{_SASL}/password-file")

    return deployment.Mutation("sasl", mutate, feature=BooleanGate(cache.sasl.enabled))


def tls(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that encrypts connections with the certificate from the user's Secret."""
    files = {"ssl_chain_cert": "tls.crt", "ssl_key": "tls.key"}
    if cache.tls.enable_client_cert:
        files["ssl_ca_cert"] = "ca.crt"

    def mutate(m: deployment.Mutator) -> None:
        _mount(m, "tls-certificates", _TLS, cache.tls.certificate_secret_ref.name, list(files.values()))
        _append(m, "-Z", *(text for option, file in files.items() for text in ("-o", f"{option}={_TLS}/{file}")))

        @m.edit_containers(container_named(MEMCACHED))
        def _(container: ContainerEditor) -> None:
            container.ensure_port(V1ContainerPort(name="memcached-tls", container_port=TLS_PORT, protocol="TCP"))

    return deployment.Mutation("tls", mutate, feature=BooleanGate(cache.tls.enabled))


def extra_arguments(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that appends the user's extra arguments for memcached."""
    more = cache.server.extra_args or []
    return deployment.Mutation("extra-arguments", lambda m: _append(m, *more), feature=BooleanGate(bool(more)))


def exporter(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that runs the exporter beside memcached."""
    port = V1ContainerPort(name="metrics", container_port=METRICS_PORT, protocol="TCP")
    container = V1Container(name=EXPORTER, image=cache.monitoring.exporter_image, ports=[port])
    container.resources = cache.monitoring.exporter_resources
    return deployment.Mutation(
        "exporter", lambda m: m.ensure_container(container), feature=BooleanGate(cache.monitoring.enabled)
    )


def hardening(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that sets the security contexts of the pods and all their containers."""
    pods, containers = cache.security.pod_security_context, cache.security.container_security_context

    def mutate(m: deployment.Mutator) -> None:
        m.edit_pod_spec(lambda pod: pod.set_security_context(pods))

        @m.edit_containers(all_containers)
        def _(container: ContainerEditor) -> None:
            container.raw.security_context = containers

    return deployment.Mutation("hardening", mutate, feature=BooleanGate(bool(pods or containers)))


def restart(cache: Memcached) -> deployment.Mutation:
    """Return the mutation that copies the restart trigger into the pods, so that a new value replaces them."""
    trigger = (cache.metadata.annotations or {}).get(RESTART_TRIGGER, "")

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_template_metadata
        def _(meta: ObjectMetaEditor) -> None:
            meta.ensure_annotation(RESTART_TRIGGER, trigger)

    return deployment.Mutation("restart", mutate, feature=BooleanGate(bool(trigger)))


def _append(m: deployment.Mutator, *more: str) -> None:
    """Append arguments of memcached without deduplication: a flag such as `-o` may occur more than once."""

    @m.edit_containers(container_named(MEMCACHED))
    def _(container: ContainerEditor) -> None:
        container.raw.args = [*(container.raw.args or ()), *more]


def _mount(m: deployment.Mutator, volume: str, path: str, secret: str, keys: Sequence[str]) -> None:
    """Mount some keys of a Secret as files into the memcached container."""
    source = V1SecretVolumeSource(secret_name=secret, items=[V1KeyToPath(key=key, path=key) for key in keys])

    @m.edit_pod_spec
    def _(pod: PodSpecEditor) -> None:
        pod.ensure_volume(V1Volume(name=volume, secret=source))

    @m.edit_containers(container_named(MEMCACHED))
    def _(container: ContainerEditor) -> None:
        container.ensure_volume_mount(V1VolumeMount(name=volume, mount_path=path, read_only=True))
