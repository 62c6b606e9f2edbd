"""The address of the repository is one constant."""

import re

import pytest

from scripts.release.address import REPOSITORY, ROOT, pages, written


def test_every_page_has_the_address_of_the_constant() -> None:
    """After filling it in, `python -m scripts.release.address` writes it."""
    different = [
        page for page in pages() if written(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")
    ]
    assert different == []


def test_no_page_has_another_placeholder() -> None:
    """Such as that of an organization or of a host that stands for the real one."""
    placeholder = re.compile(r"git\.example\.(?:com|org)/ocf|example/ocf@|<owner>|your-(?:org|name)/ocf", re.IGNORECASE)
    assert [page for page in pages() if placeholder.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("- uses: a/ocf@main", "- uses: town/ocf@main", id="action"),
        pytest.param("- uses: a/ocf/simulate@v1", "- uses: town/ocf/simulate@v1", id="action in a folder"),
        pytest.param("repo: https://github.com/a/ocf\n", "repo: https://github.com/town/ocf\n", id="hook"),
        pytest.param("<https://github.com/a/ocf/security>", "<https://github.com/town/ocf/security>", id="link"),
        pytest.param("--repo a/ocf", "--repo town/ocf", id="option"),
        pytest.param("https://github.com/a/ocfs", "https://github.com/a/ocfs", id="another repository"),
        pytest.param("registry.example.com/ocf:1", "registry.example.com/ocf:1", id="image"),
        pytest.param("- uses: actions/checkout@v4", "- uses: actions/checkout@v4", id="another action"),
    ],
)
def test_the_address_is_written_wherever_it_is_named(text: str, expected: str) -> None:
    assert written(text, "town/ocf") == expected


def test_the_pages_for_reports_name_it() -> None:
    named = [page.relative_to(ROOT).as_posix() for page in pages() if REPOSITORY in page.read_text(encoding="utf-8")]
    assert {
        "SECURITY.md",
        ".github/ISSUE_TEMPLATE/config.yml",
        "docs/autoscaling/validate.md",
        "docs/autoscaling/simulate.md",
    } <= {*named}
