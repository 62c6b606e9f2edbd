"""`ocf validate --lint` compares an autoscaler with the objects that belong to it, wherever they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.targets.targets import key_of
from ocf.cli.app import app
from ocf.cli.manifest_files import Document
from ocf.cli.validate.neighbours import Neighbours

HPA: Final = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
"""
V1: Final = """apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
  targetCPUUtilizationPercentage: 70
"""
DEPLOYMENT: Final = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [CONTAINER]}}}
"""
GOOD: Final = DEPLOYMENT.replace("CONTAINER", "{name: app, resources: {requests: {cpu: 1}}}")
BAD: Final = DEPLOYMENT.replace("CONTAINER", "{name: app}")


def named(name: str, text: str = HPA, namespace: str = "") -> str:
    return text.replace("NAME", f"{name}, namespace: {namespace}" if namespace else name)


def placed(text: str, namespace: str = "shop") -> str:
    return text.replace("{name: web}", f"{{name: web, namespace: {namespace}}}")


LIMITS: Final = """apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: shop}
spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}}]}
"""
SHARED: Final = "shared-target"
MISSING: Final = "missing-request"
REPOSITORIES: Final = [
    pytest.param({"a/hpa.yaml": named("one"), "a/two.yaml": named("two")}, {"one": SHARED, "two": SHARED}, id="folder"),
    pytest.param({"a/hpa.yaml": named("one"), "b/hpa.yaml": named("two")}, {}, id="environments"),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="shop"), "b/hpa.yaml": named("two", namespace="shop")},
        {"shop/one": SHARED, "shop/two": SHARED},
        id="a namespace in two folders",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="shop"), "a/two.yaml": named("two", namespace="mail")},
        {},
        id="two namespaces",
    ),
    pytest.param({"a/hpa.yaml": named("one"), "a/v1.yaml": named("old", V1)}, {"one": SHARED, "old": SHARED}, id="v1"),
    pytest.param({"hpa.yaml": named("one"), "v1.yaml": named("one", V1)}, {}, id="the same in two versions"),
    pytest.param(
        {"dev/hpa.yaml": named("d"), "dev/web.yaml": BAD, "prod/hpa.yaml": named("p"), "prod/web.yaml": GOOD},
        {"d": MISSING},
        id="each environment has its target",
    ),
    pytest.param(
        {"dev/hpa.yaml": named("d"), "base/web.yaml": BAD, "dev/app/web.yaml": GOOD}, {}, id="the nearest target"
    ),
    pytest.param({"a.yaml": BAD, "dev/hpa.yaml": f"{GOOD}---\n{named('d')}"}, {}, id="the target of the same file"),
    pytest.param(
        {
            f"{folder}/{name}.yaml": text
            for folder in ("v1", "v2")
            for name, text in (("hpa", named(f"hpa-{folder}", namespace="shop")), ("web", placed(GOOD)))
        },
        {},
        id="versions with the same target in one namespace",
    ),
    pytest.param(
        {f"{name}.yaml": f"{named(name, namespace='shop')}---\n{placed(GOOD)}" for name in ("allowed", "rejected")},
        {},
        id="samples with the same target in files of one folder",
    ),
    pytest.param(
        {
            "base/hpa.yaml": named("one", namespace="shop"),
            "base/web.yaml": placed(GOOD),
            "overlay/hpa.yaml": named("two", namespace="shop"),
        },
        {"shop/one": SHARED, "shop/two": SHARED},
        id="an overlay with a second autoscaler for the target of the base",
    ),
    pytest.param(
        {"base/hpa.yaml": named("one"), "base/web.yaml": BAD, "prod/hpa.yaml": named("one"), "prod/web.yaml": GOOD},
        {"one": MISSING},
        id="a base and an overlay",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="default"), "b/hpa.yaml": named("two", namespace="default")},
        {},
        id="examples in the namespace default",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="shop"), "a/web.yaml": placed(BAD), "b/limits.yaml": LIMITS},
        {},
        id="a LimitRange of the namespace",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one"), "a/web.yaml": GOOD, "b/canary.yaml": GOOD.replace("name: web", "name: canary")},
        {},
        id="a workload of the same labels in another folder",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one"), "a/web.yaml": GOOD, "a/canary.yaml": GOOD.replace("name: web", "name: canary")},
        {"one": "overlapping-selectors"},
        id="a workload of the same labels in the same folder",
    ),
    pytest.param(
        {"all.yaml": f"{named('one')}---\n{placed(BAD)}---\n{GOOD.replace('name: web', 'name: api')}"},
        {"one": "missing-request overlapping-selectors"},
        id="the target has the namespace of the release, and the autoscaler has none",
    ),
    pytest.param(
        {
            "all.yaml": "---\n".join(
                (named("one", namespace="shop"), BAD, placed(GOOD).replace("name: web", "name: api"))
            )
        },
        {"shop/one": "missing-request overlapping-selectors"},
        id="the autoscaler has the namespace of the release, and the target has none",
    ),
    pytest.param(
        {"all.yaml": f"{named('one')}---\n{placed(BAD)}---\n{placed(BAD, 'mail')}"}, {}, id="a file of two namespaces"
    ),
    pytest.param(
        {"a/hpa.yaml": named("one"), "a/web.yaml": GOOD.replace("name: web", "name: wbe")},
        {"one": "missing-target"},
        id="a misspelt name",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one"), "b/x.yaml": GOOD.replace("name: web", "name: x")}, {}, id="a chart in parts"
    ),
    pytest.param(
        {
            "web.yaml": GOOD.replace("cpu: 1", "cpu: 1x, memory: 1"),
            "hpa.yaml": f"{named('one')}---\n{named('two').replace('minReplicas: 2', 'minReplicas: 10')}",
        },
        {"one": "shared-target invalid-resources", "two": "shared-target invalid-resources constant-size"},
        id="a bad quantity does not hide other findings",
    ),
]


def findings(files: dict[str, str], *arguments: str) -> dict[str, set[str]]:
    """Return the codes for each autoscaler of files in the working directory."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    answer = CliRunner().invoke(app, ["validate", "--lint", *arguments], catch_exceptions=False)
    found: dict[str, set[str]] = {}
    for line in answer.stdout.splitlines():
        found.setdefault(line.split(": ")[1], set()).add(line.rpartition("[")[2].rstrip("]"))
    return found


@pytest.mark.parametrize(("files", "expected"), REPOSITORIES)
def test_an_autoscaler_is_compared_with_its_neighbours(
    files: dict[str, str], expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert findings(files, ".") == {name: set(codes.split()) for name, codes in expected.items()}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"a/hpa.yaml": named("one"), "b/hpa.yaml": named("two")}, id="no namespace"),
        pytest.param(
            {f"{name}/all.yaml": f"{named(name)}---\n{GOOD}" for name in ("one", "two")}, id="copies of the target"
        ),
    ],
)
def test_the_user_may_say_that_all_files_are_of_one_cluster(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert findings(files, ".") == {}
    assert findings({}, "--one-cluster", ".") == {"one": {SHARED}, "two": {SHARED}}


def test_a_file_that_is_given_twice_is_validated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hpa.yaml").write_text(f"{named('one')}---\n{named('two')}")
    answer = CliRunner().invoke(app, ["validate", "--lint", "hpa.yaml", ".", "./hpa.yaml"], catch_exceptions=False)

    assert len(answer.stdout.splitlines()) == len(set(answer.stdout.splitlines())) == 2
    assert "validated 2 HorizontalPodAutoscalers" in answer.stderr


class EachFile(Neighbours):
    """Looks at all objects for each file."""

    def _viewpoint(self, parts: tuple[str, ...], namespace: str) -> tuple[str, ...]:
        del namespace
        return parts


def document(number: int, file: str, kind: str, name: str, namespace: str) -> Document:
    metadata = {"name": name, "namespace": namespace, "uid": str(number)}
    return Document(file=file, number=1, manifest={"apiVersion": "v1", "kind": kind, "metadata": metadata})


def uid(manifest: Any) -> str:
    return str(manifest["metadata"]["uid"])


OBJECTS: Final = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: f"{'/'.join(parts)}.yaml"),
        st.sampled_from(["Deployment", "StatefulSet", "HorizontalPodAutoscaler", "PodDisruptionBudget"]),
        st.sampled_from("pqrstuvw"),
        st.sampled_from(["shop", "shop", "", "default", "other"]),
    ),
    max_size=12,
)


@given(OBJECTS, st.booleans())
def test_files_that_share_a_view_see_what_each_of_them_sees(
    objects: list[tuple[str, str, str, str]], one_cluster: bool
) -> None:
    documents = [document(number, *each) for number, each in enumerate(objects)]
    shared, each_file = (kind(documents, one_cluster=one_cluster) for kind in (Neighbours, EachFile))
    for one in documents:
        for ours, theirs in zip(shared.of(one), each_file.of(one), strict=True):
            assert {uid(each) for each in ours.objects} == {uid(each) for each in theirs.objects}
            assert all(uid(ours.find(key_of(each))) == uid(theirs.find(key_of(each))) for each in theirs.objects)


@pytest.mark.parametrize(
    ("files", "views"),
    [
        pytest.param([f"{number}.yaml" for number in range(50)], 1, id="one folder"),
        pytest.param([f"{number}/hpa.yaml" for number in range(50)], 1, id="a folder for each"),
        pytest.param([f"{env}/{number}.yaml" for env in "ab" for number in range(50)], 2, id="copies in two folders"),
        pytest.param([*(f"{number}.yaml" for number in range(50)), "49.yml"], 3, id="one of them twice"),
    ],
)
def test_files_of_a_namespace_share_what_is_around_them(files: list[str], views: int) -> None:
    names = [re.findall("[0-9]+", file)[0] for file in files]
    pairs = zip(files, names, strict=True)
    documents = [document(1, file, "HorizontalPodAutoscaler", name, "shop") for file, name in pairs]
    neighbours = Neighbours(documents)

    assert len({id(neighbours.of(each)) for each in documents}) == views
