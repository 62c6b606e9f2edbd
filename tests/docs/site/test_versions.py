"""Versions of the site: deployed to a branch, and chosen in a browser."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from scripts.cached_environment import SITE
from scripts.site.build import SETTINGS, configuration, copy_assets
from scripts.site.versions import BRANCH, deploy
from tests.devtools import opened_tab, served
from tests.requirements import leave_out

VERSIONS: Final = ("0.1", "0.2")
SELECTOR: Final = """new Promise((done) => {
  const look = () => {
    const current = document.querySelector(".md-version__current");
    if (current === null) return requestAnimationFrame(look);
    const links = [...document.querySelectorAll(".md-version__link")];
    done({current: current.textContent.trim().split(/\\s/)[0],
      versions: Object.fromEntries(links.map((each) => [each.textContent.trim(), each.href])),
      title: document.querySelector("h1").firstChild.textContent, address: location.href});
  };
  look();
})"""
REDIRECTED: Final = """new Promise((done) => {
  const look = () => /latest/.test(location.pathname) && document.querySelector("h1") ? done() : setTimeout(look, 20);
  look();
})"""


def git(repository: Path, *arguments: str) -> bytes:
    settings = ("-c", "user.name=Docs", "-c", "user.email=docs@example.com")
    done = subprocess.run(["git", *settings, *arguments], cwd=repository, check=True, capture_output=True)  # noqa: S603, S607 (ours)
    return done.stdout


@pytest.fixture(scope="module")
def branch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Deploy two versions of a site of one page, with the configuration of the whole one; return the branch's files."""
    if not SITE.is_complete():
        leave_out("site", "MkDocs is not installed: `make site` installs it")
    repository = tmp_path_factory.mktemp("repository")
    pages = repository / ".site" / "docs"
    pages.mkdir(parents=True)
    copy_assets(pages)
    settings = re.sub(r"\nnav:\n.*", "\nnav: [index.md]\n", configuration(), flags=re.DOTALL)
    settings = re.sub(r"redirect_maps: .*", "redirect_maps: {}", settings)  # their pages are not in this site
    (repository / ".site" / "mkdocs.yml").write_text(settings.replace("../docs/site", str(SETTINGS)), encoding="utf-8")
    git(repository, "init", "--quiet")
    for key, value in (("name", "Docs"), ("email", "docs@example.com")):
        git(repository, "config", f"user.{key}", value)
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "start")
    for version in VERSIONS:
        (pages / "index.md").write_text(f"# The site of {version}\n", encoding="utf-8")
        assert deploy(version, configuration=repository / ".site" / "mkdocs.yml", repository=repository) == 0
    git(repository, "worktree", "add", "--quiet", "published", BRANCH)
    return repository / "published"


def test_the_branch_has_each_version_and_the_newest_as_latest(branch: Path) -> None:
    assert {each.name for each in branch.iterdir()} >= {*VERSIONS, "latest", "index.html", "versions.json"}
    assert "The site of 0.2" in (branch / "latest" / "index.html").read_text(encoding="utf-8")


def test_a_reader_chooses_a_version(chromium: str, branch: Path, tmp_path: Path) -> None:
    async def visit() -> tuple[Any, Any, list[str], str]:
        with served(branch) as origin:
            async with opened_tab(chromium, tmp_path) as tab:
                await tab.open(origin)
                await tab.evaluate(REDIRECTED)
                newest = await tab.evaluate(SELECTOR)
                await tab.go(newest["versions"]["0.1"])
                return newest, await tab.evaluate(SELECTOR), tab.complaints, origin

    newest, oldest, complaints, origin = asyncio.run(visit())

    assert (newest["current"], newest["title"]) == ("0.2", "The site of 0.2")
    assert newest["versions"] == {each: f"{origin}{each}/" for each in VERSIONS}
    assert (oldest["current"], oldest["title"], oldest["address"]) == ("0.1", "The site of 0.1", f"{origin}0.1/")
    assert complaints == []
