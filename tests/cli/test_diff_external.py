"""`ocf diff` of external resources: it reads them, and neither changes nor records anything."""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cli import diff as command
from ocf.cli.operator_loader import load_components
from ocf.component import finalize, reconciling
from ocf.objects import ObjectKey
from tests.cli.owner_files import owners_of
from tests.cli.test_diff import Env

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.test_diff import Run

pytestmark = pytest.mark.usefixtures("operator_directory")

IMPORT = "from ocf.primitives import deployment"
OUTSIDE = """

class Session:
    stored: dict = {}
    calls: list = []

    def get(self, name):
        self.calls.append(f"read {name}")
        return self.stored.get(name)


class Buckets(external.Client):
    kind = "Bucket"

    def __init__(self, session):
        self.session = session

    async def read(self, identity):
        return self.session.get(identity.name)

    async def apply(self, identity, desired, observed):
        self.session.calls.append(f"apply {identity.name}")
        self.session.stored[identity.name] = {**desired, "region": "eu"}
        return self.session.stored[identity.name]

    async def delete(self, identity):
        self.session.calls.append(f"delete {identity.name}")
        self.session.stored.pop(identity.name, None)


def files(owner, session, *names):
    builder = component.Builder("files", owner=ObjectKey.of(owner)).with_prune(external=[Buckets(session)])
    for name in names:
        bucket = external.Builder(Buckets(session), name=name, desired={"size": owner["spec"].get("size", 1)})
        builder.with_resource(bucket)
    return builder.build()


def outside(owner: dict) -> component.Component:
    return files(owner, Session(), "corner", "side")


def without_side(owner: dict) -> component.Component:
    return files(owner, Session(), "corner")


def unopened(owner: dict) -> component.Component:
    return files(owner, None, "corner")
"""


@pytest.fixture
def calls(rewrite: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the calls of the operator's system."""
    rewrite(IMPORT, f"from ocf.objects import ObjectKey\n{IMPORT}, external\n{OUTSIDE}")
    monkeypatch.syspath_prepend(".")
    found: list[str] = importlib.import_module("shop_operator").Session.calls
    return found


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Env:
    found = Env()
    monkeypatch.setattr(command, "connect", found.connect)
    found.create_owner()
    return found


def reconcile(env: Env) -> None:
    """Run a real reconcile, as the operator does."""

    async def work() -> None:
        [given] = owners_of("owner.yaml")
        built = await load_components("shop_operator:outside")[0].components(given)
        for _ in range(2):
            async with reconciling(await env.inner.get(ObjectKey.of(given)), env.inner) as context:
                await finalize(context, *built)
                for each in built:
                    await each.reconcile(context)

    asyncio.run(work())


def shown(ocf: Run, name: str, *more: str) -> tuple[int, list[str]]:
    answer = ocf("diff", f"shop_operator:{name}", "--owner", "owner.yaml", *more)
    return answer.exit_code, answer.stdout.splitlines()


def test_what_would_be_made_is_shown_and_only_read(env: Env, calls: list[str], ocf: Run) -> None:
    version = env.inner.resource_version
    code, lines = shown(ocf, "outside")
    assert code == 1
    assert lines[0] == "# component files of Shop shop/corner"
    assert [line for line in lines if line.startswith("# create")] == [
        "# create external/Bucket/corner: absent",
        "# create external/Bucket/side: absent",
    ]
    assert lines.count("+  size: 1") == 2
    assert (sorted(calls), env.inner.resource_version) == (["read corner", "read side"], version)
    assert env.recorded.writes == ()


def test_what_is_in_sync_is_no_change(env: Env, calls: list[str], ocf: Run) -> None:
    reconcile(env)
    calls.clear()
    assert shown(ocf, "outside") == (0, ["# component files of Shop shop/corner: no changes"])
    assert sorted(calls) == ["read corner", "read side"]


def test_a_change_and_a_removal_are_shown_and_only_read(env: Env, calls: list[str], ocf: Run) -> None:
    reconcile(env)
    calls.clear()
    version = env.inner.resource_version
    code, lines = shown(ocf, "without_side", "--set", "spec.size=4")
    assert code == 1
    assert "# update external/Bucket/corner: size: changed" in lines
    assert {"-  size: 1", "+  size: 4"} <= {*lines}
    assert [line for line in lines if line.startswith("# delete")] == [
        "# delete external/Bucket/side: because it is not registered any more"
    ]
    assert (sorted(calls), env.inner.resource_version) == (["read corner", "read side"], version)


@pytest.mark.usefixtures("operator_directory", "env")
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_session_that_no_lifespan_has_opened_is_named_with_its_resource_and_client(
    calls: list[str], ocf: Run, output: str
) -> None:
    code, lines = shown(ocf, "unopened", "--output", output)
    remedy = "a dry run opens no lifespan: let the client open a session of its own if it gets none"
    problem = f"Failing: external/Bucket/corner: Buckets.read: None has no attribute get ({remedy})"
    found: Any = json.loads("\n".join(lines))[0]["halt"] if output == "json" else lines[1]
    assert found == (problem if output == "json" else f"# the reconcile would stop early, {problem}")
    assert (code, calls) == (1, [])
