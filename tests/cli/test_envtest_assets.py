"""`ocf envtest-assets`: the programs that it writes are started as envtest starts kube-apiserver and etcd."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import trustme
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.testing.envtest.startup import free_port
from ocf_server.http.tls import client_certificate
from tests.support import eventually

ADMINISTRATOR: Final = ("admin", "system:masters")


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    result = CliRunner().invoke(app, ["envtest-assets", str(tmp_path / "assets")])
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'assets'}\n")
    return tmp_path / "assets"


def test_a_program_that_was_not_written_by_the_command_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "etcd").write_bytes(b"\x7fELF")
    result = CliRunner().invoke(app, ["envtest-assets", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'etcd'} exists, and this command has not written it")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("etcd", b"\x7fELF")]


def test_the_programs_of_an_earlier_run_are_replaced(assets: Path) -> None:
    text = (assets / "etcd").read_text()
    (assets / "etcd").write_text(text + "# of another version\n")
    assert CliRunner().invoke(app, ["envtest-assets", str(assets)]).exit_code == 0
    assert (assets / "etcd").read_text() == text


@asynccontextmanager
async def running(program: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(program, *words, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()
    assert process.returncode == 0


class Server:
    """A server that is started with the certificates of an authority of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(folder / "ca.crt"))
        leaf = self.authority.issue_cert("127.0.0.1", "localhost")
        leaf.private_key_pem.write_to_path(str(folder / "apiserver.key"))
        leaf.cert_chain_pems[0].write_to_path(str(folder / "apiserver.crt"))

    def session(self, *user: str) -> aiohttp.ClientSession:
        context = ssl.create_default_context(cafile=self.folder / "ca.crt")
        if user:
            leaf = self.authority.issue_cert(common_name="client")
            files = self.folder / "client.crt", self.folder / "client.key"
            files[0].write_bytes(client_certificate(self.authority, leaf, user[0], user[1:]))
            files[1].write_bytes(leaf.private_key_pem.bytes())
            context.load_cert_chain(*files)
        return aiohttp.ClientSession(f"https://127.0.0.1:{self.port}", connector=aiohttp.TCPConnector(ssl=context))

    async def ready(self) -> None:
        async with self.session() as session:

            async def healthy() -> bool:
                try:
                    async with session.get("/healthz") as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await eventually(healthy)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def in_one_word(flags: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]


def in_two_words(flags: dict[str, str]) -> list[str]:
    return [word for name, value in flags.items() for word in (f"--{name}", value)]


async def send(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with session.request(method, path, json=body) as answer:
        return answer.status, await answer.json()


DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA: Final = {"openAPIV3Schema": {"type": "object"}}
DEFINITION: Final = {
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Shop", "plural": "shops"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}


@pytest.mark.parametrize("written", [in_one_word, in_two_words])
async def test_a_client_of_the_given_authority_is_served_and_no_controller_runs(
    written: Any, assets: Path, server: Server, tmp_path: Path
) -> None:
    flags = {
        "advertise-address": "127.0.0.1",
        "authorization-mode": "RBAC",
        "cert-dir": str(tmp_path),
        "client-ca-file": str(tmp_path / "ca.crt"),
        "disable-admission-plugins": "ServiceAccount",
        "etcd-servers": "http://127.0.0.1:1",
        "secure-port": str(server.port),
    }
    async with running(assets / "kube-apiserver", *written(flags)):
        await server.ready()
        async with server.session(*ADMINISTRATOR) as admin, server.session("alice") as alice:
            assert (await send(admin, "GET", "/api/v1/namespaces/default/services/kubernetes"))[0] == 200
            assert (await send(alice, "GET", "/api/v1/namespaces/default/services/kubernetes"))[0] == 403
            await send(admin, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
            await send(admin, "DELETE", "/api/v1/namespaces/shop")
            _, namespace = await send(admin, "GET", "/api/v1/namespaces/shop")
            assert namespace["status"]["phase"] == "Terminating"
            # What an API server does by itself goes on.
            await send(admin, "POST", DEFINITIONS, DEFINITION)
            await send(admin, "POST", "/apis/example.com/v1/namespaces/default/shops", SHOP)
            await send(admin, "DELETE", f"{DEFINITIONS}/shops.example.com")
            assert (await send(admin, "GET", f"{DEFINITIONS}/shops.example.com"))[0] == 404


@pytest.mark.parametrize(
    ("options", "flags", "minor", "least"),
    [
        pytest.param([], [], "36", 1, id="the default"),
        pytest.param(
            [], ["--feature-gates=EnvFiles=true", "--feature-gates", "HPAScaleToZero=true"], "36", 0, id="gates"
        ),
        pytest.param(["--kubernetes-version", "1.33"], [], "33", 1, id="a release"),
    ],
)
async def test_the_release_and_its_gates_are_heeded(
    *, options: list[str], flags: list[str], minor: str, least: int, server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "assets"
    assert CliRunner().invoke(app, ["envtest-assets", str(folder), *options]).exit_code == 0
    words = in_one_word({"cert-dir": str(tmp_path), "client-ca-file": str(tmp_path / "ca.crt")})
    async with running(folder / "kube-apiserver", *words, f"--secure-port={server.port}", *flags):
        await server.ready()
        async with server.session(*ADMINISTRATOR) as admin:
            assert (await send(admin, "GET", "/version"))[1]["minor"] == minor
            for number in (0, 1):
                path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
                status, _ = await send(admin, "POST", path, autoscaler(number))
                assert status == (201 if number >= least else 422)


def autoscaler(least: int) -> dict[str, Any]:
    target = {"type": "Value", "value": "1"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": least,
        "maxReplicas": 3,
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
    }
    return {"metadata": {"name": f"from-{least}"}, "spec": spec}


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--feature-gates=EnvFile=true", 'Kubernetes 1.36 has no feature gate "EnvFile": did you mean EnvFiles?'),
        ("--feature-gates=EnvFiles", 'invalid feature gate "EnvFiles": write NAME=true or NAME=false'),
    ],
)
async def test_a_gate_that_is_not_known_ends_the_server(flag: str, problem: str, assets: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(assets / "kube-apiserver", flag, stderr=pipe)
    _, text = await process.communicate()
    assert (process.returncode, text.decode().startswith(problem)) == (1, True)


def test_a_release_that_is_not_known_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["envtest-assets", str(tmp_path), "--kubernetes-version", "1.29"])
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "must be 1.30 to 1.36" in result.stderr


SHOP: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "one"}}


@pytest.mark.parametrize(
    "words", [["--listen-client-urls={url}"], ["--data-dir", "/x", "--listen-client-urls", "{url}"]]
)
async def test_etcd_is_healthy_and_ends_with_a_signal(words: Sequence[str], assets: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with (
        running(assets / "etcd", *(word.format(url=url) for word in words)),
        aiohttp.ClientSession(url) as session,
    ):

        async def health() -> Any:
            try:
                return await send(session, "GET", "/health")
            except aiohttp.ClientError:
                return None

        assert await eventually(health) == (200, {"health": "true"})


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
async def test_help_is_printed_without_a_start(program: str, assets: Path) -> None:
    # envtest looks there for the flags of other releases, such as --insecure-port.
    process = await asyncio.create_subprocess_exec(assets / program, "--help", stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, output.count(b"--")) == (0, 1)


async def test_an_unknown_flag_is_named_and_a_missing_certificate_ends_the_server(assets: Path, tmp_path: Path) -> None:
    words = ["--novel=1", f"--tls-cert-file={tmp_path / 'none.crt'}", f"--cert-dir={tmp_path}"]
    process = await asyncio.create_subprocess_exec(assets / "kube-apiserver", *words, stderr=asyncio.subprocess.PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "--novel is not known to the embedded API server and is ignored" in errors.decode()
    assert f"TLS files {tmp_path / 'none.crt'}, {tmp_path / 'apiserver.key'} cannot be used" in errors.decode()


async def test_modules_in_the_folder_of_a_suite_are_not_imported(assets: Path, tmp_path: Path) -> None:
    (tmp_path / "asyncio.py").write_text("raise SystemExit(7)")
    process = await asyncio.create_subprocess_exec(
        assets / "kube-apiserver",
        f"--tls-cert-file={tmp_path / 'none.crt'}",
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert (process.returncode, b"cannot be used" in errors) == (1, True)


def test_a_link_to_a_kubectl_that_is_gone_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    link = tmp_path / "assets" / "kubectl"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "gone")
    result = CliRunner().invoke(app, ["envtest-assets", str(link.parent)])
    assert (result.exit_code, link.readlink()) == (0, program)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["envtest-assets", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "choose a folder that you can write to" in result.stderr


def test_the_programs_use_this_interpreter(assets: Path) -> None:
    assert sys.executable in (assets / "kube-apiserver").read_text()
