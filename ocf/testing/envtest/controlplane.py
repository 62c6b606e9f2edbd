"""`ControlPlane`: etcd and an API server of its own, for as long as a block runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.testing.envtest import flags
from ocf.testing.envtest.binaries import ASSETS, REMEDY, Program, Programs, find_programs
from ocf.testing.envtest.bootstrap import MASTERS, ControlPlaneProcess, boot
from ocf.testing.envtest.crds import install_crds
from ocf.testing.envtest.kubectl import kubectl
from ocf.testing.envtest.startup import Ports, free_port

if TYPE_CHECKING:
    from types import TracebackType

    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["ControlPlane"]

_CREATED: Final = 201


class ControlPlane:
    """A control plane for tests: etcd and an API server, and on request controllers.

    Everything listens on loopback only, with certificates that are made for this one control plane. Authorization is
    RBAC, and we come as an administrator. Nothing survives: files are in a temporary folder, and the programs end
    with the block, or with our process, however that ends.

    It is a context manager, and an asynchronous one. Starting takes a few seconds, so tests share one and use
    namespaces of their own.

    Args:
        programs: What to run; None looks for them, see `find_programs`.
        feature_gates: Kubernetes features to switch on or off, in the API server and in controllers.
        server_arguments: Flags of the API server, without dashes: in addition to ours, or in their place; None leaves
            one of ours out.
        seconds: How long each program may take to start.
        ports: Where to listen.

    Raises:
        ConfigError: On entering, if there are no programs, or one of them does not start.

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
        seconds: float = 60.0,
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
            starting.exception()  # that it was given up is known here
            self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def start(self) -> None:
        """Start the programs; what `with` does on entering.

        Raises:
            ConfigError: If there are no programs, one does not start, or they are running already.
        """
        if self._now is not None:
            raise ConfigError("this control plane is running already")
        with ExitStack() as stack:
            self._now = boot(
                stack,
                self.programs,
                self._changes,
                ports=self._ports,
                seconds=self._seconds,
                given_up=self._given_up,
            )
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """End the programs and remove their files; what `with` does on leaving. May be called again."""
        self._now = None
        self._given_up.clear()
        self._stack.close()

    @property
    def programs(self) -> Programs:
        """The programs that are run.

        Raises:
            ConfigError: If none are found.
        """
        self._programs = self._programs or find_programs()
        if self._programs is None:
            raise ConfigError(f"no control plane is installed: run {REMEDY}, or set {ASSETS}")
        return self._programs

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for the administrator, a member of `system:masters`."""
        return self._plane.kubeconfig

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self._plane.url

    @property
    def authority(self) -> Path:
        """The file with the certificate of the authority, for clients that take no kubeconfig."""
        return self._plane.base.authority.certificate

    def kubeconfig_for(self, user: str, *groups: str, namespace: str = "default") -> Path:
        """Return a kubeconfig for somebody else, to whom RBAC applies.

        Args:
            user: Name of the user, such as `system:serviceaccount:shop:operator`.
            *groups: The groups the user is in.
            namespace: Where the user works unless told otherwise.

        Returns:
            A file, which ends with the control plane.
        """
        client = self._plane.base.authority.client(user, groups)
        return self._plane.write_kubeconfig(client.key.stem, client, namespace=namespace)

    def certificate_for(self, name: str, *hosts: str) -> CertificateFiles:
        """Return a certificate for a server of your own on the loopback address, signed by `authority`.

        Args:
            name: What its files are called.
            *hosts: Names under which it is asked for, `hooks.shop.svc`, besides `localhost`.

        Returns:
            Files, which end with the control plane.
        """
        return self._plane.base.authority.server(name, *hosts)

    async def cluster(self, kubeconfig: Path | None = None) -> ApiServerCluster:
        """Open a client in the running event loop.

        Args:
            kubeconfig: Who we are; None for the administrator.

        Returns:
            The cluster; to be closed, which `async with` does.
        """
        from ocf.cluster.client import ApiServerCluster

        return await ApiServerCluster.connect(kubeconfig or self.kubeconfig)

    @contextmanager
    def namespace(self, prefix: str = "test-") -> Iterator[str]:
        """Make a namespace for the length of a block.

        It is deleted afterwards. What is in it goes only where the namespace controller runs; but its name is not
        given to another one.

        Args:
            prefix: What its name begins with.

        Yields:
            The name.

        Raises:
            ConfigError: If the API server refuses it.
        """
        door = self._plane.server.door
        code, answer = door.ask("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        if code != _CREATED:
            raise ConfigError(f"no namespace {prefix!r}: {answer.get('message', f'the API server said {code}')}")
        name: str = answer["metadata"]["name"]
        try:
            yield name
        finally:
            if self._now is not None:
                door.ask("DELETE", f"/api/v1/namespaces/{name}")

    def install_crds(self, *definitions: Manifest) -> None:
        """Define kinds, or replace their definitions, and wait until they are served.

        A definition that is `Established` is not served yet, and whoever asks too early is told 404 or 429.

        Args:
            *definitions: CustomResourceDefinitions, as `ocf.runtime.crds.crd` writes them.

        Raises:
            ConfigError: If the API server refuses one, or does not serve it in time.
        """
        install_crds(self._plane.server.door, *definitions, seconds=self._seconds)

    def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl, and wait for it.

        Args:
            *arguments: As on its command line.
            stdin: What it reads, such as manifests for `apply --filename=-`.
            kubeconfig: Who we are; None for the administrator.

        Returns:
            What it printed.

        Raises:
            ConfigError: If it is not there or fails; with what it says about that.
        """
        program = self.programs.path(Program.KUBECTL)
        home = self._plane.base.folder / "kubectl"
        return kubectl(program, arguments, home=home, kubeconfig=kubeconfig or self.kubeconfig, stdin=stdin)

    @contextmanager
    def controllers(
        self,
        *names: str,
        hpa_sync_period: timedelta = timedelta(seconds=1),
        arguments: Mapping[str, str | None] | None = None,
    ) -> Iterator[None]:
        """Run a controller manager for the length of a block.

        Its controllers act in every namespace.

        Args:
            *names: The controllers to run, see `Controller`; no other runs.
            hpa_sync_period: How often autoscalers are looked at.
            arguments: Flags of the controller manager, as `server_arguments` of the class.

        Yields:
            When the controllers are running.

        Raises:
            ConfigError: If no controller is named, the program is not there (`setup-envtest` brings none), or it does
                not start.
        """
        if not names:
            raise ConfigError("name at least one controller to run")
        plane = self._plane
        signer = plane.base.authority
        kubeconfig = plane.write_kubeconfig(
            Program.CONTROLLER_MANAGER, signer.client(f"system:{Program.CONTROLLER_MANAGER}", [MASTERS])
        )
        pair = signer.server(Program.CONTROLLER_MANAGER)

        def chosen(port: int) -> list[str]:
            ours = flags.controller_manager(
                port, kubeconfig=kubeconfig, server=pair, controllers=names, hpa_sync_period=hpa_sync_period
            )
            return flags.arguments({**ours, **self._gates}, arguments or {})

        with ExitStack() as stack:
            plane.base.launch(stack, Program.CONTROLLER_MANAGER, chosen, ready="/healthz")
            yield

    @property
    def _plane(self) -> ControlPlaneProcess:
        if self._now is None:
            raise ConfigError("this control plane is not running; use it inside of its `with` block")
        return self._now
