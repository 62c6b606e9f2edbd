"""The pytest plugin in separate pytest runs."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PRODUCT = """
from ocf.primitives import deployment

def web():
    return deployment.Builder(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        }
    ).build()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest('pytest_plugins = ["ocf.testing.plugin"]')
    pytester.makepyfile(product=PRODUCT)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:randomly", "-p", "no:asyncio", "-q", *options)


def test_clock_and_cluster_have_the_same_time(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import asyncio
        from datetime import timedelta
        from ocf.objects import ObjectKey

        def test_it(clock, cluster):
            clock.advance(timedelta(days=1))
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
            stored = asyncio.run(cluster.create(manifest, field_manager="me"))
            assert stored["metadata"]["creationTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    """)
    run(project).assert_outcomes(passed=1)


def test_kinds_and_namespaces_are_overridden(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import asyncio
        import pytest
        from ocf_server import CustomKind
        from ocf.objects import ObjectKey

        @pytest.fixture
        def cluster_kinds():
            return [CustomKind("example.com", "v1", "Shop")]

        @pytest.fixture
        def cluster_namespaces():
            return ["shop"]

        def test_it(cluster):
            assert asyncio.run(cluster.list("example.com/v1", "Shop")).items == ()
            assert asyncio.run(cluster.get(ObjectKey("v1", "Namespace", "shop")))
    """)
    run(project).assert_outcomes(passed=1)


def test_a_golden_is_written_by_the_flag_and_then_compared(project: pytest.Pytester) -> None:
    project.makepyfile("""
        from product import web

        def test_it(golden):
            golden("web.yaml", web())
    """)
    missing = run(project)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(
        ["*golden file *web.yaml does not exist; create it with `pytest --ocf-update-goldens`*"]
    )
    run(project, "--ocf-update-goldens").assert_outcomes(passed=1)
    run(project).assert_outcomes(passed=1)
    path = project.path / "goldens" / "web.yaml"
    path.write_text(path.read_text().replace("web:1", "web:2"))
    different = run(project)
    different.assert_outcomes(failed=1)
    different.stdout.fnmatch_lines(["*-*image: web:2", "*+*image: web:1"])


def test_the_folder_of_goldens_is_overridden(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import pytest
        from product import web

        @pytest.fixture
        def golden_directory(tmp_path):
            return tmp_path / "mine"

        def test_it(golden, tmp_path):
            golden("deep/web.yaml", web())
            assert (tmp_path / "mine" / "deep" / "web.yaml").exists()
    """)
    run(project, "--ocf-update-goldens").assert_outcomes(passed=1)


def test_a_matrix_is_parametrized(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import pytest
        from ocf.testing import Fixture, VersionMatrix
        from product import web

        matrix = VersionMatrix(
            directory="goldens", versions=["1", "2"], fixtures=[Fixture(name="small", spec=None)],
            build=lambda version, spec: web(),
        )

        @pytest.mark.parametrize("case", matrix.cases(), ids=str)
        def test_versions(case, update_goldens):
            case.check(update=update_goldens)
    """)
    first = run(project)
    first.assert_outcomes(failed=2, passed=1)
    first.stdout.fnmatch_lines(["FAILED *test_versions?small?*"])
    run(project, "--ocf-update-goldens").assert_outcomes(passed=3)
    run(project).assert_outcomes(passed=3)
    run(project, "-k", "manifest").assert_outcomes(passed=1, deselected=2)


def test_without_the_plugin_its_fixtures_do_not_exist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(golden): pass")
    run(pytester).assert_outcomes(errors=1)
