"""`ocf diff` shows the changes of the next reconcile, and makes none."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import Result

from ocf import component
from ocf.cli import diff as command
from ocf.cli.operator_loader import load_components
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import reconciling
from ocf.errors import ServerError
from ocf.objects import ObjectKey
from ocf.primitives import deployment
from ocf.testing import RecordingCluster
from ocf_server import CustomKind, EmbeddedCluster
from tests.cli.owner_files import owners_of

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
# spec.replicas is taken over from "kubectl"
"""


def deployment_named(name: str) -> deployment.Builder:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    metadata = {"name": name, "namespace": "shop"}
    return deployment.Builder(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        }
    )


class Env:
    """The cluster that the command connects to."""

    def __init__(self) -> None:
        self.inner = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
        self.recorded = RecordingCluster(self.inner)
        self.connected_with: tuple[str | None, str | None] | None = None

    async def connect(self, kubeconfig: str | None, context: str | None) -> Any:
        self.connected_with = kubeconfig, context

        @asynccontextmanager
        async def opened() -> AsyncIterator[RecordingCluster]:
            yield self.recorded

        return opened()

    def create_owner(self) -> None:
        [owner] = owners_of("owner.yaml")
        asyncio.run(self.inner.create(owner, field_manager="user"))

    def reconcile(self, name: str = "one", *changes: str) -> None:
        """Run a real reconcile, as the operator does."""

        async def work() -> None:
            [given] = owners_of("owner.yaml", changes)
            live = await self.inner.get(ObjectKey.of(given))
            built = await load_components(f"shop_operator:{name}")[0].components({**live, "spec": given["spec"]})
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
def env(monkeypatch: pytest.MonkeyPatch) -> Env:
    found = Env()
    monkeypatch.setattr(command, "connect", found.connect)
    return found


@pytest.fixture
def diff(env: Env, ocf: Run) -> Run:
    """Run the command, and check that it sends dry runs only."""

    def run(*words: str) -> Result:
        changes = env.inner.requests.changes
        answer = ocf(*(words or ONE))
        assert env.recorded.writes == ()
        assert env.inner.requests.changes == changes
        return answer

    return run


def test_a_blocked_component_is_a_change(env: Env, diff: Run) -> None:
    """Nothing is deployed, so no output would be wrong."""
    env.create_owner()
    arguments = ("diff", "shop_operator:waiting", "--owner", "owner.yaml")
    answer = diff(*arguments)
    assert (answer.exit_code, answer.stdout.splitlines()) == (
        1,
        [
            "# component web of Shop shop/corner",
            "# the reconcile would stop early, Blocked: Deployment backend: no license",
        ],
    )
    [shown] = json.loads(diff(*arguments, "--output", "json").stdout)
    assert (shown["differs"], shown["halt"]) == (False, "Blocked: Deployment backend: no license")


BUCKETS = """

class Buckets(external.Client):
    kind = "Bucket"

    async def read(self, identity):
        raise TimeoutError

    async def apply(self, identity, desired, observed):
        raise AssertionError

    async def delete(self, identity):
        raise AssertionError


def outside(owner: dict) -> component.Component:
    bucket = external.Builder(Buckets(), name="corner", desired={"size": 1})
    return component.Builder("files").with_resource(bucket).build()
"""


def test_a_component_with_a_resource_that_cannot_be_read_is_a_change(
    env: Env, diff: Run, rewrite: Callable[[str, str], None]
) -> None:
    """It was not compared, so "no changes" would be a guess."""
    env.create_owner()
    imports = "from ocf.primitives import deployment"
    rewrite(imports, f"{imports}, external\n{BUCKETS}")
    answer = diff("diff", "shop_operator:outside", "--owner", "owner.yaml", "--explain")
    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[:2] == [
        "# component files of Shop shop/corner",
        "# the reconcile would stop early, Failing: external/Bucket/corner: no answer within 10 s",
    ]
    assert "the call of its system failed" in answer.stdout


def test_objects_that_stay_behind_are_named(env: Env, diff: Run) -> None:
    """As after a change of a field that says where the objects are."""
    env.create_owner()
    backend = deployment_named("former")

    async def release() -> None:
        [owner] = owners_of("owner.yaml")
        async with reconciling(await env.inner.get(ObjectKey.of(owner)), env.inner) as context:
            await component.Builder("web", condition_type="WebReady").with_resource(backend).build().reconcile(context)

    asyncio.run(release())
    answer = diff()

    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[-2:] == [
        "# apps/v1/Deployment/shop/former stays: the component applied it, and does not register it any more",
        "# with_prune() of the component's builder deletes such objects",
    ]
    [shown] = json.loads(diff(*ONE, "--output", "json").stdout)
    assert shown["unregistered"] == ["apps/v1/Deployment/shop/former"]


def test_without_the_owner_in_the_cluster_everything_is_new(diff: Run) -> None:
    answer = diff()
    assert answer.exit_code == 1
    assert answer.stderr == ("note: Shop shop/corner is not in the cluster, so the changes are those for a new owner\n")
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


def test_no_changes_are_status_0(env: Env, diff: Run) -> None:
    env.create_owner()
    env.reconcile()
    answer = diff()
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == "# component web of Shop shop/corner: no changes\n"


def test_a_change_has_its_source_and_its_previous_manager(env: Env, diff: Run) -> None:
    env.create_owner()
    env.reconcile()
    env.patch(spec={"replicas": 9})
    answer = diff(*ONE, "--set", "spec.size=4")
    assert answer.exit_code == 1
    assert answer.stdout.replace(env.uid(), "UID") == CHANGED


OPERATOR = """
from ocf.runtime.operator import Operator, OwnerType

shops = Operator(
    name="ocf",
    owner=OwnerType("example.com/v1", "Shop", Shop),
    components=modelled,
    former_managers=["kubectl"],
)


def zoned(owner):"""


def test_the_former_managers_of_an_operator_are_taken_over(
    env: Env, diff: Run, rewrite: Callable[[str, str], None]
) -> None:
    env.create_owner()
    env.reconcile()
    env.patch(metadata={"labels": {"theirs": "yes"}})
    rewrite("def zoned(owner):", OPERATOR)
    answer = diff("diff", "shop_operator:shops", "--owner", "owner.yaml")
    assert "metadata.managedFields[manager=kubectl]: taken over" in answer.stdout
    assert "-    theirs: 'yes'" in answer.stdout
    assert "+    ocf.dev/taken-over.kubectl: 'true'" in answer.stdout


def test_a_write_that_changes_ownership_only(env: Env, diff: Run) -> None:
    env.create_owner()
    env.reconcile()
    env.patch(spec={"replicas": 4})
    answer = diff(*ONE, "--set", "spec.size=4")
    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[1:] == [
        "# update apps/v1/Deployment/shop/backend: spec.replicas: not owned",
        "# no value changes, only the field ownership",
    ]


def test_a_deleted_object_is_shown(env: Env, diff: Run, rewrite: Callable[[str, str], None]) -> None:
    env.create_owner()
    env.reconcile()
    rewrite("with_resource(resource)", "with_resource(resource, delete_when=True)")
    answer = diff()
    assert answer.exit_code == 1
    assert answer.stdout == (
        "# component web of Shop shop/corner\n# delete apps/v1/Deployment/shop/backend: not wanted\n"
    )


def test_an_ignored_field_has_its_managers(env: Env, diff: Run, rewrite: Callable[[str, str], None]) -> None:
    rewrite("with_resource(resource)", 'with_resource(resource, ignore_fields=["spec.replicas"])')
    env.create_owner()
    env.reconcile()
    env.patch(spec={"replicas": 9})
    answer = diff()
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[1] == (
        "# apps/v1/Deployment/shop/backend: spec.replicas is ignored: 9, set by kubectl (Update)"
    )


def test_a_conflict_has_field_and_manager_and_is_status_2(
    env: Env, diff: Run, rewrite: Callable[[str, str], None]
) -> None:
    rewrite("with_resource(resource)", 'with_resource(resource, on_conflict="fail")')
    env.create_owner()
    env.reconcile()
    env.patch(spec={"replicas": 9})
    answer = diff()
    assert answer.exit_code == 2
    assert (
        '# apps/v1/Deployment/shop/backend: spec.replicas is owned by "kubectl", which on_conflict protects'
        in answer.stdout
    )
    assert "# the reconcile would fail: failed to apply resource apps/v1/Deployment/shop/backend: " in answer.stdout


def test_explain_shows_action_and_reason_of_every_resource(env: Env, diff: Run) -> None:
    env.create_owner()
    env.reconcile()
    title, headings, row = diff(*ONE, "--explain").stdout.splitlines()[1:4]
    assert title == "component web of Shop shop/corner"
    assert headings.split() == ["resource", "action", "because", "reports"]
    assert row.split("  ")[1:4] == [
        "apps/v1/Deployment/shop/backend",
        "Unchanged",
        "nothing to do: compared field by field, an apply would change nothing",
    ]


def test_json_for_programs(env: Env, diff: Run) -> None:
    env.create_owner()
    env.reconcile()
    env.patch(spec={"replicas": 9})
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


def test_the_cluster_is_that_of_the_options(env: Env, diff: Run) -> None:
    diff(*ONE, "--kubeconfig", "there", "--context", "that")
    assert env.connected_with == ("there", "that")


def test_without_a_cluster_it_is_one_line_and_status_2(ocf: Run) -> None:
    answer = ocf(*ONE, "--kubeconfig", "nowhere")
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: no kubeconfig at nowhere")


def test_a_cluster_that_does_not_answer(env: Env, diff: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreachable(*_: Any, **__: Any) -> Any:
        raise ServerError("no answer")

    monkeypatch.setattr(env.recorded, "get", unreachable)
    answer = diff()
    assert (answer.exit_code, answer.stderr) == (2, "error: no answer\n")


def test_an_owner_that_is_being_deleted_has_a_note(env: Env, diff: Run) -> None:
    env.create_owner()
    key = ObjectKey("example.com/v1", "Shop", "corner", "shop")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    asyncio.run(env.inner.patch(key, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")))
    asyncio.run(env.inner.delete(key))
    answer = diff()
    assert answer.stderr == (
        "note: Shop shop/corner is being deleted; the changes are those of a reconcile without the deletion\n"
    )
    assert "# create apps/v1/Deployment/shop/backend" in answer.stdout


@pytest.mark.parametrize(
    ("value", "note"),
    [
        pytest.param(
            "true",
            'is paused by the annotation ocf.ocf.dev/paused: "true", set by "user"; '
            "the changes are those of the reconcile that follows the pause",
            id="paused",
        ),
        pytest.param(
            "yes",
            'the owner is not paused: the annotation ocf.ocf.dev/paused must be "true" to pause it, got "yes"',
            id="not a pause",
        ),
    ],
)
def test_an_owner_that_is_paused_has_a_note(env: Env, diff: Run, value: str, note: str) -> None:
    env.create_owner()
    key = ObjectKey("example.com/v1", "Shop", "corner", "shop")
    paused = {"metadata": {"annotations": {"ocf.ocf.dev/paused": value}}}
    asyncio.run(env.inner.patch(key, paused, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")))
    answer = diff()
    assert answer.stderr.startswith("note: Shop shop/corner")
    assert note in answer.stderr
    assert "# create apps/v1/Deployment/shop/backend" in answer.stdout


def test_the_spec_is_that_of_the_file_and_the_metadata_that_of_the_cluster(env: Env) -> None:
    env.create_owner()
    key = ObjectKey("example.com/v1", "Shop", "corner", "shop")
    status = {"conditions": [{"type": "OtherReady", "status": "True"}]}
    kept = asyncio.run(env.inner.get(key))
    updated = env.inner.update({**kept, "status": status}, field_manager="user", subresource=Subresource.STATUS)
    live = asyncio.run(updated)
    [owner] = owners_of("owner.yaml", ["spec.size=9", "metadata.labels.a=b", "metadata.uid=made-up"])
    sources = load_components("shop_operator:one")
    found = asyncio.run(command._with_live_metadata(owner, env.inner, sources))
    assert found["spec"]["size"] == 9
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["uid"] == live["metadata"]["uid"]
    assert found["status"] == live["status"]


class TestProgress:
    def test_it_is_not_shown_without_a_terminal(self) -> None:
        with command._progress(9) as seen:
            assert seen is None

    @pytest.mark.parametrize(("total", "shown"), [(1, False), (2, True)])
    def test_it_is_shown_in_a_terminal_for_several_objects(
        self, monkeypatch: pytest.MonkeyPatch, total: int, shown: bool
    ) -> None:
        monkeypatch.setattr(command, "_is_terminal", lambda: True)
        with command._progress(total) as seen:
            assert (seen is not None) is shown
            if seen is not None:
                seen(BACKEND)
