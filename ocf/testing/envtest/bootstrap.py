"""Bringing up a control plane: folder, certificates, etcd, API server.

Everything that has to end is put on an exit stack, so that whatever fails takes with it what was started before.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.testing.envtest import flags
from ocf.testing.envtest.binaries import Program, Programs
from ocf.testing.envtest.certificates import Authority, CertificateFiles
from ocf.testing.envtest.http_probe import HttpProbe
from ocf.testing.envtest.kubeconfigs import write_kubeconfig
from ocf.testing.envtest.startup import Launch, Ports, RunningServer, start

__all__ = ["MASTERS", "Base", "ControlPlaneProcess", "boot"]

MASTERS: Final = "system:masters"
"""The group to which RBAC refuses nothing."""


@dataclass(frozen=True, slots=True)
class Base:
    """What every server of a control plane is started with.

    Args:
        programs: Where the programs are.
        folder: Where the servers work; only ours.
        authority: Who signs.
        administrator: Our certificate.
        ports: Where to listen.
        seconds: How long a server may take to start.
        given_up: Set, it ends the waiting for a server.
    """

    programs: Programs
    folder: Path
    authority: Authority
    administrator: CertificateFiles
    ports: Ports
    seconds: float
    given_up: threading.Event

    def launch(
        self, stack: ExitStack, program: Program, arguments: Callable[[int], Sequence[str]], *, ready: str
    ) -> RunningServer:
        """Start a server, and have the stack stop it.

        Args:
            stack: What ends it.
            program: Which one.
            arguments: Its arguments, given the port.
            ready: The path by which it tells that it is ready.
        """
        how = Launch(
            program=self.programs.path(program),
            arguments=arguments,
            door=lambda port: HttpProbe(port, self.authority.certificate, self.administrator),
            ready=ready,
            folder=self.folder,
            seconds=self.seconds,
        )
        server = start(how, ports=self.ports, given_up=self.given_up)
        stack.callback(server.program.stop)
        return server


@dataclass(frozen=True, slots=True)
class ControlPlaneProcess:
    """A control plane that is ready.

    Args:
        base: What its servers were started with.
        server: The API server.
        kubeconfig: The administrator's.
    """

    base: Base
    server: RunningServer
    kubeconfig: Path

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.server.door.port}"

    def write_kubeconfig(self, name: str, client: CertificateFiles, *, namespace: str = "default") -> Path:
        """Write a kubeconfig into the folder and return its file.

        Args:
            name: What the file is called.
            client: Certificate of the user.
            namespace: Where the user works.
        """
        return write_kubeconfig(
            self.base.folder / f"{name}.kubeconfig",
            server=self.url,
            authority=self.base.authority.certificate,
            client=client,
            namespace=namespace,
        )


def boot(
    stack: ExitStack,
    programs: Programs,
    changes: Mapping[str, str | None],
    *,
    ports: Ports,
    seconds: float,
    given_up: threading.Event,
) -> ControlPlaneProcess:
    """Start etcd and the API server.

    Args:
        stack: What ends them, and removes their folder.
        programs: Where the programs are.
        changes: Flags of the API server, in addition to ours or in their place.
        ports: Where to listen.
        seconds: How long each may take.
        given_up: Set, it ends the waiting.

    Returns:
        The control plane, ready.

    Raises:
        ConfigError: If a program is missing or does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="ocf-envtest-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    authority = Authority(folder)
    administrator = authority.client("admin", [MASTERS])
    base = Base(programs, folder, authority, administrator, ports, seconds, given_up)
    etcd_port = _start_etcd(stack, base)
    pair, tokens = authority.server("kube-apiserver"), authority.signing_keys("service-accounts")

    def chosen(port: int) -> list[str]:
        ours = flags.api_server(
            port,
            etcd_port=etcd_port,
            authority=authority.certificate,
            server=pair,
            client=administrator,
            tokens=tokens,
        )
        return flags.arguments(ours, changes)

    server = base.launch(stack, Program.API_SERVER, chosen, ready="/readyz")
    plane = ControlPlaneProcess(base, server, folder / "admin.kubeconfig")
    plane.write_kubeconfig("admin", administrator)
    return plane


def _start_etcd(stack: ExitStack, base: Base) -> int:
    pair = base.authority.server("etcd")

    def chosen(port: int) -> list[str]:
        return flags.arguments(flags.etcd(port, base.folder, authority=base.authority.certificate, server=pair), {})

    return base.launch(stack, Program.ETCD, chosen, ready="/health").door.port
