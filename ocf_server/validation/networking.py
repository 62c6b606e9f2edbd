"""Validation of Ingresses and IngressClasses.

Source: `pkg/apis/networking/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required, too_long
from ocf.objects.name_validation import dns_label, dns_subdomain, path_segment, wildcard_subdomain
from ocf_server.validation.addresses import address_errors, parse_address
from ocf_server.validation.fields import each_problem, enumeration, immutable, port_name, port_number
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")
_SCOPES: Final = ("Cluster", "Namespace")
# maxLenIngressClassController.
_LONGEST_CONTROLLER: Final = 250
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path: Final = re.compile(_HTTP_PATH).fullmatch


def _ingress_create_errors(ingress: Manifest) -> Iterator[FieldError]:
    yield from _ingress_errors(ingress, None)
    annotations, name = ingress["metadata"].get("annotations") or {}, ingress["spec"].get("ingressClassName")
    given = annotations.get(_CLASS_ANNOTATION)
    if None not in (given, name) and given != name:
        detail = "must match `ingressClassName` when both are specified"
        yield invalid(f"annotations.{_CLASS_ANNOTATION}", given, detail)


def _ingress_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from _ingress_errors(new, old)


def _ingress_errors(ingress: Manifest, old: Manifest | None) -> Iterator[FieldError]:
    yield from metadata_errors(ingress["metadata"])
    spec: Mapping[str, Any] = ingress["spec"]
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend_errors(backend, "spec.defaultBackend")
    # Older releases did not check these rules, and what they stored stays valid.
    lenient = old is not None and _has_invalid_wildcard_rule(old["spec"])
    for index, rule in enumerate(rules):
        yield from _host_errors(rule.get("host", ""), f"spec.rules[{index}].host")
        if not (lenient and "*" in rule.get("host", "")):
            yield from _rule_errors(rule, f"spec.rules[{index}]")
    yield from _tls_errors(spec, old)
    if spec.get("ingressClassName") is not None:
        yield from each_problem(dns_subdomain, spec["ingressClassName"], "spec.ingressClassName")


def _has_invalid_wildcard_rule(spec: Mapping[str, Any]) -> bool:
    rules = (rule for rule in spec.get("rules") or () if "*" in rule.get("host", ""))
    return any(True for rule in rules for _ in _rule_errors(rule, ""))


def _host_errors(host: str, path: str) -> Iterator[FieldError]:
    if not host:
        return
    if parse_address(host) is not None:
        yield invalid(path, host, "must be a DNS name, not an IP address")
    yield from each_problem(wildcard_subdomain if "*" in host else dns_subdomain, host, path)


def _rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    http = rule.get("http")
    if http is None:
        return
    paths: Sequence[Mapping[str, Any]] = http.get("paths") or ()
    if not paths:
        yield required(f"{path}.http.paths")
    for index, each in enumerate(paths):
        yield from _path_errors(each, f"{path}.http.paths[{index}]")


def _path_errors(entry: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind, text = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    else:
        strict = kind != "ImplementationSpecific"
        if not text.startswith("/") and (strict or text):
            yield invalid(f"{path}.path", text, "must be an absolute path")
        if strict:
            yield from _path_text_errors(text, f"{path}.path")
    yield from _backend_errors(entry.get("backend") or {}, f"{path}.backend")


def _path_text_errors(text: str, path: str) -> Iterator[FieldError]:
    for sequence in _FORBIDDEN_SEQUENCES:
        if sequence in text:
            yield invalid(path, text, f"must not contain '{sequence}'")
    for end in _FORBIDDEN_ENDS:
        if text.endswith(end):
            yield invalid(path, text, f"cannot end with '{end}'")


def _backend_errors(backend: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference_errors(resource, f"{path}.resource")
    elif service is not None:
        if service.get("name"):
            yield from each_problem(dns_label, service["name"], f"{path}.service.name")
        else:
            yield required(f"{path}.service.name")
        yield from _service_port_errors(service.get("port") or {}, path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _service_port_errors(port: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name, number = port.get("name"), port.get("number")
    if name and number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from each_problem(port_name, name, f"{path}.service.port.name")
    elif number:
        yield from port_number(number, f"{path}.service.port.number")
    else:
        yield required(path, "port name or number is required")


def _reference_errors(reference: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if reference.get("apiGroup") is not None:
        yield from each_problem(dns_subdomain, reference["apiGroup"], f"{path}.apiGroup")
    for name in ("kind", "name"):
        if reference.get(name):
            yield from each_problem(path_segment, reference[name], f"{path}.{name}")
        else:
            yield required(f"{path}.{name}")


def _tls_errors(spec: Mapping[str, Any], old: Manifest | None) -> Iterator[FieldError]:
    lenient = old is not None and any(
        dns_subdomain(entry["secretName"]) for entry in old["spec"].get("tls") or () if entry.get("secretName")
    )
    for index, entry in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(entry.get("hosts") or ()):
            rule = wildcard_subdomain if "*" in host else dns_subdomain
            yield from each_problem(rule, host, f"spec.tls[{index}].hosts[{at}]")
        if entry.get("secretName") and not lenient:
            yield from each_problem(dns_subdomain, entry["secretName"], f"spec.tls[{index}].secretName")


def _ingress_status_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    entries, known = (
        (manifest.get("status") or {}).get("loadBalancer", {}).get("ingress") or () for manifest in (new, old)
    )
    accepted = {entry.get("ip") for entry in known}
    for index, entry in enumerate(entries):
        path = f"status.loadBalancer.ingress[{index}]"
        if entry.get("ip") and entry["ip"] not in accepted:
            yield from address_errors(entry["ip"], f"{path}.ip")
        if entry.get("hostname"):
            yield from each_problem(dns_subdomain, entry["hostname"], f"{path}.hostname")
            if parse_address(entry["hostname"]) is not None:
                yield invalid(f"{path}.hostname", entry["hostname"], "must be a DNS name, not an IP address")


def _class_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    controller, path = manifest["spec"].get("controller", ""), "spec.controller"
    if len(controller.encode(errors="surrogatepass")) > _LONGEST_CONTROLLER:
        yield too_long(path, _LONGEST_CONTROLLER)
    yield from _controller_errors(controller, path)
    parameters = manifest["spec"].get("parameters")
    if parameters is not None:
        yield from _reference_errors(parameters, "spec.parameters")
        yield from _scope_errors(parameters, "spec.parameters")


def _controller_errors(controller: str, path: str) -> Iterator[FieldError]:
    host, _, rest = controller.partition("/")
    if not controller:
        yield required(path)
    elif not host or not rest:
        yield invalid(path, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from each_problem(dns_subdomain, host, path)
        if not _is_http_path(rest):
            yield invalid(path, rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')")


def _scope_errors(parameters: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield required(f"{path}.scope")
    elif scope == "Namespace" and namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace" and namespace is not None:
        yield from each_problem(dns_label, namespace, f"{path}.namespace")
    elif scope == "Cluster" and namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    else:
        yield from enumeration(scope, _SCOPES, f"{path}.scope")


def _class_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from immutable(new["spec"].get("controller", ""), old["spec"].get("controller", ""), "spec.controller")
    yield from _class_errors(new)


VALIDATIONS: Final = {
    "Ingress.networking.k8s.io": Validation(
        _ingress_create_errors, _ingress_update_errors, {Subresource.STATUS: _ingress_status_errors}
    ),
    "IngressClass.networking.k8s.io": Validation(_class_errors, _class_update_errors),
}
