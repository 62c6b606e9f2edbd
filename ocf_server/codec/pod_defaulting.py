"""API defaults of pods and of pod templates.

Source: `pkg/apis/core/v1/defaults.go` and `conversion.go` of Kubernetes. The functions change the given values, which
the caller has just built.
"""

from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.codec.pod_totals import pod_totals

__all__ = ["set_pod_defaults", "set_pod_spec_defaults"]

_Json = dict[str, Any]

_HUGE: Final = "hugepages-"
_COMPUTE: Final = ("cpu", "memory")
_GRACE: Final = "terminationGracePeriodSeconds"


def set_pod_defaults(pod: Manifest) -> Manifest:
    """Set the defaults of a pod; those of its resources and ports, a template does not get."""
    spec = pod["spec"]
    spec.setdefault("enableServiceLinks", True)
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            limits = container["resources"].get("limits")
            if limits:
                container["resources"]["requests"] = {**limits, **container["resources"].get("requests", {})}
            if spec.get("hostNetwork"):
                for port in container.get("ports", ()):
                    port.setdefault("hostPort", port["containerPort"])
    if "resources" in spec:
        _pod_resources(spec)
    # A negative period counts as a second.
    if spec.get(_GRACE, 0) < 0:
        spec[_GRACE] = 1
    set_pod_spec_defaults(spec)
    if "status" in pod:
        _pair_addresses(pod["status"])
    return pod


def _pair_addresses(status: _Json) -> None:
    """Make `podIP` and the first one of `podIPs` the same address, as the conversion does; of two, `podIP` counts."""
    one, several = status.get("podIP", ""), status.get("podIPs") or []
    if one and (not several or several[0].get("ip", "") != one):
        status["podIPs"] = [{"ip": one}]
    elif several:
        status["podIP"] = several[0].get("ip", "")


def _pod_resources(spec: _Json) -> None:
    """Set limits of huge pages and requests of a pod as a whole from those of its containers."""
    resources = spec["resources"]
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    if requests or limits:
        pages = {name: str(total) for name, total in pod_totals(spec, "limits").items() if name.startswith(_HUGE)}
        limits = {**{name: total for name, total in pages.items() if name not in requests}, **limits}
    if limits:
        totals = {name: str(total) for name, total in pod_totals(spec, "requests").items() if name in _COMPUTE}
        supported = {name: value for name, value in limits.items() if name in _COMPUTE or name.startswith(_HUGE)}
        requests = {**supported, **totals, **requests}
    for name, amounts in (("requests", requests), ("limits", limits)):
        if amounts:
            resources[name] = amounts


def set_pod_spec_defaults(spec: _Json) -> None:
    """Set the defaults of the spec of a pod, also of one in a template; it is changed."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # `serviceAccount` is the deprecated name; the API server keeps both fields equal.
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)


def _container(container: _Json) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _probe(container[name])
    for action in container.get("lifecycle", {}).values():
        if isinstance(action, dict):
            _http_get(action)
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        _field_reference(source)
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)


def _pull_policy(image: str) -> str:
    return "Always" if _image_tag(image) == "latest" else "IfNotPresent"


def _image_tag(image: str) -> str:
    """Return the tag of an image; `latest` if it has neither a tag nor a digest, empty without an image."""
    if not image:
        return ""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    # An image with a digest never changes, so it needs no pull each time.
    return tag if colon else "" if digest else "latest"


def _probe(probe: _Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "grpc" in probe:
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""
    _http_get(probe)


def _http_get(action: _Json) -> None:
    if "httpGet" in action:
        action["httpGet"].setdefault("path", "/")
        action["httpGet"].setdefault("scheme", "HTTP")


def _field_reference(source: _Json) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "resourceFieldRef" in source:
        source["resourceFieldRef"].setdefault("divisor", "0")


def _volume(volume: _Json) -> None:
    # Only the name: no source was chosen.
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", 0o644)
    if "image" in volume and "pullPolicy" not in volume["image"]:
        volume["image"]["pullPolicy"] = _pull_policy(volume["image"].get("reference", ""))
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    _files(volume)
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        volume["ephemeral"]["volumeClaimTemplate"]["spec"].setdefault("volumeMode", "Filesystem")


def _files(volume: _Json) -> None:
    """Set the defaults of the files of volumes with fields of the pod, and of tokens."""
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _field_reference(item)
    for source in volume.get("projected", {}).get("sources") or ():
        for item in source.get("downwardAPI", {}).get("items", ()):
            _field_reference(item)
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
