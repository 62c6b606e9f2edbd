"""Commands that keep the count of a live target when `replicas` leaves its manifest, for each tool."""

from __future__ import annotations

import json
import re
from typing import Final

from ocf.autoscaling.targets.targets import Reference
from ocf.objects.manifest import split_api_version

__all__ = ["hand_over"]

# Kinds whose replicas the API server sets to 1; those of other kinds depend on their definitions.
_DEFAULT_OF_ONE: Final = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet")})
# Names as the API server accepts them; anything else would need quotes in a shell and in a template.
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def hand_over(target: Reference, replicas: int) -> str:
    """Return what to do before `replicas` leaves the manifest of a target, with the commands for this object."""
    group = split_api_version(target.api_version)[0]
    fallen = "1" if (group, target.kind) in _DEFAULT_OF_ONE else "the default of its kind"
    first = (
        f"Remove replicas before the first apply. Of a live target do not just remove it: kubectl apply and Helm 3 set "
        f"the count to {fallen}."
    )
    names = (target.api_version.replace("/", "."), target.kind, target.name, target.namespace or "x")
    if not all(map(_PLAIN.fullmatch, names)):
        return first
    resource = target.kind.lower() + (f".{group}" if group not in {"", "apps"} else "")
    place = f" --namespace={target.namespace}" if target.namespace else ""
    named = {"name": target.name, **({"namespace": target.namespace} if target.namespace else {})}
    live = f"$(kubectl get {resource} {target.name}{place} -o jsonpath={{.spec.replicas}})"
    applied = {"apiVersion": target.api_version, "kind": target.kind, "metadata": named, "spec": {"replicas": 0}}
    text = json.dumps(applied).replace('"replicas": 0', f"\"replicas\": '{live}'")
    # A manifest with a namespace is applied there, in whatever namespace the release is.
    namespace = f'"{target.namespace}"' if target.namespace else ".Release.Namespace"
    lookup = f'(lookup "{target.api_version}" "{target.kind}" {namespace} "{target.name}")'
    return (
        f"{first} With kubectl apply, first remove it from the last applied manifest: "
        f"`kubectl apply edit-last-applied {resource}/{target.name}{place}`. With server-side apply and Helm 4, first "
        "let another field manager own the live count; for an object that was applied client-side, set replicas in its "
        "file to the live count and run `kubectl apply --server-side -f FILE` before that, because kubectl gives all "
        "fields to the first manager that applies server-side, and then none is removed that leaves the file: "
        f"`echo '{text}' | kubectl apply --server-side "
        f"--field-manager=replicas-handover -f -`. With Helm 3, keep the field and let each upgrade render the live "
        f'count: `replicas: {{{{ dig "spec" "replicas" {replicas} {lookup} | int }}}}`; '
        "helm rollback sets the count that the revision was rendered with. For a chart that does so, the comment "
        "# ocf: ignore fixed-replicas in the manifest of the HPA, or --disable fixed-replicas, hides this finding."
    )
