"""Bundle for the Operator Lifecycle Manager (OLM), in the format `registry+v1`.

Source: https://olm.operatorframework.io/docs/tasks/creating-operator-bundle/ and the validators of
https://github.com/operator-framework/api. OLM creates the service account, the roles, the Service and the certificate
of the webhooks from the ClusterServiceVersion, and passes the namespaces to watch in an annotation of the pods.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import ServiceAccount
from ocf.errors import ConfigError
from ocf.manifests.kustomize import documents
from ocf.objects import dump_document
from ocf.objects.manifest import split_api_version
from ocf.objects.name_validation import dns_subdomain
from ocf.runtime.operator.environment import WEBHOOK_PORT
from ocf.runtime.rbac import roles

if TYPE_CHECKING:
    from ocf.manifests.installation import Installation
    from ocf.objects import Manifest

__all__ = ["bundle"]

_CERTIFICATES: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 (where OLM mounts them)
_NAMESPACES: Final = "metadata.annotations['olm.targetNamespaces']"
_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
_CHANNEL: Final = "stable"
_KUBERNETES: Final = "1.30.0"
_WEBHOOKS: Final = {
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
_KEPT_OF_WEBHOOK: Final = (
    "admissionReviewVersions",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "reinvocationPolicy",
    "rules",
    "sideEffects",
    "timeoutSeconds",
)
_NOT_IN_BUNDLES: Final = {
    "namespaceSelector": (
        "selects namespaces, which OLM does by its OperatorGroup alone: leave `namespaces` out of its Match, and say "
        "everywhere=True if it may be called in the namespaces of Kubernetes and of the operator, where no pod starts "
        "while a webhook of pods is down"
    ),
    "matchConditions": "has match conditions, which a bundle cannot express: check them in the function",
}
"""Fields of a webhook that a ClusterServiceVersion does not have, and what to do without them."""


def bundle(installation: Installation) -> dict[str, str]:
    """Return the files of a bundle.

    Args:
        installation: The operator and its options; OLM selects the namespace of the operator and those to watch.

    Raises:
        ConfigError: If the options select namespaces to watch, the operator has no definition of its owners, or a
            webhook has what a bundle cannot express.
    """
    if installation.options.watch_namespaces:
        raise ConfigError("OLM selects the namespaces to watch, by its OperatorGroup: leave them out for a bundle")
    if not installation.definitions:
        raise ConfigError(f"operator {installation.name} has no definition of its owners, which a bundle must contain")
    certificates = _CERTIFICATES if installation.serves_webhooks else ""
    inside = replace(installation, certificates=certificates)
    name, note = installation.name, installation.note
    for each in installation.definitions:
        # It is a part of a path.
        if problems := dns_subdomain(each["metadata"]["name"]):
            raise ConfigError(f'invalid name "{each["metadata"]["name"]}" of a definition: {"; ".join(problems)}')
    metrics = inside.service()
    metrics["metadata"] = {"name": f"{name}-metrics", "labels": inside.labels}
    metrics["spec"]["ports"] = [port for port in metrics["spec"]["ports"] if port["name"] == "metrics"]
    annotations = {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": name,
        "operators.operatorframework.io.bundle.channels.v1": _CHANNEL,
        "operators.operatorframework.io.bundle.channel.default.v1": _CHANNEL,
    }
    labels = "".join(f"LABEL {key}={value}\n" for key, value in annotations.items())
    return {
        f"manifests/{name}.clusterserviceversion.yaml": documents([_service_version(inside)], note=note),
        # OLM writes the conversion webhook into the definition.
        **{
            f"manifests/{each['metadata']['name']}.crd.yaml": documents([each], note=note)
            for each in installation.plain_definitions
        },
        f"manifests/{name}-metrics.service.yaml": documents([metrics], note=note),
        # OLM installs no policies: they lie beside the bundle, and are not a part of it.
        **({"policies.yaml": documents(policies, note=note)} if (policies := installation.policy_objects()) else {}),
        "metadata/annotations.yaml": f"# {note}\n{dump_document({'annotations': annotations})}",
        "bundle.Dockerfile": f"# {note}\nFROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n",
    }


def _service_version(installation: Installation) -> Manifest:
    name, project = installation.name, installation.options.project
    authors = [{"name": author, "email": mail} for author, mail in project.authors if author and mail]
    provider = next((author for author, _ in project.authors if author), name)
    summary = project.description or f"The operator {name}."
    spec: dict[str, Any] = {
        "displayName": _display_name(name),
        "description": summary,
        "version": project.version,
        "maturity": "alpha",
        "minKubeVersion": _KUBERNETES,
        "provider": {"name": provider},
        "maintainers": authors,
        "links": [{"name": label, "url": url} for label, url in project.links],
        "keywords": [*project.keywords] or [name],
        "icon": [{"base64data": _icon(name), "mediatype": "image/svg+xml"}],
        "installModes": [{"type": mode, "supported": mode in _supported(installation)} for mode in _MODES],
        "customresourcedefinitions": {"owned": list(_owned(installation, summary))},
        "webhookdefinitions": list(_webhooks(installation)),
        "install": {"strategy": "deployment", "spec": _install(installation)},
    }
    annotations = {
        "alm-examples": json.dumps(_examples(installation), indent=2),
        "capabilities": "Basic Install",
        "containerImage": installation.image,
        "description": summary,
        "operatorframework.io/suggested-namespace": installation.namespace,
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{name}.v{project.version}", "annotations": annotations},
        "spec": {key: value for key, value in spec.items() if value},
    }


def _display_name(name: str) -> str:
    return " ".join(part.capitalize() for part in name.split("-"))


def _icon(name: str) -> str:
    """Return an icon, which catalogs require: the first letter of the name."""
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">'
        '<rect width="64" height="64" rx="12" fill="#326ce5"/>'
        '<text x="32" y="45" font-family="sans-serif" font-size="36" text-anchor="middle" fill="#fff">'
        f"{name[:1].upper()}</text></svg>"
    )
    return base64.b64encode(text.encode()).decode()


def _supported(installation: Installation) -> tuple[str, ...]:
    """Return the install modes.

    An operator of cluster-scoped owners cannot be limited to namespaces, nor can conversion, which OLM requires to be
    declared.
    """
    limited = all(each["spec"]["scope"] == "Namespaced" for each in installation.definitions)
    return _MODES if limited and not installation.conversions else ("AllNamespaces",)


def _examples(installation: Installation) -> list[Manifest]:
    """Return the sample owners, in all of their versions."""
    found = list(installation.examples)
    for resource in installation.conversions:
        given = [each for each in found if _group_kind(each) == (resource.group, resource.kind)]
        rest = [each for each in found if each not in given]
        found = [*rest, *(resource.convert(each, version.name) for version in resource.versions for each in given)]
    return [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in found]


def _group_kind(manifest: Manifest) -> tuple[str, str]:
    return split_api_version(manifest["apiVersion"])[0], manifest["kind"]


def _owned(installation: Installation, summary: str) -> Iterator[Manifest]:
    for definition in installation.definitions:
        spec = definition["spec"]
        for version in spec["versions"]:
            described = version["schema"]["openAPIV3Schema"].get("description", summary)
            yield {
                "name": definition["metadata"]["name"],
                "kind": spec["names"]["kind"],
                "version": version["name"],
                "displayName": spec["names"]["kind"],
                "description": described,
            }


def _webhooks(installation: Installation) -> Iterator[Manifest]:
    for configuration in installation.webhooks():
        for webhook in configuration["webhooks"]:
            for field, problem in _NOT_IN_BUNDLES.items():
                if field in webhook:
                    raise ConfigError(f"the webhook {webhook['name']} {problem}; or install a chart or a kustomization")
            kept = {key: webhook[key] for key in _KEPT_OF_WEBHOOK if key in webhook}
            client = webhook["clientConfig"]
            yield _webhook(installation, _WEBHOOKS[configuration["kind"]], webhook["name"], client) | kept
    for definition in installation.definitions:
        conversion = definition["spec"].get("conversion") or {}
        if "webhook" not in conversion:
            continue
        name, webhook = definition["metadata"]["name"], conversion["webhook"]
        yield {
            **_webhook(installation, "ConversionWebhook", f"convert.{name}", webhook["clientConfig"]),
            "admissionReviewVersions": webhook["conversionReviewVersions"],
            "sideEffects": "None",
            "conversionCRDs": [name],
        }


def _webhook(installation: Installation, kind: str, name: str, client: Mapping[str, Any]) -> Manifest:
    return {
        "type": kind,
        "generateName": name,
        "deploymentName": installation.name,
        "containerPort": client["service"]["port"],
        "targetPort": WEBHOOK_PORT,
        "webhookPath": client["service"]["path"],
    }


def _install(installation: Installation) -> dict[str, Any]:
    deployment = installation.deployment()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    selected = {"name": "WATCH_NAMESPACES", "valueFrom": {"fieldRef": {"fieldPath": _NAMESPACES}}}
    container["env"] = [*container["env"], selected]
    rules = {scope: _rules(installation, namespaced=scope == "permissions") for scope in _SCOPES}
    granted = {
        scope: [{"serviceAccountName": installation.name, "rules": found}] for scope, found in rules.items() if found
    }
    return {
        "deployments": [{"name": installation.name, "label": installation.labels, "spec": deployment["spec"]}],
        **granted,
    }


_SCOPES: Final = ("permissions", "clusterPermissions")
"""OLM grants the first in the namespace of the operator and in those that it watches, and the second everywhere."""


def _rules(installation: Installation, *, namespaced: bool) -> list[dict[str, Any]]:
    account = ServiceAccount(installation.name, installation.namespace)
    needed = [
        replace(rule, namespace="")
        for rule in installation.policy_rules(enforced=True)
        if rule.namespaced == namespaced
    ]
    written = roles(needed, name=installation.name, account=account)
    return list(written[0]["rules"]) if written else []
