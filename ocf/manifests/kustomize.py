"""Kustomization: a base, a component for monitoring, and a first overlay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import dump_document
from ocf.runtime.admission.match import SYSTEM_NAMESPACES

if TYPE_CHECKING:
    from ocf.manifests.installation import Installation
    from ocf.objects import Manifest

__all__ = ["base_folder", "component_folder", "documents", "kustomization", "overlay"]

_API: Final = "kustomize.config.k8s.io"


def kustomization(installation: Installation) -> dict[str, str]:
    """Return the files of the base and of the component `monitoring`, which needs the Prometheus operator.

    Args:
        installation: The operator and its options.
    """
    base = {
        "namespace.yaml": [installation.namespace_object()],
        "definition.yaml": installation.definitions,
        "service-account.yaml": [installation.service_account()],
        "roles.yaml": installation.roles(),
        "service.yaml": [installation.service()],
        "webhooks.yaml": installation.webhooks(),
        "policies.yaml": installation.policy_objects(),
        "deployment.yaml": [installation.deployment()],
        "disruption-budget.yaml": [installation.disruption_budget()] if installation.options.replicas > 1 else [],
        "network-policy.yaml": [installation.network_policy()],
    }
    monitoring = {
        "service-monitor.yaml": [installation.service_monitor()],
        "alerts.yaml": [installation.alerts()],
        "dashboard.yaml": [installation.dashboard()],
    }
    return {
        **base_folder("base", base, note=installation.note),
        **component_folder("components/monitoring", monitoring, note=installation.note),
    }


def overlay(installation: Installation) -> dict[str, str]:
    """Return a first overlay, in which users set the image, replicas and whatever else differs in an environment.

    Args:
        installation: The operator and its options.
    """
    image, _, tag = installation.image.partition(":") if "@" not in installation.image else ("", "", "")
    replaced = {"name": image, "newName": f"registry.example.com/{image}", "newTag": tag}
    images = dump_document({"images": [replaced]}) if tag and "/" not in installation.image else ""
    text = f"""# Production: what differs from the base, such as the image, patches and replicas. This file is yours.
apiVersion: {_API}/v1beta1
kind: Kustomization
resources:
  - ../../base
# With the CustomResourceDefinitions of the Prometheus operator:
# components:
#   - ../../components/monitoring
{images}{_followed_namespace(installation)}"""
    return {"overlays/production/kustomization.yaml": text}


def _followed_namespace(installation: Installation) -> str:
    """Return replacements by which webhooks leave out the namespace of the operator also if the overlay sets another.

    A `namespace` of the overlay changes the namespaces of objects, and not the values of selectors.
    """
    fields = {
        (configuration["kind"], ".".join(("webhooks", f"[name={webhook['name']}]", path)))
        for configuration in installation.webhooks()
        for webhook in configuration["webhooks"]
        for path in _places(webhook.get("namespaceSelector") or {}, installation.namespace)
    }
    if not fields:
        return ""
    targets = [
        {"select": {"kind": kind}, "fieldPaths": sorted(path for of, path in fields if of == kind)}
        for kind in sorted({kind for kind, _ in fields})
    ]
    source = {"kind": "Service", "name": installation.name, "fieldPath": "metadata.namespace"}
    note = (
        "# Webhooks leave out the namespace of the operator, also if this overlay sets another one with `namespace`.\n"
    )
    return note + dump_document({"replacements": [{"source": source, "targets": targets}]})


def _places(selector: Mapping[str, Any], namespace: str) -> Iterator[str]:
    for number, expression in enumerate(selector.get("matchExpressions") or ()):
        if expression.get("values") == [*SYSTEM_NAMESPACES, namespace]:
            yield f"namespaceSelector.matchExpressions.{number}.values.{len(SYSTEM_NAMESPACES)}"


def documents(manifests: Sequence[Manifest], *, note: str) -> str:
    """Return manifests as the YAML documents of one file, which begins with the note that it is generated."""
    return f"# {note}\n" + "---\n".join(map(dump_document, manifests))


def base_folder(folder: str, files: Mapping[str, Sequence[Manifest]], *, note: str) -> dict[str, str]:
    """Return the files of a folder that is a base.

    Args:
        folder: Its path.
        files: The objects of each file; one without objects is left out.
        note: The note at the start of each file.
    """
    return _folder(folder, files, f"{_API}/v1beta1", "Kustomization", note)


def component_folder(folder: str, files: Mapping[str, Sequence[Manifest]], *, note: str) -> dict[str, str]:
    """Return the files of a folder that is a component, which overlays may include.

    Args:
        folder: Its path.
        files: The objects of each file; one without objects is left out.
        note: The note at the start of each file.
    """
    return _folder(folder, files, f"{_API}/v1alpha1", "Component", note)


def _folder(
    folder: str, files: Mapping[str, Sequence[Manifest]], api_version: str, kind: str, note: str
) -> dict[str, str]:
    used = {name: manifests for name, manifests in files.items() if manifests}
    listed = {"apiVersion": api_version, "kind": kind, "resources": [*used]}
    texts = {name: documents(manifests, note=note) for name, manifests in used.items()}
    texts["kustomization.yaml"] = documents([listed], note=note)
    return {f"{folder}/{name}": text for name, text in texts.items()}
