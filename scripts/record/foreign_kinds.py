"""Record CustomResourceDefinitions of other projects, with their samples, for the tests of `ocf new kind`.

    python -m scripts.record.foreign_kinds

Downloads the Go modules below, and writes the definitions, each with its preferred version only, and up to three
objects of the module that the embedded API server accepts, into `tests/scaffold/foreign_kind/recorded`, and their table
into `docs/start/new.md`.
"""

import asyncio
import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.cli.manifest_files import Document, read_documents
from ocf.cli.owner_check import apply_definitions, check_objects
from ocf.errors import ConfigError, OcfError
from ocf.objects import Manifest
from ocf.objects.manifest import SERVER_METADATA
from ocf.scaffold import foreign_kinds
from ocf_server import EmbeddedCluster
from tests.scaffold.foreign_kind.corpus import PAGE, RECORDED, TABLE, table

_SAMPLES: Final = 3
_LONGEST: Final = 20_000
_APPROVED: Final = "api-approved.kubernetes.io"
"""Annotation without which the API server rejects definitions of the groups of Kubernetes."""


class Source(NamedTuple):
    """Definitions of a project.

    Args:
        project: Its name.
        module: Its Go module, with the version.
        path: File or folder of the definitions in the module.
        kinds: The kinds.
    """

    project: str
    module: str
    path: str
    kinds: tuple[str, ...]


SOURCES: Final = (
    Source("Argo CD", "github.com/argoproj/argo-cd/v3@v3.5.6", "manifests/crds", ("Application", "AppProject")),
    Source(
        "Argo Rollouts", "github.com/argoproj/argo-rollouts@v1.8.5", "manifests/crds", ("Rollout", "AnalysisTemplate")
    ),
    Source(
        "Argo Workflows",
        "github.com/argoproj/argo-workflows/v3@v3.6.0",
        "manifests/base/crds/full",
        ("WorkflowTaskResult", "WorkflowEventBinding"),
    ),
    Source("cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds", ("Certificate", "Issuer")),
    Source(
        "Cilium",
        "github.com/cilium/cilium@v1.20.2",
        "pkg/k8s/apis/cilium.io/client/crds/v2",
        ("CiliumNetworkPolicy", "CiliumEnvoyConfig"),
    ),
    Source(
        "CloudNativePG",
        "github.com/cloudnative-pg/cloudnative-pg@v1.25.0",
        "config/crd/bases",
        ("Cluster", "ScheduledBackup"),
    ),
    Source(
        "Cluster API", "sigs.k8s.io/cluster-api@v1.14.2", "core/config/crd/bases", ("MachineHealthCheck", "Machine")
    ),
    Source(
        "Cluster API Provider AWS",
        "sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0",
        "config/crd/bases",
        ("EKSConfig", "ROSAMachinePool"),
    ),
    Source("Contour", "github.com/projectcontour/contour@v1.33.8", "examples/contour/01-crds.yaml", ("HTTPProxy",)),
    Source(
        "Crossplane",
        "github.com/crossplane/crossplane@v1.19.0",
        "cluster/crds",
        ("Composition", "CompositeResourceDefinition", "Function"),
    ),
    Source("External DNS", "sigs.k8s.io/external-dns@v0.19.0", "charts/external-dns/crds", ("DNSEndpoint",)),
    Source(
        "External Secrets",
        "github.com/external-secrets/external-secrets@v1.3.2",
        "config/crds/bases",
        ("ExternalSecret", "PushSecret"),
    ),
    Source("Flux helm-controller", "github.com/fluxcd/helm-controller@v1.4.0", "config/crd/bases", ("HelmRelease",)),
    Source(
        "Flux kustomize-controller",
        "github.com/fluxcd/kustomize-controller@v1.9.5",
        "config/crd/bases",
        ("Kustomization",),
    ),
    Source(
        "Flux source-controller",
        "github.com/fluxcd/source-controller@v1.9.5",
        "config/crd/bases",
        ("GitRepository", "Bucket"),
    ),
    Source(
        "Gatekeeper",
        "github.com/open-policy-agent/gatekeeper/v3@v3.23.1",
        "charts/gatekeeper/crds",
        ("ConstraintTemplate", "Assign"),
    ),
    Source("Gateway API", "sigs.k8s.io/gateway-api@v1.6.1", "config/crd/standard", ("Gateway", "HTTPRoute")),
    Source(
        "Istio",
        "istio.io/api@v1.31.1",
        "kubernetes/customresourcedefinitions.gen.yaml",
        ("VirtualService", "AuthorizationPolicy"),
    ),
    Source("JobSet", "sigs.k8s.io/jobset@v0.8.0", "charts/jobset/crds", ("JobSet",)),
    Source("Karpenter", "sigs.k8s.io/karpenter@v1.14.0", "kwok/charts/crds", ("NodePool", "NodeClaim")),
    Source(
        "KEDA", "github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases", ("ScaledObject", "TriggerAuthentication")
    ),
    Source("Knative Serving", "knative.dev/serving@v0.51.0", "config/core/300-resources", ("Service", "Route")),
    Source("Kubeflow", "github.com/kubeflow/training-operator@v1.8.1", "manifests/base/crds", ("TFJob",)),
    Source("Kyverno", "github.com/kyverno/kyverno@v1.19.1", "cmd/cli/kubectl-kyverno/data/crds", ("PolicyException",)),
    Source("MetalLB", "go.universe.tf/metallb@v0.16.2", "config/crd/bases", ("IPAddressPool", "BGPPeer")),
    Source(
        "Node Feature Discovery",
        "sigs.k8s.io/node-feature-discovery@v0.17.0",
        "deployment/base/nfd-crds/nfd-api-crds.yaml",
        ("NodeFeatureRule",),
    ),
    Source(
        "Prometheus Operator",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd",
        ("ServiceMonitor", "PrometheusRule", "AlertmanagerConfig"),
    ),
    Source(
        "Snapshots",
        "github.com/kubernetes-csi/external-snapshotter/client/v8@v8.7.0",
        "config/crd",
        ("VolumeSnapshot", "VolumeSnapshotClass"),
    ),
    Source("Tekton", "github.com/tektoncd/pipeline@v1.0.0", "config/300-crds", ("Pipeline", "StepAction")),
    Source(
        "Traefik",
        "github.com/traefik/traefik/v3@v3.7.13",
        "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
        ("IngressRoute", "Middleware"),
    ),
    Source("Velero", "github.com/vmware-tanzu/velero@v1.18.3", "config/crd/v1/bases", ("Schedule", "Restore")),
    Source(
        "Vertical Pod Autoscaler",
        "k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1",
        "deploy/vpa-v1-crd-gen.yaml",
        ("VerticalPodAutoscaler",),
    ),
    Source(
        "VictoriaMetrics", "github.com/VictoriaMetrics/operator@v0.50.0", "config/crd/overlay", ("VMRule", "VMUser")
    ),
    Source(
        "Zalando Postgres operator",
        "github.com/kyverno/kyverno@v1.19.1",
        "test/conformance/chainsaw/validate/e2e/lowercase-kind-crd",
        ("postgresql",),
    ),
)


def main() -> None:
    """Download the modules, and write the definitions and samples."""
    lines = [json.dumps(each) for source in SOURCES for each in record(source)]
    text = "".join(f"{line}\n" for line in lines)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{len(lines)} definitions of {len(SOURCES)} projects, {RECORDED.stat().st_size // 1000} KB")


def with_table(page: str) -> str:
    """Return the page with the table of what is recorded."""
    before, _, after = page.partition(TABLE)
    _, _, rest = after.partition("\n## ")
    return f"{before}{table()}\n## {rest}"


def record(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the lines of a project."""
    folder = Path(download(source.module))
    module, version = source.module.split("@")
    documents = read_documents([str(folder / source.path)])
    definitions = {
        each.manifest["spec"]["names"]["kind"]: each.manifest
        for each in documents
        if each.manifest is not None
        and each.manifest.get("kind") == "CustomResourceDefinition"
        and each.manifest.get("spec")
    }
    found = [preferred(definitions[kind]) for kind in source.kinds]
    samples = asyncio.run(accepted(folder, found))
    for definition in found:
        kind = definition["spec"]["names"]["kind"]
        print(f"{source.project}: {kind}, {len(samples[kind])} samples")
        yield {
            "project": source.project,
            "module": module,
            "version": version,
            "definition": definition,
            "samples": samples[kind],
        }


def download(module: str) -> str:
    """Return the folder of a module."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 (a fixed command)
            ["go", "mod", "download", "-json", module],  # noqa: S607 (go, of PATH)
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    found: str = json.loads(done.stdout)["Dir"]
    return found


def preferred(definition: Manifest) -> Manifest:
    """Return a definition with the version that `ocf new kind` takes, without what is not read."""
    (kind,) = foreign_kinds([definition])
    spec = definition["spec"]
    annotations = definition["metadata"].get("annotations") or {}
    approved = {name: value for name, value in annotations.items() if name == _APPROVED}
    (version,) = (each for each in spec["versions"] if each["name"] == kind.version)
    return {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {"name": definition["metadata"]["name"], **({"annotations": approved} if approved else {})},
        "spec": {
            **{name: spec[name] for name in ("group", "names", "scope")},
            "versions": [{**version, "storage": True}],
        },
    }


async def accepted(folder: Path, definitions: list[Manifest]) -> dict[str, list[Manifest]]:
    """Return objects of a module that the embedded API server accepts, by kind."""
    embedded = EmbeddedCluster()
    for definition in definitions:
        try:
            await apply_definitions(embedded, [definition])
        except ConfigError as error:
            print(f"checked without patterns: {error}")
            await apply_definitions(embedded, [without_patterns(definition)])
    wanted = {
        (f"{each['spec']['group']}/{each['spec']['versions'][0]['name']}", each["spec"]["names"]["kind"])
        for each in definitions
    }
    found: dict[str, list[Manifest]] = {kind: [] for _, kind in wanted}
    for document in objects(folder, {kind for _, kind in wanted}):
        manifest = document.manifest or {}
        kept = found.get(str(manifest.get("kind")), [])
        if (manifest.get("apiVersion"), manifest.get("kind")) not in wanted or len(kept) == _SAMPLES:
            continue
        try:
            await check_objects([document], embedded)
        except OcfError:
            continue
        sample = without_server_fields(manifest)
        if sample not in kept and len(json.dumps(sample)) < _LONGEST:
            kept.append(sample)
    return found


def objects(folder: Path, kinds: set[str]) -> Iterator[Document]:
    """Yield the objects of the YAML files of a module that name one of the kinds."""
    needles = [f"kind: {kind}\n" for kind in kinds]
    for path in sorted(folder.rglob("*.y*ml")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if "{{" not in text and "CustomResourceDefinition" not in text and any(each in text for each in needles):
            yield from (each for each in read_documents([str(path)]) if each.manifest is not None)


def without_patterns(value: Any) -> Any:
    """Return a definition without patterns, one of which the embedded API server cannot read."""
    if isinstance(value, dict):
        return {
            name: without_patterns(below)
            for name, below in value.items()
            if name != "pattern" or not isinstance(below, str)
        }
    return [without_patterns(below) for below in value] if isinstance(value, list) else value


def without_server_fields(manifest: Mapping[str, Any]) -> Manifest:
    """Return an object as a user would write it."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in SERVER_METADATA}
    content = {name: value for name, value in manifest.items() if name != "status" and value is not None}
    return {**content, "metadata": metadata}


if __name__ == "__main__":
    main()
