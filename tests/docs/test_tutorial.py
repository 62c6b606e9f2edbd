"""The tutorial and other pages with a session in a shell are followed to the letter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

import pytest

from tests.docs.reader import ROOT, Reader, Run, Step, Write, is_as_shown, reader_in, steps
from tests.once import TYPES, locked

DOCS: Final = ROOT / "docs"


FOLLOWED: Final = {
    "start/tutorial.md": ("# ", "\n## Read on\n"),
    "start/new.md": ("# ", "\n## What is in it\n"),
    "operators/troubleshooting.md": ("\n## The example\n", "\n## The operator writes again and again\n"),
}
"""The pages that are followed to the letter, each from one text to another."""


@pytest.mark.long
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_page_can_be_followed(reader: Reader, name: str) -> None:
    if name == "start/new.md":
        del reader.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]  # its tests are asynchronous
        reader.environment["MYPY_CACHE_DIR"] = str(TYPES)
    if name == "start/tutorial.md":
        reader.folder = reader.folder.parent  # it makes the folder beside the clone itself
    start, end = FOLLOWED[name]
    page = (DOCS / name).read_text(encoding="utf-8")
    for step in steps(page[page.index(start) : page.index(end)]):
        with locked(TYPES) if isinstance(step, Run) and step.command == "make check" else nullcontext():
            reader.do(step)
    assert set(reader.leave()) == {0}


GUIDES: Final = {
    "autoscaling/explain-hpa.md": "",
    "autoscaling/simulate.md": "",
    "autoscaling/tune.md": "",
    "autoscaling/validate.md": "",
    "nodes/nodegroup-controller.md": "",
    "operators/deletion.md": "shop",
    "operators/explain.md": "shop",
    "operators/manifests.md": "samples",
    "operators/pause.md": "shop",
    "testing/serve.md": "server",
}
"""The guides whose sessions are followed, each with what its reader has before."""

OTHERWISE: Final = {
    "README.md": "tests/docs/test_readme.py follows it",
    "docs/autoscaling/hpa-controller.md": "tests/docs/test_hpa_controller_page.py follows it",
    "docs/autoscaling/scenario.md": "records for two hours; the same commands are in tests/cli/record",
    "docs/operators/sharding.md": "shows replicas in pods, one of them killed; see tests/cli/explain/test_lease.py",
}
"""The pages with sessions that are not followed here, and why."""

NAMESPACE: Final = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""
KUBECONFIG: Final = Run("export KUBECONFIG=$PWD/kubeconfig", "")
SERVED: Final = "serving on http://...; Ctrl-C stops it\n"


def prepared(what: str) -> Iterator[Step]:
    """Yield what a reader does before a guide."""
    if what == "server":
        yield Run("ocf serve --kubeconfig kubeconfig", SERVED, stays=True)
        yield KUBECONFIG
    page = (DOCS / "operators/explain.md").read_text(encoding="utf-8")
    module, owner, *_ = (step for step in steps(page, every=False) if isinstance(step, Write))
    assert (module.name, owner.name) == ("shop_operator.py", "owner.yaml")
    if what == "samples":
        yield Run("mkdir samples", "")
        yield replace(module, name="shop.py")
        yield replace(owner, name="samples/owner.yaml")
    if what == "shop":
        yield from (module, owner, Write("shop.yaml", NAMESPACE, adding=False))
        command = "ocf dev shop_operator --apply shop.yaml --apply owner.yaml --kubeconfig kubeconfig"
        yield Run(command, SERVED, stays=True)
        yield KUBECONFIG
        yield Run("kubectl config set-context --current --namespace shop", None)
        yield Run("kubectl get deployments --no-headers", "corner 0/3 0 0 1s")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Install ocf as docs/start/install.md says, into an environment of the reader's; return its variables."""
    reader = reader_in(tmp_path_factory.mktemp("installed"))
    reader.do(Run("python3 -m venv .venv && . .venv/bin/activate", ""))
    reader.do(Run("pip install --quiet ../ocf", ""))
    return {name: reader.environment[name] for name in ("PATH", "VIRTUAL_ENV")}


@pytest.mark.long
@pytest.mark.parametrize("name", GUIDES)
def test_the_sessions_of_a_guide_print_what_it_shows(reader: Reader, installed: Mapping[str, str], name: str) -> None:
    """Its files are all that its commands need; other blocks are parts of files, and settings to choose from."""
    reader.environment |= installed
    # Of the other guides, commands without an output are parts of longer ones, or for another machine.
    unshown = name == "operators/explain.md"
    session = list(steps((DOCS / name).read_text(encoding="utf-8"), every=False, unshown=unshown))
    assert any(isinstance(step, Run) and step.output for step in session)
    for step in (*prepared(GUIDES[name]), *session):
        reader.do(step)


def test_each_page_with_a_session_is_followed() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    found = {str(page.relative_to(ROOT)) for page in pages if "\n```console\n" in page.read_text(encoding="utf-8")}
    assert found == {f"docs/{name}" for name in (*FOLLOWED, *GUIDES)} | OTHERWISE.keys()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        pytest.param("a  b\n", "a b", True, id="spaces"),
        pytest.param("web 3s", "web 12s", True, id="ages"),
        pytest.param("web 3s", "web 2m5s", True, id="longer ages"),
        pytest.param("on http://...; ends", "on http://127.0.0.1:5; ends", True, id="anything"),
        pytest.param("", "", True, id="nothing"),
        pytest.param("", "error", False, id="something instead of nothing"),
        pytest.param("2/2", "2/3", False, id="another number"),
        pytest.param("...\nb", "a\nc", False, id="another line"),
    ],
)
def test_outputs_are_compared_as_people_do(shown: str, printed: str, same: bool) -> None:
    assert is_as_shown(shown, printed) is same
