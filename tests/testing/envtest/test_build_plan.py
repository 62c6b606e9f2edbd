"""The build plan is decided before any command runs."""

import pytest

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.build_plan import build_environment, origins, staging_modules
from ocf.testing.envtest.versions import Machine, Release

RELEASE = Release(kubernetes="1.36.3", etcd="3.7.3", go="1.26", kwok="0.8.0")

# As in the go.mod of Kubernetes 1.36.3, shortened.
GO_MOD = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgo.etcd.io/etcd/client/v3 v3.6.8
\tgithub.com/google/cadvisor v0.56.2
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.140.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/cri-streaming => ./staging/src/k8s.io/cri-streaming
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""


def test_every_staging_module_is_replaced_by_its_published_version() -> None:
    etcd, kubernetes, kwok = origins(RELEASE)
    assert kubernetes.go_mod(GO_MOD) == (
        "module build\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.36.3\n\n"
        "replace k8s.io/api => k8s.io/api v0.36.3\n\n"
        "replace k8s.io/cri-streaming => k8s.io/cri-streaming v0.36.3\n\n"
        "replace k8s.io/kubectl => k8s.io/kubectl v0.36.3\n"
    )
    assert etcd.go_mod("replace go.etcd.io/etcd/api/v3 => ../api\n") == (
        "module build\n\ngo 1.26\n\nrequire go.etcd.io/etcd/server/v3 v3.7.3\n"
    )
    assert kwok.go_mod("module sigs.k8s.io/kwok\n") == ("module build\n\ngo 1.26\n\nrequire sigs.k8s.io/kwok v0.8.0\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("\tk8s.io/api => ./staging/src/k8s.io/api", id="in a block"),
        pytest.param("replace k8s.io/api => ./staging/src/k8s.io/api", id="on a line of its own"),
        pytest.param("replace k8s.io/api v0.0.0 => ./staging/src/k8s.io/api", id="with a version"),
    ],
)
def test_all_spellings_of_a_replacement_are_read(line: str) -> None:
    assert staging_modules(line, "v1.36.3") == {"k8s.io/api": "v0.36.3"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("\texample.com/a => example.com/b v1.2.3", id="another module"),
        pytest.param("\texample.com/a => ../a", id="another folder"),
        pytest.param("\t// k8s.io/api => ./staging/src/k8s.io/api", id="a comment"),
        pytest.param("\tk8s.io/api v0.0.0", id="a requirement"),
    ],
)
def test_nothing_else_is_replaced(line: str) -> None:
    assert staging_modules(line, "v1.36.3") == {}


def test_an_unknown_version_scheme_of_staging_modules_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"Kubernetes v2\.0\.0"):
        staging_modules(GO_MOD, "v2.0.0")


def test_all_programs_are_built() -> None:
    assert {build.program for origin in origins(RELEASE) for build in origin.builds} == set(Program)


def test_kubernetes_programs_report_their_version() -> None:
    """Without the linker flags it reports v0.0.0, which misleads clients that check the version."""
    _, kubernetes, _ = origins(RELEASE)
    command = kubernetes.builds[0].command("/out/kube-apiserver")
    flags = command[command.index("-ldflags") + 1].split()
    assert "k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "k8s.io/component-base/version.gitMinor=36" in flags
    assert command[-3:] == ["-o", "/out/kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"]


def test_user_settings_that_affect_the_result_are_overridden() -> None:
    user = {"GOFLAGS": "-mod=vendor", "GOOS": "windows", "GOARCH": "arm", "GOWORK": "/w/go.work", "GO111MODULE": "off"}
    environ = build_environment({**user, "CGO_ENABLED": "1"}, Machine("linux", "amd64"))
    assert environ == {
        "GOFLAGS": "-buildvcs=false",
        "GOOS": "linux",
        "GOARCH": "amd64",
        "GOWORK": "off",
        "GO111MODULE": "on",
        "CGO_ENABLED": "0",
    }


def test_user_settings_of_proxies_are_kept() -> None:
    user = {"GOPROXY": "https://proxy.example.com", "GOMODCACHE": "/m", "GOCACHE": "/c", "PATH": "/bin"}
    assert build_environment(user, Machine("linux", "amd64")).items() >= user.items()
