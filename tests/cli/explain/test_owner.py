"""`ocf explain KIND/NAME`: from a cluster with the rights of a reader, and from files."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.cluster import Request, Verb
from ocf.objects import Manifest, dump_document
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.ownership.situations import CLAIM, CRASH, EXIT, SHOP, STATEFUL, UNSCHEDULED, WEB
from tests.ownership.world import (
    GROUP,
    KINDS,
    Town,
    ago,
    cluster_scoped,
    condition,
    container,
    event,
    obj,
    pod,
    shop,
    workload,
    written,
)

CRASHING: Final = [*WEB, pod(WEB[-1], "web-x", containerStatuses=[container(CRASH, last=EXIT, restarts=9)])]


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=False)


def shown(*arguments: str) -> str:
    answer = explain(*arguments)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@contextmanager
def served(path: Path, objects: Sequence[Manifest], kinds: Sequence[CustomKind] = KINDS) -> Iterator[str]:
    """Serve a cluster with objects in a thread; yield the path of its kubeconfig, with the namespace `town`."""
    namespaces = {"town", *(one["metadata"].get("namespace", "town") for one in objects)}
    ready, over = threading.Event(), threading.Event()

    async def work() -> None:
        cluster = EmbeddedCluster(kinds=kinds, namespaces=sorted(namespaces))
        await cluster.restore(objects)
        async with serving(cluster) as server:
            config = server.kubeconfig()
            config["contexts"][0]["context"]["namespace"] = "town"
            write_kubeconfig(config, path / "kubeconfig")
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert ready.wait(60)
        yield str(path / "kubeconfig")
    finally:
        over.set()
        thread.join(60)


def written_file(path: Path, objects: Sequence[Manifest]) -> str:
    """Write objects as `kubectl get -o yaml` prints them."""
    (path / "town.yaml").write_text(dump_document({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path / "town.yaml")


def of_files(path: Path, objects: Sequence[Manifest], *arguments: str) -> str:
    """Return what is shown of files, with the time of the situations."""
    return shown(*arguments, "-f", written_file(path, objects), "--now", "2026-01-31T12:00:00Z")


def test_the_cause_comes_first_and_what_is_ready_is_one_line(tmp_path: Path) -> None:
    ready = workload("Deployment", SHOP, name="api", ready=1)
    replicas = workload("ReplicaSet", ready, name="api-5f", ready=1)
    assert of_files(tmp_path, [SHOP, STATEFUL, UNSCHEDULED, CLAIM, ready, replicas], "shop/corner") == (
        "The claim data-web-0 is Pending for 12 minutes; so StatefulSet web has 0 of 1\n"
        "  pods ready; so Shop corner is not ready.\n"
        "\n"
        "Shop corner: failing for 12 minutes; Ready is False (Progressing: waiting for\n"
        "  resources)\n"
        "  Deployment api: ready for 12 minutes; 1 object\n"
        "  StatefulSet web: progressing; has 0 of 1 pods ready for 12 minutes\n"
        "    Pod web-0: failing; cannot be scheduled for 12 minutes: 0/1 nodes are\n"
        "      available: pod has unbound immediate PersistentVolumeClaims. not found\n"
        "    PersistentVolumeClaim data-web-0: failing; is Pending for 12 minutes\n"
    )


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/operators/explain.md").read_text(encoding="utf-8")
    [file] = re.findall(r"```yaml\n(apiVersion: v1\nkind: List\n.*?)```", page, re.DOTALL)
    [shown_text] = re.findall(r"```text\n(The claim.*?)```", page, re.DOTALL)
    (tmp_path / "town.yaml").write_text(file)
    arguments = ("shop/corner", "-f", str(tmp_path / "town.yaml"), "--now", "2026-01-31T12:00:00Z")
    assert shown(*arguments) == shown_text


DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"shops.{GROUP}"},
    "spec": {"group": GROUP, "names": {"kind": "Shop", "plural": "shops", "singular": "shop", "shortNames": ["sh"]}},
}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["shop/corner"], id="singular"),
        pytest.param(["shops", "corner"], id="plural and two words"),
        pytest.param(["Shop/corner"], id="kind"),
        pytest.param(["sh/corner"], id="short name"),
        pytest.param([f"shop.{GROUP}/corner"], id="with the group"),
        pytest.param([f"shops.v1.{GROUP}", "corner"], id="with version and group"),
    ],
)
def test_a_kind_is_named_as_for_kubectl(tmp_path: Path, words: list[str]) -> None:
    text = of_files(tmp_path, [*CRASHING, DEFINITION], *words)
    assert "so Shop corner is not ready." in " ".join(text.split())


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        pytest.param("gateway", "; did you mean gateways.networking.example.com?\n", id="not the group that was meant"),
        pytest.param(
            "gateways.gateway.networking.k8s.io", "; did you mean gateways.networking.example.com?\n", id="group"
        ),
        pytest.param("shops", ' "none" not found\n', id="only one kind"),
    ],
)
def test_an_absent_owner_whose_kind_has_a_namesake(word: str, hint: str, tmp_path: Path) -> None:
    """What kubectl does without a word: https://github.com/kubernetes/kubernetes/issues/102378."""
    namesake = CustomKind("networking.example.com", "v1", "Gateway")
    gateway = obj("networking.example.com/v1", "Gateway", "edge")
    with served(tmp_path, [gateway], kinds=[*KINDS, namesake]) as kubeconfig:
        absent = explain(f"{word}/none", "--kubeconfig", kubeconfig)
        found = explain("gateways.networking.example.com/edge", "--kubeconfig", kubeconfig)
    assert absent.exit_code == 2
    assert absent.stderr.endswith(hint)
    assert found.exit_code == 0


def test_a_cluster_is_read(tmp_path: Path) -> None:
    with served(tmp_path, CRASHING) as kubeconfig:
        text = " ".join(shown("shop/corner", "--kubeconfig", kubeconfig).split())
        both = json.loads(shown("shops", "--all", "--output", "json", "--kubeconfig", kubeconfig))
        missing = explain("shop/none", "--kubeconfig", kubeconfig)
        unknown = explain("shoop/corner", "--kubeconfig", kubeconfig)
    assert text.startswith("The pod web-x is not ready")
    assert "container app ends with exit code 1 (Error); so Deployment web has 0 of 1 pods ready; so Shop" in text
    assert "Not read" not in text
    assert [one["tree"]["name"] for one in both["owners"]] == ["Shop corner"]
    assert (missing.exit_code, missing.stderr.count("\n")) == (2, 1)
    assert missing.stderr.startswith("error: Shop none does not exist in namespace town: ")
    assert unknown.stderr == 'error: the cluster serves no kind "shoop"; did you mean shop?\n'


def test_durations_are_those_of_the_clock_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiohttp.web_response.rfc822_formatted_time", lambda: "Sat, 31 Jan 2026 12:00:00 GMT")
    with served(tmp_path, CRASHING) as kubeconfig:
        assert shown("shop/corner", "--kubeconfig", kubeconfig).startswith("The pod web-x is not ready for 12 minutes")


def test_all_owners_are_sorted_by_trouble(tmp_path: Path) -> None:
    ready = shop(condition("Ready", "True"), name="good")
    waits = shop(condition("Ready", reason="Waiting", message="waiting for a license"), name="new")
    lines = of_files(tmp_path, [ready, waits, *CRASHING], "shops", "--all").splitlines()
    assert lines[0] == "1 of 3 owners ready"
    starts = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert starts == ["1 of 3 owners ready", "failing", "progressing", "ready"]


def test_json_has_the_chain_and_the_tree(tmp_path: Path) -> None:
    found = json.loads(of_files(tmp_path, CRASHING, "shop/corner", "--output", "json"))
    assert [each["object"] for each in found["cause"]] == [
        "v1/Pod/town/web-x",
        "apps/v1/Deployment/town/web",
        f"{GROUP}/v1/Shop/town/corner",
    ]
    [deployment] = found["tree"]["children"]
    [replicas] = deployment["children"]
    assert (found["tree"]["state"], deployment["state"], replicas["children"][0]["state"]) == (
        "failing",
        "progressing",
        "failing",
    )
    assert found["tree"]["since"] == "2026-01-31T11:48:00Z"


def test_a_picture_is_written_beside_the_explanation(tmp_path: Path) -> None:
    for name in ("corner.svg", "corner.html"):
        text = of_files(tmp_path, CRASHING, "shop/corner", "--picture", str(tmp_path / name))
        assert text.startswith("The pod web-x is not ready")
    svg = (tmp_path / "corner.svg").read_text(encoding="utf-8")
    page = (tmp_path / "corner.html").read_text(encoding="utf-8")
    assert all(">Pod web-x</text>" in one for one in (svg, page))
    assert svg.startswith("<?xml")
    assert "<h1>The pod web-x is not ready for 12 minutes: " in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("shop/corner", "--picture", "corner.png"),
            "--picture must end in .html or .svg, got 'corner.png'",
            id="a format that is not there",
        ),
        pytest.param(
            ("shops", "--all", "--picture", "shops.svg"), "--picture shows one owner", id="a picture of all of a kind"
        ),
        pytest.param(
            ("shop/corner", "--tolerance", "0.2"),
            "--tolerance is for autoscalers, not for shop: write hpa/NAME, or leave it out",
            id="an option of autoscalers",
        ),
        pytest.param(("shop/corner", "--now", "2026-01-31T12:00:00Z"), "--now needs files", id="a time of a cluster"),
        pytest.param(
            ("shop/corner", "--all"), '--all needs one KIND, such as shops, got "shop/corner"', id="all of one"
        ),
        pytest.param(("--all",), '--all needs one KIND, such as shops, got ""', id="no kind"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error(arguments: tuple[str, ...], message: str) -> None:
    answer = explain(*arguments)
    assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1)
    assert answer.stderr.startswith(f"error: {message}")


def test_files_without_the_owner_name_what_they_have(tmp_path: Path) -> None:
    answer = explain("shop/none", "-f", written_file(tmp_path, CRASHING))
    known = "Deployment web, Pod web-x, ReplicaSet web-7d4, Shop corner"
    assert answer.stderr == f"error: no file has shop none; they have {known}\n"


def test_a_file_that_cannot_be_read_is_named() -> None:
    answer = explain("shop/corner", "-f", "gone.yaml")
    assert answer.stderr == "error: gone.yaml: cannot be read: No such file or directory\n"


def test_files_with_many_objects_name_ten(tmp_path: Path) -> None:
    answer = explain("shop/none", "-f", written_file(tmp_path, [shop(name=f"shop-{number}") for number in range(30)]))
    assert answer.stderr.count("Shop shop-") == 10
    assert answer.stderr.endswith(", and 20 more\n")


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [
        pytest.param(("8", "9"), "is ready", id="the newer one is the last"),
        pytest.param(("10", "9"), "is not ready", id="the newer one is the first"),
        pytest.param(("", "9"), "is ready", id="the last one if a version is missing"),
    ],
)
def test_of_an_owner_that_files_have_twice_the_newest_counts(
    tmp_path: Path, versions: tuple[str, str], sentence: str
) -> None:
    pair = [
        shop(condition("Ready", status, message="x"), metadata={"resourceVersion": version or None})
        for status, version in zip(("False", "True"), versions, strict=True)
    ]
    assert of_files(tmp_path, pair, "shop/corner").startswith(f"Shop corner {sentence}")


def test_the_plural_of_a_kind_with_a_vowel_before_its_y_is_known(tmp_path: Path) -> None:
    assert "1 owner ready" in of_files(tmp_path, [obj("example.com/v1", "Gateway", "front")], "gateways", "--all")


def test_a_definition_in_a_file_says_whether_a_kind_has_a_status(tmp_path: Path) -> None:
    new = shop(status={})
    definition = cluster_scoped(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "shops.example.com",
        spec={
            "group": GROUP,
            "names": {"kind": "Shop", "plural": "shops"},
            "versions": [{"name": "v1", "subresources": {"status": {}}}],
        },
    )
    assert of_files(tmp_path, [new], "shop/corner").startswith("Shop corner has no status and no objects")
    text = of_files(tmp_path, [new, definition], "shop/corner")
    assert " ".join(text.split()).startswith("Shop corner is not up to date: no operator has written a status for it")


def test_the_composite_resource_of_a_claim_is_read_from_a_cluster() -> None:
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "Fleet", "name": "corner-x"}
    waits = condition("Ready", reason="Waiting", message="waiting for the composite resource")
    claim = shop(waits, spec={"resourceRef": reference})
    parts = [cluster_scoped(f"{GROUP}/v1", "Fleet", name) for name in ("corner-x", "part")]
    parts[0]["spec"] = {
        "claimRef": {"kind": "Shop", "namespace": "town", "name": "corner"},
        "resourceRefs": [{"apiVersion": f"{GROUP}/v1", "kind": "Fleet", "name": name} for name in ("part", "gone")],
    }
    parts[1]["metadata"]["ownerReferences"] = [{**reference, "uid": parts[0]["metadata"]["uid"]}]
    parts[1]["status"] = {"conditions": [condition("Synced", reason="ReconcileError", message="access is denied")]}
    found = asyncio.run(Town([claim, *parts]).explain())
    assert found.sentence.startswith("Fleet part is not ready for 12 minutes: ReconcileError: access is denied")


def test_a_cluster_says_whether_a_kind_has_a_status() -> None:
    found = asyncio.run(Town([shop(status={})]).explain())
    assert found.sentence.startswith("Shop corner is not up to date: no operator has written a status for it")


def test_an_owner_of_several_namespaces_needs_one(tmp_path: Path) -> None:
    other = shop(metadata={"namespace": "west"})
    answer = explain("shop/corner", "-f", written_file(tmp_path, [SHOP, other]))
    assert answer.stderr == "error: shop corner is in several namespaces: write --namespace, one of town, west\n"
    assert "Shop corner is not ready" in of_files(tmp_path, [SHOP, other], "shop/corner", "-n", "west")


def _is_list_of(kind: str) -> Any:
    def forbid(request: Request) -> bool:
        return request.verb is Verb.LIST and request.kind == kind

    return forbid


def test_a_reader_without_a_right_to_pods_gets_a_true_sentence() -> None:
    found = asyncio.run(Town(CRASHING).explain(forbid=_is_list_of("Pod")))
    assert found.sentence == (
        "Deployment web has 0 of 1 pods ready for 12 minutes, and why is not known, because pods may not be read in "
        "town; so Shop corner is not ready."
    )
    assert [str(each) for each in found.unread] == ["pods may not be read in town"]


def test_a_reader_without_any_right_but_to_the_owner_hears_what_the_owner_says() -> None:
    found = asyncio.run(Town(CRASHING).explain(forbid=lambda request: request.verb is Verb.LIST))
    assert found.sentence == "Shop corner is not ready for 12 minutes: Progressing: waiting for resources."
    assert "pods may not be read in town" in [str(each) for each in found.unread]


def test_each_kind_is_listed_once() -> None:
    """So that the number of requests does not depend on the number of objects."""
    many = [pod(WEB[-1], f"web-{number}", containerStatuses=[container(CRASH, last=EXIT)]) for number in range(40)]
    town = Town([*WEB, *many])
    asyncio.run(town.read())
    assert len(town.requests) == len(set(town.requests))
    # Beside the lists: two for discovery, the owner and its namespace.
    lists = [path for path in town.requests if path.rpartition("/")[2] not in {"api", "apis", "corner", "town"}]
    assert len(town.requests) - len(lists) == 4


def test_no_value_of_a_secret_is_read_or_shown(tmp_path: Path) -> None:
    secret = obj("v1", "Secret", "db", SHOP, data={"password": "aHVudGVyMg=="}, metadata={"labels": {"app": "web"}})
    secret["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": '{"hunter2": 1}'}
    town = Town([*CRASHING, secret])
    reading = asyncio.run(town.read())
    assert not {word for word in ("hunter2", "aHVudGVyMg") if word in str(reading.snapshot)}
    picture = tmp_path / "corner.html"
    text = of_files(tmp_path, [*CRASHING, secret], "shop/corner", "--picture", str(picture))
    assert "Secret db" in text
    shown_texts = text + picture.read_text(encoding="utf-8")
    assert not {word for word in ("hunter2", "aHVudGVyMg") if word in shown_texts}


def test_cluster_scoped_objects_of_an_operator_of_ocf_are_there() -> None:
    """They cannot refer to an owner in a namespace: its finalizer, their field manager and a label lead to them."""
    owner = shop(metadata={"finalizers": ["shops.ocf.dev/cleanup"]})
    labels = {f"shops.ocf.dev/for-{owner['metadata']['uid']}": "object"}
    managed = {"managedFields": written(f"shops/Shop/web/{owner['metadata']['uid']}")}
    role = cluster_scoped("rbac.authorization.k8s.io/v1", "ClusterRole", "shop-corner", metadata=managed)
    elsewhere = obj("v1", "ConfigMap", "shared", metadata={"namespace": "west", "labels": labels})
    found = asyncio.run(Town([owner, role, elsewhere]).explain())
    assert {each.name for each in found.root.children} == {"component web", "ConfigMap west/shared"}
    [web] = [each for each in found.root.children if each.name == "component web"]
    assert [each.name for each in web.children] == ["ClusterRole shop-corner"]


def test_components_of_ocf_have_their_conditions_and_other_writers() -> None:
    owner = shop(
        condition("WebReady", reason="Creating", message="no pods"), condition("CacheReady", "True", "Healthy")
    )
    uid = owner["metadata"]["uid"]
    web = workload("Deployment", owner, metadata={"managedFields": written(f"shops/Shop/web/{uid}", "kubectl-edit")})
    cache = obj("v1", "ConfigMap", "cache", owner, metadata={"managedFields": written(f"shops/Shop/cache/{uid}")})
    found = asyncio.run(Town([owner, web, cache]).explain())
    nodes = {each.name: each for each in found.root.children}
    assert nodes["component web"].text == "WebReady=False (Creating) no pods"
    assert nodes["component web"].children[0].writers == ("kubectl-edit",)
    assert (nodes["component cache"].state, nodes["component cache"].children[0].writers) == ("ready", ())


def test_a_cluster_scoped_owner_has_objects_in_all_namespaces() -> None:
    fleet = cluster_scoped(f"{GROUP}/v1", "Fleet", "north", status={"conditions": [condition("Ready")]})
    web = workload("Deployment", fleet, metadata={"namespace": "west"})
    found = asyncio.run(Town([fleet, web]).explain("fleet", "north"))
    assert found.sentence.endswith(
        "Deployment west/web has 0 of 1 pods ready for 12 minutes; so Fleet north is not ready."
    )


def test_an_owner_that_is_ready_is_one_sentence() -> None:
    ready = shop(condition("Ready", "True", minutes=180))
    found = asyncio.run(Town([ready, workload("Deployment", ready, ready=1)]).explain())
    assert found.sentence == "Shop corner is ready for 3 hours, with 1 object."


def test_an_owner_that_says_that_it_is_ready_does_not_hide_a_crash() -> None:
    ready = shop(condition("Ready", "True"))
    web = workload("Deployment", ready)
    replicas = workload("ReplicaSet", web, name="web-7d4")
    crashing = pod(replicas, "web-x", containerStatuses=[container(CRASH, last=EXIT)])
    found = asyncio.run(Town([ready, web, replicas, crashing]).explain())
    assert found.sentence.endswith("so Shop corner has a problem, although it reports that it is ready.")


def test_warnings_of_the_last_hour_are_counted(tmp_path: Path) -> None:
    old = {**event(CRASHING[-1], "BackOff", "old"), "lastTimestamp": ago(90), "firstTimestamp": ago(95)}
    text = of_files(
        tmp_path, [*CRASHING, event(CRASHING[-1], "BackOff", "Back-off restarting", times=7), old], "shop/corner"
    )
    assert "7 warnings in the last hour" in " ".join(text.split())
