"""Fixtures give each test a namespace and a client on one control plane, or skip it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.objects import ObjectKey
from ocf.testing.envtest.binaries import Program, Programs
from ocf.testing.plugin import Envtest

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from tests.testing.envtest.conftest import MakePrograms

pytest_plugins = ["pytester"]

SERVER_TESTS = """
def test_one(envtest):
    pass

def test_two(envtest_plane):
    pass

def test_other():
    pass
"""


class TestOnTheServer:
    """Two tests that would conflict in one namespace, and one event loop for both."""

    @pytest.mark.parametrize("number", [1, 2])
    async def test_each_test_has_its_own_namespace_and_client(
        self, number: int, envtest: Envtest, envtest_cluster: ApiServerCluster
    ) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "same", "namespace": envtest.namespace},
            "data": {"number": str(number)},
        }
        await envtest_cluster.create(manifest, field_manager="test")
        live = await envtest_cluster.get(ObjectKey("v1", "Namespace", envtest.namespace))
        assert live["status"]["phase"] == "Active"
        assert envtest.namespace.startswith("test-each-test-has-its-own-namespace-and")

    @pytest.mark.parametrize("text", [pytest.param("x", id="ß-Ä_1")])
    def test_a_test_name_becomes_a_valid_namespace_name(self, text: str, envtest: Envtest) -> None:
        assert text
        assert envtest.namespace.startswith("test-a-test-name-becomes-a-valid-namespa-")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A user's project on a machine without the programs."""
    monkeypatch.delenv("OCF_REQUIRE", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    pytester.makeconftest('pytest_plugins = ["ocf.testing.plugin"]')
    return pytester


def run(project: pytest.Pytester) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:randomly", "-p", "no:asyncio", "-q", "-rsE")


def test_without_programs_tests_are_skipped_with_one_line_in_the_summary(project: pytest.Pytester) -> None:
    project.makepyfile(SERVER_TESTS)
    result = run(project)
    result.assert_outcomes(passed=1, skipped=2)
    skipped = [line for line in result.outlines if "envtest" in line and line.startswith("SKIPPED")]
    assert len(skipped) == 1
    assert skipped[0].startswith("SKIPPED [2] ")
    assert skipped[0].endswith(
        "tests on a real API server are skipped; `make envtest` (outside of a checkout "
        "`python -m ocf.testing.envtest`) installs the programs that they need"
    )


@pytest.mark.parametrize("words", ["envtest", "other,envtest", "other envtest"])
def test_required_tests_fail_instead_of_being_skipped(
    words: str, project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCF_REQUIRE", words)
    project.makepyfile(SERVER_TESTS)
    result = run(project)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*(OCF_REQUIRE requires them)"])


def test_another_requirement_has_no_effect(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCF_REQUIRE", "noenvtest")
    project.makepyfile(SERVER_TESTS)
    run(project).assert_outcomes(passed=1, skipped=2)


def test_a_wrong_folder_fails_instead_of_skipping(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(project.path))
    project.makepyfile(SERVER_TESTS)
    result = run(project)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines([f"etcd is missing in {project.path} (KUBEBUILDER_ASSETS); *"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_another_skip_keeps_its_location(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n\ndef test_it():\n    pytest.skip('because')\n")
    result = run(project)
    result.stdout.fnmatch_lines(["SKIPPED [[]1[]] test_another_skip_keeps_its_location.py:4: because"])


def test_feature_gates_are_set_and_each_test_has_its_own_event_loop(
    project: pytest.Pytester, envtest_programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the strict mode of pytest-asyncio, which other projects use."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(envtest_programs.folder))
    project.makepyfile("""
        import pytest

        from ocf.cluster import ListOptions

        @pytest.fixture(scope="session")
        def envtest_feature_gates():
            return {"WatchList": False}

        @pytest.mark.asyncio
        @pytest.mark.parametrize("number", [1, 2])
        async def test_it(number, envtest, envtest_cluster):
            assert (await envtest_cluster.list("v1", "Pod", ListOptions(namespace=envtest.namespace))).items == ()

        def test_features(envtest):
            metrics = envtest.kubectl("get", "--raw", "/metrics")
            assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0' in metrics
    """)
    result = project.runpytest_subprocess("-q", "-p", "no:randomly")
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("fixture", "what", "program"),
    [
        ("envtest_controllers", "controllers", Program.CONTROLLER_MANAGER),
        ("envtest_scheduler", "the scheduler", Program.SCHEDULER),
        ("envtest_kwok", "kwok", Program.KWOK),
    ],
)
def test_tests_with_a_program_that_is_missing_are_skipped(  # noqa: PLR0917 (fixtures)
    fixture: str,
    what: str,
    program: Program,
    project: pytest.Pytester,
    make_programs: MakePrograms,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with programs of setup-envtest; no control plane is started."""
    assets = make_programs(project.path / "assets", [Program.ETCD, Program.API_SERVER, Program.KUBECTL])
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    project.makepyfile(f"def test_it({fixture}): pass\n")
    result = run(project)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        [f"SKIPPED*tests with {what} are skipped: no {program} in {assets} (KUBEBUILDER_ASSETS)"]
    )
