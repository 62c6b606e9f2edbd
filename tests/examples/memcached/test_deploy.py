"""Deployment of the operator: manifests that are up to date and accepted by API servers, and an image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from examples.memcached.operator import NAME
from examples.memcached.settings import Settings
from ocf.cli.app import app
from ocf.cluster import ServiceAccount
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime.admission import Service
from ocf.runtime.operator import Lease
from ocf.testing.envtest.binaries import Program

if TYPE_CHECKING:
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.binaries import Programs

ROOT: Final = Path(__file__).parents[3]
DEPLOY: Final = ROOT / "examples" / "memcached" / "deploy"
BASE: Final = DEPLOY / "base"
CONTAINERFILE: Final = DEPLOY / "Containerfile"

ACCOUNT: Final = ServiceAccount(NAME, NAME)
SERVICE: Final = Service(NAME, NAME)
COMMAND: Final = [
    "manifests",
    "examples.memcached",
    "--components=examples.memcached.component:every_state",
    "--owner=examples/memcached/deploy/samples",
    "--directory=examples/memcached/deploy",
    "--image=memcached-operator:0.1.0",
    "--replicas=2",
]
"""How the manifests are written, with `ocf`; `--check` compares them."""

# The rules of the operator that this one is modelled on; what is granted here must be among them.
CHILD: Final = {"create", "delete", "get", "list", "patch", "update", "watch"}
BOUND: Final = {
    ("memcached.c5c3.io", "memcacheds"): CHILD,
    ("memcached.c5c3.io", "memcacheds/status"): {"get", "patch", "update"},
    ("apps", "deployments"): CHILD,
    ("", "services"): CHILD,
    ("policy", "poddisruptionbudgets"): CHILD,
    ("networking.k8s.io", "networkpolicies"): CHILD,
    ("monitoring.coreos.com", "servicemonitors"): CHILD,
    ("autoscaling", "horizontalpodautoscalers"): CHILD,
    ("", "secrets"): {"get", "list", "watch"},
    ("events.k8s.io", "events"): {"create", "patch"},
}
# What it needs besides, for objects of its own: its lease, the certificate of its webhooks, and their configurations.
OWN: Final = {"leases", "secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}


def read(name: str) -> list[Manifest]:
    return list(load_documents((BASE / name).read_text(encoding="utf-8")))


def only(name: str, kind: str) -> Manifest:
    (found,) = [manifest for manifest in read(name) if manifest["kind"] == kind]
    return found


def container() -> dict[str, Any]:
    (found,) = only("deployment.yaml", "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def kustomized(programs: Programs, folder: Path) -> tuple[Manifest, ...]:
    """Return what `kubectl kustomize` writes; it asks no cluster."""
    command = [str(programs.path(Program.KUBECTL)), "kustomize", str(folder)]
    return load_documents(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603 (ours)


def namespaces(value: Any) -> set[str]:
    """Return every namespace that is named anywhere in a value, leaving definitions and the field's own schema out."""
    if isinstance(value, dict):
        if value.get("kind") == "CustomResourceDefinition":
            return set()
        named = {value["namespace"]} if isinstance(value.get("namespace"), str) else set()
        return named.union(*map(namespaces, value.values()))
    return set().union(*map(namespaces, value)) if isinstance(value, list | tuple) else set()


class TestManifests:
    def test_the_generated_manifests_are_current(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write them anew with the command that docs/start/memcached.md shows."""
        monkeypatch.chdir(ROOT)

        done = CliRunner().invoke(app, [*COMMAND, "--check"])

        assert (done.exit_code, done.stdout) == (0, "examples/memcached/deploy is current: 14 files\n")
        page = (ROOT / "docs" / "start" / "memcached.md").read_text(encoding="utf-8").replace("\\\n", "")
        assert f"ocf {' '.join(COMMAND)}".split() in [line.split() for line in page.splitlines()]

    def test_every_file_is_in_the_kustomization(self) -> None:
        kustomization = only("kustomization.yaml", "Kustomization")

        assert {*kustomization["resources"], "kustomization.yaml"} == {path.name for path in BASE.iterdir()}

    def test_it_runs_as_the_account_that_has_the_rights(self) -> None:
        account = only("service-account.yaml", "ServiceAccount")["metadata"]
        deployment = only("deployment.yaml", "Deployment")

        assert (account["name"], account["namespace"]) == (ACCOUNT.name, ACCOUNT.namespace)
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == ACCOUNT.name
        assert deployment["metadata"]["namespace"] == ACCOUNT.namespace

    def test_the_service_targets_the_webhooks(self) -> None:
        service = only("service.yaml", "Service")
        ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
        options = Settings.of({"POD_NAMESPACE": ACCOUNT.namespace, "WEBHOOK_SERVICE": SERVICE.name}).options()
        assert options.listen is not None
        assert options.admission is not None
        template = only("deployment.yaml", "Deployment")["spec"]["template"]

        assert (service["metadata"]["name"], service["metadata"]["namespace"]) == (SERVICE.name, SERVICE.namespace)
        assert {"name": "webhooks", "port": SERVICE.port, "targetPort": "webhooks"} in service["spec"]["ports"]
        assert ports == {"metrics": options.listen.port, "webhooks": options.admission.port}
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()

    def test_the_environment_is_what_the_program_reads(self) -> None:
        given = {each["name"]: each.get("value", ACCOUNT.namespace) for each in container()["env"]}
        options = Settings.of(given).options()

        assert options.lease == Lease(NAME, ACCOUNT.namespace)
        assert options.admission is not None
        assert options.admission.address == SERVICE

    def test_kustomize_writes_all_of_them(self, envtest_programs: Programs) -> None:
        assert len(kustomized(envtest_programs, BASE)) == sum(len(read(path.name)) for path in BASE.iterdir()) - 1

    def test_an_overlay_may_put_it_elsewhere(self, envtest_programs: Programs, tmp_path: Path) -> None:
        """Also what names the namespace within: subjects of bindings, and the Service of the webhooks."""
        base = os.path.relpath(BASE, tmp_path.resolve())
        image = "{name: memcached-operator, newName: registry.example.com/cache, newTag: '7'}"
        overlay = f"resources: [{base}]\nnamespace: caches\nimages: [{image}]\n"
        (tmp_path / "kustomization.yaml").write_text(overlay)

        written = kustomized(envtest_programs, tmp_path)

        assert namespaces(written) == {"caches"}
        (deployment,) = [one for one in written if one["kind"] == "Deployment"]
        (found,) = deployment["spec"]["template"]["spec"]["containers"]
        assert found["image"] == "registry.example.com/cache:7"


class TestRights:
    def test_they_are_within_those_of_its_model(self) -> None:
        (role,) = [one for one in read("roles.yaml") if one["kind"] == "ClusterRole"]
        for rule in role["rules"]:
            for resource in rule["resources"]:
                if not (resource in OWN and rule.get("resourceNames") == [ACCOUNT.name]):
                    assert {*rule["verbs"]} <= BOUND[rule["apiGroups"][0], resource], rule

    def test_beyond_its_namespace_what_is_its_own_is_named(self) -> None:
        (role,) = [one for one in read("roles.yaml") if one["kind"] == "Role"]

        assert role["metadata"]["namespace"] == ACCOUNT.namespace
        assert {resource for rule in role["rules"] for resource in rule["resources"]} <= OWN
        # Rules for create cannot be restricted by name.
        assert [rule["verbs"] for rule in role["rules"] if "resourceNames" not in rule] == [["create"], ["create"]]

    def test_no_object_of_a_cache_is_ever_replaced(self) -> None:
        """An apply is a patch, so `update`, which could replace anything, is not asked for but of the status."""
        (role,) = [one for one in read("roles.yaml") if one["kind"] == "ClusterRole"]
        updated = [resource for rule in role["rules"] if "update" in rule["verbs"] for resource in rule["resources"]]

        assert updated == ["memcacheds/status"]

    def test_there_are_no_wildcards(self) -> None:
        assert "*" not in json.dumps([rule for one in read("roles.yaml") for rule in one.get("rules", ())])


class TestOnARealApiServer:
    """Only the namespace is stored: no process would answer the webhooks, and other tests create caches as well."""

    @pytest.fixture(autouse=True)
    def _namespace(self, envtest_plane: ControlPlane) -> None:
        envtest_plane.kubectl("apply", "--server-side", f"--filename={BASE / 'namespace.yaml'}")

    def test_the_manifests_are_accepted(self, envtest_plane: ControlPlane) -> None:
        said = envtest_plane.kubectl(
            "apply", "--server-side", "--dry-run=server", "--validate=strict", f"--kustomize={BASE}"
        )

        assert len(said.splitlines()) == sum(len(read(path.name)) for path in BASE.iterdir()) - 1

    def test_a_pod_is_as_restricted_as_can_be(self, envtest_plane: ControlPlane) -> None:
        """Its namespace enforces the strictest of the pod security standards."""
        template = only("deployment.yaml", "Deployment")["spec"]["template"]
        metadata = {**template["metadata"], "name": "one", "namespace": ACCOUNT.namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

        said = envtest_plane.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))
        assert said.startswith("pod/one created")
        template["spec"]["securityContext"] = {}
        with pytest.raises(ConfigError, match='violates PodSecurity "restricted'):
            envtest_plane.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))


class TestImage:
    def lines(self, word: str) -> list[list[str]]:
        text = CONTAINERFILE.read_text(encoding="utf-8")
        return [line.split()[1:] for line in text.splitlines() if line.split(" ")[0] == word]

    def test_it_does_not_run_as_root(self) -> None:
        (user,) = self.lines("USER")
        security = only("deployment.yaml", "Deployment")["spec"]["template"]["spec"]["securityContext"]

        assert user == [f"{security['runAsUser']}:{security['runAsGroup']}"]

    def test_it_contains_no_build_tools(self) -> None:
        stages = CONTAINERFILE.read_text(encoding="utf-8").split("\nFROM ")[1:]

        assert len(stages) == 2
        assert "RUN" not in stages[-1]
        assert {stage.split()[0] for stage in stages} == {"docker.io/library/python:3.13-slim"}

    def test_every_requirement_is_locked(self) -> None:
        lock = (ROOT / "requirements" / "operator.lock").read_text(encoding="utf-8")
        tested = (ROOT / "requirements" / "test.lock").read_text(encoding="utf-8")
        pinned = set(re.findall(r"^([\w.-]+==[\w.]+)", lock, re.MULTILINE))

        assert {"kopf", "cryptography", "kubernetes"} <= {pin.partition("==")[0] for pin in pinned}
        assert pinned <= set(re.findall(r"^([\w.-]+==[\w.]+)", tested, re.MULTILINE)), "they are what is tested"

    def test_nothing_is_fetched_but_from_the_context(self) -> None:
        assert self.lines("ADD") == []
        for *sources, _ in self.lines("COPY"):
            paths = [source for source in sources if not source.startswith("--from")]
            assert all(list(ROOT.glob(path)) for path in paths if not path.startswith("/")), paths

    def test_the_program_starts_from_what_is_copied(self, tmp_path: Path) -> None:
        """Run it in an otherwise empty folder, with an invalid setting, so that it ends at once."""
        (tmp_path / "examples" / "memcached").mkdir(parents=True)
        for file in (ROOT / "examples" / "memcached").glob("*.py"):
            shutil.copy(file, tmp_path / "examples" / "memcached")
        (entry,) = self.lines("ENTRYPOINT")
        command = [sys.executable, *json.loads(" ".join(entry))[1:]]
        environment = {**os.environ, "PORT": "none", "PYTHONPATH": str(tmp_path)}

        done = subprocess.run(  # noqa: S603 (our own program)
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

        assert "PORT must be a port, 0 to 65535, got 'none'" in done.stderr
