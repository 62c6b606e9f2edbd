"""What a run leaves out is printed, with what runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.requirements import PROVIDED_BY, sample

ROOT: Final = Path(__file__).parents[1]

pytest_plugins = ["pytester"]

CONFTEST: Final = """
from tests.conftest import pytest_collection_modifyitems, pytest_terminal_summary, sampled
pytest_plugins = ["ocf.testing.plugin"]
"""
TESTS: Final = """
import pytest
from tests.requirements import leave_out


@pytest.mark.parametrize("number", range(3))
def test_browser(number):
    leave_out("chromium", f"no browser for {number}")


@pytest.fixture
def clients():
    leave_out("clients", "no clients")


def test_clients(clients):
    pass


def test_server(envtest):
    pass


@pytest.mark.skip(reason="not on this system")
def test_other():
    pass


@pytest.mark.matrix
def test_matrix(sampled):
    assert 0 < len(sampled(range(100))) < 100


@pytest.mark.long
def test_whole_project():
    pass


def test_that_passes():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the settings of this one, on a machine without any program."""
    monkeypatch.delenv("OCF_REQUIRE", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    pytester.makeini("[pytest]\nmarkers =\n    matrix\n    long\naddopts = -rfExX")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:randomly", "-p", "no:asyncio", "-q", *options)


def left_out(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith(("left out", "skipped", "SKIPPED"))]


@pytest.mark.parametrize("options", [pytest.param([], id="one process"), pytest.param(["-n2"], id="two processes")])
def test_what_is_left_out_is_one_line_for_each_cause(project: pytest.Pytester, options: list[str]) -> None:
    """A green run of which all tests against the real thing were skipped: https://github.com/tya5/reyn/pull/3004."""
    result = run(project, *options)

    result.assert_outcomes(passed=2, skipped=7)
    assert left_out(result) == [
        (
            "left out: chromium 3 (the system's package chromium), clients 1 (make clients), envtest 1 (make envtest), "
            "long 1 (OCF_REQUIRE=long make test); OCF_REQUIRE=chromium,clients,envtest makes that an error"
        ),
        f"left out: {100 - len(sample(range(100)))} cases of matrices; make properties runs them",
        "skipped: 1, not on this system",
    ]


def test_a_run_that_leaves_nothing_out_says_nothing(project: pytest.Pytester) -> None:
    assert left_out(run(project, "-k", "test_that_passes")) == []


@pytest.mark.parametrize("name", ["chromium", "clients"])
def test_what_is_required_is_an_error(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OCF_REQUIRE", f"site,{name}")
    result = run(project)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*(OCF_REQUIRE requires it)"])
    assert not any(f"{name} " in line for line in left_out(result))


def test_long_tests_run_where_they_are_required(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCF_REQUIRE", "long")
    result = run(project, "-k", "test_whole_project")

    result.assert_outcomes(passed=1)
    assert left_out(result) == []


def test_a_run_that_leaves_out_only_long_tests_names_no_error(project: pytest.Pytester) -> None:
    assert left_out(run(project, "-k", "test_whole_project")) == ["left out: long 1 (OCF_REQUIRE=long make test)"]


def test_a_matrix_is_whole_with_the_examples_of_make_properties(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, since the profile of hypothesis belongs to a process."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project.makepyfile("""
        import pytest

        @pytest.mark.matrix
        def test_matrix(sampled):
            assert sampled(range(100)) == list(range(100))
    """)
    result = project.runpytest_subprocess("-q", "--hypothesis-profile=random")

    result.assert_outcomes(passed=1)
    assert left_out(result) == []


def test_a_sample_is_the_same_in_each_run_and_one_case_in_ten() -> None:
    cases = [(one, other) for one in range(100) for other in range(one)]
    chosen = sample(cases)

    assert chosen == sample(cases)
    assert sorted(sample(cases[::-1])) == sorted(chosen), "it depends on the cases alone"
    assert len(cases) / 11 < len(chosen) < len(cases) / 9
    assert {one for pair in chosen for one in pair} == set(range(100)), "none is passed over"


def test_each_requirement_says_what_installs_it() -> None:
    assert [name for name, command in PROVIDED_BY.items() if not command] == []
