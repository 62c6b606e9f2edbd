"""`ocf diff` shows what the next reconcile would change, and changes nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typer.testing import Result

from ocf.cli import diff as command
from ocf.cli.component_loader import components_of, load_function, read_owners
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import reconciling
from ocf.embedded import CustomKind, EmbeddedCluster
from ocf.errors import ServerError
from ocf.objects import ObjectKey
from ocf.testing import RecordingCluster

pytestmark = pytest.mark.usefixtures("operator_directory")

Run = Callable[..., Result]
ONE = ("diff", "shop_operator:one", "--owner", "owner.yaml")
BACKEND = ObjectKey("apps/v1", "Deployment", "backend", "shop")

CHANGED = """\
# component web of Shop shop/corner
# update apps/v1/Deployment/shop/backend: spec.replicas: not owned
--- live apps/v1/Deployment/shop/backend
+++ next apps/v1/Deployment/shop/backend
@@ -12,7 +12,7 @@
     uid: UID
 spec:
   progressDeadlineSeconds: 600
-  replicas: 9
+  replicas: 4
   revisionHistoryLimit: 10
   selector:
     matchLabels:
# spec.replicas is set by mutation size, edit_deployment_spec
# spec.replicas is taken from "kubectl"
"""


class Cell:
    """The cluster that the command reaches."""

    def __init__(self) -> None:
        self.inner = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
        self.recorded = RecordingCluster(self.inner)
        self.asked: tuple[str | None, str | None] | None = None

    async def connect(self, kubeconfig: str | None, context: str | None) -> Any:
        self.asked = kubeconfig, context

        @asynccontextmanager
        async def opened() -> AsyncIterator[RecordingCluster]:
            yield self.recorded

        return opened()

    def create_owner(self) -> None:
        [owner] = read_owners("owner.yaml")
        asyncio.run(self.inner.create(owner, field_manager="user"))

    def reconcile(self, name: str = "one", *changes: str) -> None:
        """Run a real pass, as the operator does."""

        async def work() -> None:
            [given] = read_owners("owner.yaml", changes)
            live = await self.inner.get(ObjectKey.of(given))
            built = components_of(name, load_function(f"shop_operator:{name}"), {**live, "spec": given["spec"]})
            async with reconciling(live, self.inner) as context:
                for each in built:
                    await each.reconcile(context)

        asyncio.run(work())

    def patch(self, **content: Any) -> None:
        work = self.inner.patch(BACKEND, content, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"))
        asyncio.run(work)

    def uid(self) -> str:
        found = asyncio.run(self.inner.get(BACKEND))["metadata"]["ownerReferences"][0]["uid"]
        return str(found)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    found = Cell()
    monkeypatch.setattr(command, "connect", found.connect)
    return found


@pytest.fixture
def diff(cell: Cell, ocf: Run) -> Run:
    """Run the command, and prove that it sent dry runs only."""

    def run(*words: str) -> Result:
        changes = cell.inner.requests.changes
        answer = ocf(*(words or ONE))
        assert cell.recorded.writes == ()
        assert cell.inner.requests.changes == changes
        return answer

    return run


def test_what_is_blocked_is_no_lack_of_differences(cell: Cell, diff: Run) -> None:
    """Nothing is deployed, so saying nothing would be wrong."""
    cell.create_owner()
    arguments = ("diff", "shop_operator:waiting", "--owner", "owner.yaml")
    answer = diff(*arguments)
    assert (answer.exit_code, answer.stdout.splitlines()) == (
        1,
        ["# component web of Shop shop/corner", "# the reconcile would stop early, Blocked: no license"],
    )
    [shown] = json.loads(diff(*arguments, "--output", "json").stdout)
    assert (shown["differs"], shown["halt"]) == (False, "Blocked: no license")


def test_an_owner_that_is_not_there_is_told_and_everything_is_new(diff: Run) -> None:
    answer = diff()
    assert answer.exit_code == 1
    assert answer.stderr == (
        "note: Shop shop/corner is not in the cluster, so everything is shown as for a new owner\n"
    )
    lines = answer.stdout.splitlines()
    assert lines[:5] == [
        "# component web of Shop shop/corner",
        "# create apps/v1/Deployment/shop/backend: absent",
        "--- live apps/v1/Deployment/shop/backend",
        "+++ next apps/v1/Deployment/shop/backend",
        lines[4],
    ]
    assert "+  replicas: 3" in lines
    assert "+      restartPolicy: Always" in lines


def test_no_difference_is_status_0(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    cell.reconcile()
    answer = diff()
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == "# component web of Shop shop/corner: no difference\n"


def test_a_difference_says_what_who_and_from_whom(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    cell.reconcile()
    cell.patch(spec={"replicas": 9})
    answer = diff(*ONE, "--set", "spec.size=4")
    assert answer.exit_code == 1
    assert answer.stdout.replace(cell.uid(), "UID") == CHANGED


def test_a_write_that_changes_no_value_says_so(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    cell.reconcile()
    cell.patch(spec={"replicas": 4})
    answer = diff(*ONE, "--set", "spec.size=4")
    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[1:] == [
        "# update apps/v1/Deployment/shop/backend: spec.replicas: not owned",
        "# no value changes, only who owns it",
    ]


def test_an_object_that_would_go_is_named(cell: Cell, diff: Run, rewrite: Callable[[str, str], None]) -> None:
    cell.create_owner()
    cell.reconcile()
    rewrite("with_resource(resource)", "with_resource(resource, delete_when=True)")
    answer = diff()
    assert answer.exit_code == 1
    assert answer.stdout == (
        "# component web of Shop shop/corner\n# delete apps/v1/Deployment/shop/backend: not wanted\n"
    )


def test_a_field_that_is_left_says_to_whom(cell: Cell, diff: Run, rewrite: Callable[[str, str], None]) -> None:
    rewrite("with_resource(resource)", 'with_resource(resource, ignore_fields=["spec.replicas"])')
    cell.create_owner()
    cell.reconcile()
    cell.patch(spec={"replicas": 9})
    answer = diff()
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[1] == (
        "# apps/v1/Deployment/shop/backend: spec.replicas is left to others: 9, set by kubectl (Update)"
    )


def test_a_conflict_names_field_and_manager_and_is_status_2(
    cell: Cell, diff: Run, rewrite: Callable[[str, str], None]
) -> None:
    rewrite("with_resource(resource)", 'with_resource(resource, on_conflict="fail")')
    cell.create_owner()
    cell.reconcile()
    cell.patch(spec={"replicas": 9})
    answer = diff()
    assert answer.exit_code == 2
    assert (
        '# apps/v1/Deployment/shop/backend: spec.replicas belongs to "kubectl", and may not be taken' in answer.stdout
    )
    assert "# the reconcile would fail: failed to apply resource apps/v1/Deployment/shop/backend: " in answer.stdout


def test_explain_says_of_every_resource_what_and_why(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    cell.reconcile()
    title, headings, row = diff(*ONE, "--explain").stdout.splitlines()[1:4]
    assert title == "component web of Shop shop/corner"
    assert headings.split() == ["resource", "action", "because", "reports"]
    assert row.split("  ")[1:4] == [
        "apps/v1/Deployment/shop/backend",
        "Unchanged",
        "nothing to do: compared field by field, an apply would change nothing",
    ]


def test_json_for_programs(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    cell.reconcile()
    cell.patch(spec={"replicas": 9})
    [shown] = json.loads(diff(*ONE, "--output", "json").stdout)
    assert (shown["owner"], shown["component"], shown["differs"]) == ("Shop shop/corner", "web", True)
    [changed] = shown["objects"]
    assert changed["verb"] == "update"
    assert changed["fields"] == [
        {"path": "spec.replicas", "before": 9, "after": 3, "source": "mutation size, edit_deployment_spec"}
    ]
    assert changed["taken"] == [{"path": "spec.replicas", "manager": "kubectl"}]
    assert shown["condition"]["type"] == "WebReady"
    assert shown["resources"][0]["action"] == "Updated"


def test_secrets_are_digests(diff: Run) -> None:
    answer = diff()
    assert "hunter2" not in answer.output
    assert "redacted, sha256" in answer.stdout


def test_the_cluster_is_the_one_that_is_meant(cell: Cell, diff: Run) -> None:
    diff(*ONE, "--kubeconfig", "there", "--context", "that")
    assert cell.asked == ("there", "that")


def test_without_a_cluster_it_is_one_line_and_status_2(ocf: Run) -> None:
    answer = ocf(*ONE, "--kubeconfig", "nowhere")
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: no kubeconfig at nowhere")


def test_a_cluster_that_does_not_answer(cell: Cell, diff: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreachable(*_: Any, **__: Any) -> Any:
        raise ServerError("no answer")

    monkeypatch.setattr(cell.recorded, "get", unreachable)
    answer = diff()
    assert (answer.exit_code, answer.stderr) == (2, "error: no answer\n")


def test_an_owner_that_is_being_deleted_is_told(cell: Cell, diff: Run) -> None:
    cell.create_owner()
    key = ObjectKey("example.com/v1", "Shop", "corner", "shop")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    asyncio.run(cell.inner.patch(key, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")))
    asyncio.run(cell.inner.delete(key))
    assert diff().stderr == (
        "note: Shop shop/corner is being deleted; shown is what a reconcile would do if it were not\n"
    )


def test_the_file_says_what_is_wanted_and_the_cluster_says_what_is_known(cell: Cell) -> None:
    cell.create_owner()
    key = ObjectKey("example.com/v1", "Shop", "corner", "shop")
    status = {"conditions": [{"type": "OtherReady", "status": "True"}]}
    kept = asyncio.run(cell.inner.get(key))
    updated = cell.inner.update({**kept, "status": status}, field_manager="user", subresource=Subresource.STATUS)
    live = asyncio.run(updated)
    [owner] = read_owners("owner.yaml", ["spec.size=9", "metadata.labels.a=b", "metadata.uid=made-up"])
    found = asyncio.run(command._with_live_metadata(owner, cell.inner))
    assert found["spec"]["size"] == 9
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["uid"] == live["metadata"]["uid"]
    assert found["status"] == live["status"]


class TestProgress:
    def test_there_is_none_without_a_terminal(self) -> None:
        with command._progress(9) as seen:
            assert seen is None

    @pytest.mark.parametrize(("total", "shown"), [(1, False), (2, True)])
    def test_there_is_some_at_a_terminal_for_several_objects(
        self, monkeypatch: pytest.MonkeyPatch, total: int, shown: bool
    ) -> None:
        monkeypatch.setattr(command, "_at_a_terminal", lambda: True)
        with command._progress(total) as seen:
            assert (seen is not None) is shown
            if seen is not None:
                seen(BACKEND)
