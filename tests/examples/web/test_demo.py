"""Tests of the demo: every claim holds, and its piped output is plain text."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

CHECKOUT: Final = Path(__file__).parents[3]


def run() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "examples.web"]
    return subprocess.run(  # noqa: S603 (our own module)
        command, cwd=CHECKOUT, capture_output=True, encoding="ascii", timeout=600, check=False
    )


@pytest.fixture(scope="module")
def story() -> subprocess.CompletedProcess[str]:
    return run()


def test_every_fact_holds(story: subprocess.CompletedProcess[str]) -> None:
    assert (story.returncode, story.stderr) == (0, "")


def test_the_output_fits_a_terminal_of_80_columns(story: subprocess.CompletedProcess[str]) -> None:
    assert max(map(len, story.stdout.splitlines())) <= 80


def test_it_prints_the_same_every_time(story: subprocess.CompletedProcess[str]) -> None:
    assert run().stdout == story.stdout


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("   DatabaseReady=False Blocked: waiting for v1/Secret/shop/corner-password", id="no Secret"),
        pytest.param("     Created HorizontalPodAutoscaler corner-web", id="the autoscaler"),
        pytest.param("     DATABASE_URL=...@corner-db.shop.svc:5432/postgres", id="data of the database"),
        pytest.param("     Deleted HorizontalPodAutoscaler corner-web", id="suspended"),
        pytest.param("   ok  5 replicas at once", id="the live count is back"),
        pytest.param("     variables DB_PASSWORD, DB_HOST, DB_PORT", id="the upgrade"),
        pytest.param("     Deleted Deployment corner-exporter", id="the exporter goes"),
        pytest.param("   ok  what is left is the user's own: corner-password", id="the end"),
    ],
)
def test_it_shows(story: subprocess.CompletedProcess[str], line: str) -> None:
    assert line in story.stdout.splitlines()
