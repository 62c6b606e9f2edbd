"""A control plane runs inside its block only, is ready, and is private to its process."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import ListOptions
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf.testing.plugin import Envtest, RunControllers, RunKwok, RunScheduler
from tests.requirements import leave_out
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from tests.testing.envtest.conftest import Eventually

# Starts a control plane with a controller manager, prints the folder of its files, and is killed.
KILLED = """
import os, signal
from ocf.testing.envtest import ControlPlane, ControllerName

plane = ControlPlane()
plane.start()
with plane.controllers(ControllerName.REPLICA_SET):
    print(plane.kubeconfig.parent, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


PREFERENCES = """
apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults:
- command: get
  options:
  - name: output
    default: json
"""


def of_folder(folder: Path) -> list[int]:
    """Return the processes that were started with this folder on their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def workload(name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    }


class TestLife:
    async def test_it_is_ready_inside_its_block_and_ended_after_it(
        self, envtest_programs: Programs, eventually: Eventually
    ) -> None:
        async with ControlPlane(envtest_programs, feature_gates={"HPAScaleToZero": True}) as plane:
            folder = plane.kubeconfig.parent
            assert folder.stat().st_mode & 0o777 == 0o700
            assert of_folder(folder)
            with plane.namespace() as namespace:
                async with await plane.cluster() as cluster:
                    hpa = {
                        "apiVersion": "autoscaling/v2",
                        "kind": "HorizontalPodAutoscaler",
                        "metadata": {"name": "web", "namespace": namespace},
                        "spec": {
                            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                            "minReplicas": 0,
                            "maxReplicas": 3,
                            "metrics": [
                                {
                                    "type": "External",
                                    "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}},
                                }
                            ],
                        },
                    }
                    stored = await cluster.create(hpa, field_manager="test")
                    assert stored["spec"]["minReplicas"] == 0, "only with its feature gate"
        assert not folder.exists()
        eventually(lambda: not of_folder(folder))
        with pytest.raises(ConfigError, match="not running; use it inside of its `with` block"):
            _ = plane.url

    @pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
    def test_a_killed_process_leaves_nothing_behind(self, envtest_programs: Programs, eventually: Eventually) -> None:
        if envtest_programs.missing:
            leave_out("envtest", "a program of the control plane is missing: `make envtest` adds it")
        done = subprocess.run(  # noqa: S603 (ours)
            [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
        )
        folder = Path(done.stdout.strip())
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert folder.name.startswith("ocf-envtest-")
        eventually(lambda: not of_folder(folder))
        eventually(lambda: not folder.exists())

    def test_a_port_in_use_is_skipped(self, envtest_programs: Programs) -> None:
        """Etcd finds the first port taken, and the API server the third."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            used = taken.getsockname()[1]
            asked: list[int] = []

            def ports() -> int:
                asked.append(used if len(asked) in (0, 2) else _free())
                return asked[-1]

            with ControlPlane(envtest_programs, ports=ports) as plane:
                assert len(asked) == 4
                assert plane.url == f"https://127.0.0.1:{asked[3]}"

    def test_a_server_that_rejects_its_flags_is_an_error_and_leaves_nothing(
        self, envtest_programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        plane = ControlPlane(envtest_programs, server_arguments={"no-such-flag": "1"})
        with pytest.raises(
            ConfigError, match=r"kube-apiserver ended with code 1 (.*\n)*.*unknown flag: --no-such-flag"
        ):
            plane.start()
        assert left_in(tmp_path) == []
        assert of_folder(tmp_path) == []

    async def test_a_cancelled_start_leaves_nothing(
        self, envtest_programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        reached, ports = threading.Event(), [_free(), _free()]

        def port() -> int:
            if len(ports) == 1:  # etcd is up, the API server comes now
                reached.set()
            return ports.pop()

        entering = asyncio.ensure_future(ControlPlane(envtest_programs, ports=port).__aenter__())
        await asyncio.to_thread(reached.wait)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert left_in(tmp_path) == []
        assert of_folder(tmp_path) == []

    def test_it_is_not_started_twice(self, envtest_plane: ControlPlane) -> None:
        with pytest.raises(ConfigError, match="running already"):
            envtest_plane.start()

    def test_without_programs_the_error_says_what_to_do(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        with pytest.raises(ConfigError, match=r"no control plane is installed: run `make envtest` \(.*\), or set KUBE"):
            ControlPlane().start()


class TestUse:
    async def test_another_user_may_do_what_rbac_permits(self, envtest: Envtest) -> None:
        kubeconfig = envtest.plane.kubeconfig_for("jane", "dev", namespace=envtest.namespace)
        key = ObjectKey("v1", "ConfigMap", "absent", envtest.namespace)
        async with await envtest.plane.cluster(kubeconfig) as cluster:
            with pytest.raises(ForbiddenError):
                await cluster.get(key)
            envtest.kubectl("create", "role", "view", "--verb=get", "--resource=configmaps")
            envtest.kubectl("create", "rolebinding", "view", "--role=view", "--group=dev")

            async def allowed() -> bool:
                """Return whether the authorizer, which watches roles, has seen the role."""
                return await _fails(cluster.get(key)) is NotFoundError

            await eventually(allowed)

    def test_a_user_with_the_administrators_name_is_not_an_administrator(self, envtest: Envtest) -> None:
        envtest.plane.kubeconfig_for("admin")
        assert "yes" in envtest.plane.kubectl("auth", "can-i", "*", "*")

    def test_kubectl_works_in_the_namespace_and_reads_stdin(self, envtest: Envtest) -> None:
        manifest = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
        assert envtest.kubectl("apply", "--filename=-", stdin=manifest) == "configmap/a created\n"
        assert f"namespace: {envtest.namespace}" in envtest.kubectl("get", "configmap", "a", "--output=yaml")

    def test_kubectl_does_not_read_the_users_home(
        self, envtest: Envtest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Preferences there would change its output, and its cache would be written there."""
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "kuberc").write_text(PREFERENCES)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBERC", str(tmp_path / ".kube" / "kuberc"))
        assert envtest.kubectl("get", "namespace", "default").startswith("NAME")
        assert [file.name for file in tmp_path.rglob("*")] == [".kube", "kuberc"]

    async def test_several_hundred_services_get_addresses(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster
    ) -> None:
        def service(number: int) -> Manifest:
            metadata = {"name": f"web-{number}", "namespace": envtest.namespace}
            return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}

        made = await asyncio.gather(
            *(envtest_cluster.create(service(number), field_manager="test") for number in range(300))
        )

        assert len({one["spec"]["clusterIP"] for one in made}) == 300

    def test_a_failing_kubectl_raises_its_standard_error(self, envtest: Envtest) -> None:
        with pytest.raises(ConfigError, match=r'kubectl get pod a: code 1: .*pods "a" not found'):
            envtest.kubectl("get", "pod", "a")

    def test_an_invalid_name_of_a_namespace_is_rejected(self, envtest_plane: ControlPlane) -> None:
        with (
            pytest.raises(ConfigError, match=r"namespace 'A_' not created: .*lowercase"),
            envtest_plane.namespace("A_"),
        ):
            pass


class TestControllers:
    async def test_a_deployment_gets_its_pods(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
    ) -> None:
        with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET):
            await envtest_cluster.create(workload("web", envtest.namespace), field_manager="test")
            pods = await _items(envtest_cluster, "v1", "Pod", envtest.namespace, count=2)
        assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods} == {"ReplicaSet"}

    async def test_workloads_of_an_earlier_test_are_deleted(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
    ) -> None:
        with envtest.plane.namespace("earlier-") as earlier:
            await envtest_cluster.create(workload("web", earlier), field_manager="test")
            await envtest_cluster.create(_config_map("a", earlier), field_manager="test")
        await envtest_cluster.create(workload("web", envtest.namespace), field_manager="test")
        with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET):
            await _items(envtest_cluster, "v1", "Pod", envtest.namespace, count=2)
            await _items(envtest_cluster, "apps/v1", "Deployment", earlier, count=0)
            await _items(envtest_cluster, "v1", "Pod", earlier, count=0)
            await _items(envtest_cluster, "v1", "ConfigMap", earlier, count=1)

    async def test_objects_of_a_deleted_owner_are_collected(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
    ) -> None:
        owner = await envtest_cluster.create(_config_map("owner", envtest.namespace), field_manager="test")
        owned = _config_map("owned", envtest.namespace)
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        ]
        await envtest_cluster.create(owned, field_manager="test")
        await envtest_cluster.delete(ObjectKey.of(owner))
        with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
            await _items(envtest_cluster, "v1", "ConfigMap", envtest.namespace, count=0)

    async def test_a_namespace_is_deleted_with_its_objects(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
    ) -> None:
        with envtest_controllers(ControllerName.NAMESPACE):
            with envtest.plane.namespace("other-") as other:
                await envtest_cluster.create(_config_map("a", other), field_manager="test")
            key = ObjectKey("v1", "Namespace", other)

            async def gone() -> bool:
                return await _fails(envtest_cluster.get(key)) is NotFoundError

            await eventually(gone)

    async def test_an_autoscaler_is_reconciled(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
    ) -> None:
        """No metrics are served, so the controller reports that, and scales into the allowed range."""
        await envtest_cluster.create(workload("web", envtest.namespace), field_manager="test")
        hpa = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": envtest.namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 5,
                "maxReplicas": 7,
            },
        }
        await envtest_cluster.create(hpa, field_manager="test")
        key = ObjectKey("apps/v1", "Deployment", "web", envtest.namespace)
        period = timedelta(milliseconds=200)
        with envtest_controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=period):

            async def scaled() -> bool:
                return bool((await envtest_cluster.get(key))["spec"]["replicas"] == 5)

            await eventually(scaled)

    def test_a_controller_that_does_not_exist_is_an_error(self, envtest_controllers: RunControllers) -> None:
        with (
            pytest.raises(ConfigError, match=r"kube-controller-manager ended (.*\n)*.*no-such-controller"),
            envtest_controllers("no-such-controller"),
        ):
            pass

    def test_naming_no_controller_is_rejected(self, envtest_controllers: RunControllers) -> None:
        with pytest.raises(ConfigError, match="name at least one controller"), envtest_controllers():
            pass


class TestNodes:
    """Pods are scheduled to nodes that kwok simulates."""

    async def test_pods_run_on_a_node_that_fits(
        self,
        envtest: Envtest,
        envtest_cluster: ApiServerCluster,
        envtest_scheduler: RunScheduler,
        envtest_kwok: RunKwok,
    ) -> None:
        node = _node(f"{envtest.namespace}-a")
        with envtest_kwok(), envtest_scheduler():
            await envtest_cluster.create(node, field_manager="test")
            pod = await envtest_cluster.create(_pod("a", envtest.namespace, cpu="1"), field_manager="test")

            async def running() -> Any:
                return await envtest_cluster.get(ObjectKey.of(pod))

            seen = await eventually(running, lambda pod: pod["status"]["phase"] == "Running")
            assert seen["spec"]["nodeName"] == node["metadata"]["name"]
            assert {each["type"]: each["status"] for each in seen["status"]["conditions"]}["Ready"] == "True"
            await envtest_cluster.delete(ObjectKey.of(pod))
            await _items(envtest_cluster, "v1", "Pod", envtest.namespace, count=0)
        await envtest_cluster.delete(ObjectKey("v1", "Node", node["metadata"]["name"]))

    async def test_each_node_has_a_lease(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_kwok: RunKwok
    ) -> None:
        """Without one, the node lifecycle controller takes the node for lost after its grace period."""
        node = await envtest_cluster.create(_node(f"{envtest.namespace}-a"), field_manager="test")
        with envtest_kwok():

            async def leases() -> Any:
                options = ListOptions(namespace="kube-node-lease")
                found = await envtest_cluster.list("coordination.k8s.io/v1", "Lease", options)
                return [each["metadata"]["name"] for each in found.items]

            await eventually(leases, lambda names: node["metadata"]["name"] in names)
        await envtest_cluster.delete(ObjectKey.of(node))

    async def test_the_scheduler_says_why_a_pod_fits_nowhere(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_scheduler: RunScheduler
    ) -> None:
        node = _node(f"{envtest.namespace}-a")
        await envtest_cluster.create(node, field_manager="test")
        with envtest_scheduler({"podMaxBackoffSeconds": 1}):
            pod = await envtest_cluster.create(_pod("a", envtest.namespace, cpu="100"), field_manager="test")

            async def conditions() -> Any:
                return (await envtest_cluster.get(ObjectKey.of(pod)))["status"].get("conditions")

            (seen,) = await eventually(conditions)
            assert (seen["type"], seen["status"], seen["reason"]) == ("PodScheduled", "False", "Unschedulable")
            assert "nodes are available" in seen["message"]
        await envtest_cluster.delete(ObjectKey("v1", "Node", node["metadata"]["name"]))

    async def test_the_user_simulates_other_stages(
        self, envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_kwok: RunKwok
    ) -> None:
        stage = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": "dies"},
            "spec": {
                "resourceRef": {"apiGroup": "v1", "kind": "Node"},
                "selector": {
                    "matchExpressions": [{"key": ".status.phase", "operator": "NotIn", "values": ["Terminated"]}]
                },
                "next": {"statusTemplate": "phase: Terminated"},
            },
        }
        node = await envtest_cluster.create(_node(f"{envtest.namespace}-a"), field_manager="test")
        with envtest_kwok([stage]):

            async def phase() -> Any:
                return (await envtest_cluster.get(ObjectKey.of(node)))["status"].get("phase")

            assert await eventually(phase) == "Terminated"
        await envtest_cluster.delete(ObjectKey.of(node))

    def test_a_configuration_that_is_invalid_is_an_error(self, envtest_scheduler: RunScheduler) -> None:
        with (
            pytest.raises(ConfigError, match=r"kube-scheduler ended (.*\n)*.*parallelism"),
            envtest_scheduler({"parallelism": -1}),
        ):
            pass


def _node(name: str) -> Manifest:
    resources = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _pod(name: str, namespace: str, *, cpu: str) -> Manifest:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [container],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
    }


def _config_map(name: str, namespace: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


async def _items(cluster: ApiServerCluster, version: str, kind: str, namespace: str, *, count: int) -> Any:
    """Return the objects of a kind as soon as `count` of them exist."""

    async def listed() -> Any:
        items = (await cluster.list(version, kind, ListOptions(namespace=namespace))).items
        return items if len(items) == count else None

    return await eventually(listed, lambda items: items is not None)


async def _fails(request: Awaitable[object]) -> type[ApiError] | None:
    """Return the class of a request's error."""
    try:
        await request
    except ApiError as error:
        return type(error)
    return None


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
