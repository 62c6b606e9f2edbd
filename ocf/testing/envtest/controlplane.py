"""`ControlPlane`: etcd and an API server that run for the duration of a block, other servers on request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ocf.cluster.client import ApiServerCluster
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.testing.envtest import flags
from ocf.testing.envtest.binaries import ASSETS, REMEDY, Program, Programs, find_programs
from ocf.testing.envtest.bootstrap import ControlPlaneProcess, boot
from ocf.testing.envtest.certificates import CertificateFiles
from ocf.testing.envtest.companions import run_controllers, run_kwok, run_scheduler
from ocf.testing.envtest.crds import Installed, install_crds
from ocf.testing.envtest.kubectl import kubectl
from ocf.testing.envtest.startup import Ports, free_port

__all__ = ["ControlPlane"]

_CREATED: Final = 201


class ControlPlane:
    """A control plane for tests: etcd, an API server, and controllers on request.

    All servers listen on loopback only, with certificates issued for this control plane. Authorization is RBAC, and the
    default user is an administrator. No state remains: files are in a temporary folder, and the programs end with the
    block, or with this process, even if it is killed.

    It is a context manager and an asynchronous context manager. Starting takes a few seconds, so tests should share one
    control plane and use separate namespaces.

    Args:
        programs: The programs; None for those of `find_programs`.
        feature_gates: Kubernetes feature gates of the API server and the controllers.
        server_arguments: Flags of the API server, without dashes, that are added or replace the defaults; None removes
            a default.
        seconds: Start timeout of each program.
        ports: Returns a port to listen on.

    Raises:
        ConfigError: On entering, if the programs are missing or one of them does not start.

    Example:
        >>> async def main() -> None:
        ...     async with ControlPlane() as plane, await plane.cluster() as cluster:
        ...         with plane.namespace("shop-") as namespace:
        ...             page = await cluster.list("apps/v1", "Deployment", ListOptions(namespace=namespace))
    """

    def __init__(
        self,
        programs: Programs | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        server_arguments: Mapping[str, str | None] | None = None,
        seconds: float = 180.0,
        ports: Ports = free_port,
    ) -> None:
        self._programs = programs
        self._gates = {"feature-gates": flags.joined(feature_gates)} if feature_gates else {}
        self._changes = {**self._gates, **(server_arguments or {})}
        self._seconds = seconds
        self._ports = ports
        self._stack = ExitStack()
        self._given_up = threading.Event()
        self._now: ControlPlaneProcess | None = None
        self._served: dict[str, Installed] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._given_up.set()
            await asyncio.wait([starting])
            starting.exception()  # retrieved, so that asyncio does not log it
            self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def start(self) -> None:
        """Start the programs, as entering the `with` block does.

        Raises:
            ConfigError: If the programs are missing, one does not start, or they are already running.
        """
        if self._now is not None:
            raise ConfigError("this control plane is running already")
        with ExitStack() as stack:
            ports, seconds, given_up = self._ports, self._seconds, self._given_up
            self._now = boot(stack, self.programs, self._changes, ports=ports, seconds=seconds, given_up=given_up)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Stop the programs and remove their files, as leaving the `with` block does; may be called repeatedly."""
        self._now = None
        self._given_up.clear()
        self._stack.close()

    @property
    def programs(self) -> Programs:
        """The programs of this control plane.

        Raises:
            ConfigError: If none are found.
        """
        self._programs = self._programs or find_programs()
        if self._programs is None:
            raise ConfigError(f"no control plane is installed: run {REMEDY}, or set {ASSETS}")
        return self._programs

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, a member of `system:masters`."""
        return self._plane.kubeconfig

    @property
    def url(self) -> str:
        """URL of the API server."""
        return self._plane.url

    @property
    def authority(self) -> Path:
        """File with the certificate of the authority, for clients that do not use a kubeconfig."""
        return self._plane.base.authority.certificate

    def kubeconfig_for(self, user: str, *groups: str, namespace: str = "default") -> Path:
        """Return a kubeconfig for another user, whom RBAC restricts.

        Args:
            user: Name of the user, such as `system:serviceaccount:shop:operator`.
            *groups: Groups of the user.
            namespace: Default namespace of the user.

        Returns:
            The file; it is removed with the control plane.

        Raises:
            ConfigError: If a name is empty, or has more than 64 characters.
        """
        client = self._plane.base.authority.client(user, groups)
        return self._plane.write_kubeconfig(client.key.stem, client, namespace=namespace)

    def certificate_for(self, name: str, *hosts: str) -> CertificateFiles:
        """Return a server certificate for the loopback address, signed by `authority`.

        Args:
            name: Name of its files.
            *hosts: Additional host names, such as `hooks.shop.svc`; `localhost` is always included.

        Returns:
            The files; they are removed with the control plane.
        """
        return self._plane.base.authority.server(name, *hosts)

    async def cluster(self, kubeconfig: Path | None = None) -> ApiServerCluster:
        """Open a client in the running event loop.

        Args:
            kubeconfig: Kubeconfig of the user; None for the administrator.

        Returns:
            The cluster, which the caller must close, for example with `async with`.
        """
        return await ApiServerCluster.connect(kubeconfig or self.kubeconfig)

    @contextmanager
    def namespace(self, prefix: str = "test-") -> Iterator[str]:
        """Create a namespace for the duration of a block, and delete it afterwards.

        Only the namespace controller deletes all objects in it. Without that controller, its pods and workloads are
        deleted before the next start of controllers, the scheduler or kwok, which would act on them. The name is not
        reused for another namespace.

        Args:
            prefix: Prefix of the generated name.

        Yields:
            The name.

        Raises:
            ConfigError: If the API server rejects it.
        """
        probe = self._plane.server.probe
        code, answer = probe.ask("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        if code != _CREATED:
            raise ConfigError(f"namespace {prefix!r} not created: {answer.get('message', f'status code {code}')}")
        name: str = answer["metadata"]["name"]
        try:
            yield name
        finally:
            if self._now is not None:
                probe.ask("DELETE", f"/api/v1/namespaces/{name}")
                self._now.ended.add(name)

    def install_crds(self, *definitions: Manifest) -> None:
        """Create or replace CRDs, and wait until the API server serves their kinds.

        Waiting for the condition `Established` is not enough: early requests still fail with 404 or 429.

        Args:
            *definitions: CustomResourceDefinitions, as `ocf.runtime.crds.crd` returns them.

        Raises:
            ConfigError: If the API server rejects one, or does not serve its kind in time.
        """
        probe = self._plane.server.probe
        with probe.connected():
            install_crds(probe, *definitions, served=self._served, seconds=self._seconds)

    def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl and wait until it ends.

        Args:
            *arguments: Its command-line arguments.
            stdin: Its standard input, such as manifests for `apply --filename=-`.
            kubeconfig: Kubeconfig of the user; None for the administrator.

        Returns:
            Its standard output.

        Raises:
            ConfigError: If kubectl is missing or fails; contains its standard error.
        """
        program = self.programs.path(Program.KUBECTL)
        home = self._plane.base.folder / "kubectl"
        return kubectl(program, arguments, home=home, kubeconfig=kubeconfig or self.kubeconfig, stdin=stdin)

    def controllers(
        self,
        *names: str,
        hpa_sync_period: timedelta = timedelta(seconds=1),
        arguments: Mapping[str, str | None] | None = None,
    ) -> AbstractContextManager[None]:
        """Run a controller manager for the duration of a block.

        Its controllers act in every namespace, also in those that are being deleted.

        Args:
            *names: The controllers to run, see `ControllerName`.
            hpa_sync_period: Sync period of the HPA controller.
            arguments: Flags of the controller manager, as `server_arguments` of the class.

        Returns:
            A context manager. Entering it raises `ConfigError` if no controller is named, the program is missing
            (`setup-envtest` does not provide it), or it does not start.
        """
        changes = {**self._gates, **(arguments or {})}
        return run_controllers(self._plane, names, hpa_sync_period=hpa_sync_period, changes=changes)

    def scheduler(
        self, configuration: Mapping[str, Any] | None = None, *, arguments: Mapping[str, str | None] | None = None
    ) -> AbstractContextManager[None]:
        """Run the scheduler for the duration of a block.

        Args:
            configuration: Fields of its KubeSchedulerConfiguration, such as `podMaxBackoffSeconds` or `profiles`.
            arguments: Flags of the scheduler, as `server_arguments` of the class.

        Returns:
            A context manager, as of `controllers`.
        """
        return run_scheduler(self._plane, configuration, changes={**self._gates, **(arguments or {})})

    def kwok(
        self, stages: Sequence[Manifest] | None = None, *, arguments: Mapping[str, str | None] | None = None
    ) -> AbstractContextManager[None]:
        """Run kwok for the duration of a block: every node becomes ready, and the pods on it run.

        Args:
            stages: The Stage objects; by default nodes are ready at once, pods of Jobs complete, others run.
            arguments: Flags of kwok, as `server_arguments` of the class.

        Returns:
            A context manager, as of `controllers`.
        """
        return run_kwok(self._plane, stages, changes=arguments or {})

    @property
    def _plane(self) -> ControlPlaneProcess:
        if self._now is None:
            raise ConfigError("this control plane is not running; use it inside of its `with` block")
        return self._now
