"""The picture of an owner: what is in it, in which order, and that nothing in an object changes its form."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerSnapshot, explain_owner
from ocf.ownership.diagram import Arrow, Box, Diagram, diagram_of, to_mermaid
from ocf.ownership.lines import explanation_lines
from ocf.ownership.picture import MARKS, standalone_svg, to_html, to_svg
from ocf.ownership.tree import State, TreeNode
from tests.ownership.situations import CLAIM, SHOP, STATEFUL, UNSCHEDULED
from tests.ownership.test_hostile import HOSTILE
from tests.ownership.world import NOW, condition, event, obj, shop, workload

SVG: Final = "{http://www.w3.org/2000/svg}"
ELEMENTS: Final = {"svg", "style", "title", "desc", "g", "rect", "circle", "path", "text"}


def applied(live: Manifest, component: str = "web") -> Manifest:
    entry = {"manager": f"shops/Shop/{component}/shop-corner", "operation": "Apply"}
    return {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}


def diagram(*objects: Manifest) -> Diagram:
    events = [one for one in objects if one["kind"] == "Event"]
    snapshot = OwnerSnapshot(objects=objects, now=NOW, events=events)
    return diagram_of(explain_owner(snapshot, ObjectKey.of(objects[0])))


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 (our own output)


def named(found: Diagram, name: str) -> Box:
    [box] = [one for one in found.root.walk() if one.name == name]
    return box


API: Final = workload(
    "Deployment",
    SHOP,
    name="api",
    ready=1,
    spec={"template": {"spec": {"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "login"}}]}]}}},
)


def test_components_have_their_objects_and_the_owner_has_its_state() -> None:
    ready = workload("ReplicaSet", API, name="api-5f", ready=1)
    found = diagram(SHOP, applied(API), ready, STATEFUL, UNSCHEDULED, CLAIM)
    assert [one.name for one in found.root.walk()] == [
        "Shop corner",
        "component web",
        "Deployment api",
        "StatefulSet web",
        "Pod web-0",
        "PersistentVolumeClaim data-web-0",
    ]
    assert [one.state for one in found.root.walk()][:2] == [State.FAILING, State.PROGRESSING]
    assert named(found, "Deployment api").notes == ("1 object",)
    assert named(found, "Pod web-0").text.startswith("cannot be scheduled for 12 minutes")


def route(name: str, kind: str, **spec: object) -> Manifest:
    return obj(
        f"{'gateway.networking' if kind == 'HTTPRoute' else 'networking'}.k8s.io/v1", kind, name, SHOP, spec=spec
    )


TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
SERVICE: Final = obj("v1", "Service", "api", SHOP, spec={"selector": {"app": "web"}})
SELECTED: Final = workload("Deployment", SHOP, name="api", ready=1)


@pytest.mark.parametrize(
    ("first", "second", "arrow"),
    [
        pytest.param(obj("v1", "Secret", "login", SHOP), API, "Secret login uses Deployment api", id="environment"),
        pytest.param(CLAIM, UNSCHEDULED, "PersistentVolumeClaim data-web-0 uses Pod web-0", id="claim"),
        pytest.param(
            obj("autoscaling/v2", "HorizontalPodAutoscaler", "api", SHOP, spec={"scaleTargetRef": TARGET}),
            API,
            "HorizontalPodAutoscaler api scales Deployment api",
            id="autoscaler",
        ),
        pytest.param(
            obj("keda.sh/v1alpha1", "ScaledObject", "api", SHOP, spec={"scaleTargetRef": TARGET}),
            API,
            "ScaledObject api scales Deployment api",
            id="autoscaler of another group",
        ),
        pytest.param(
            obj("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "api", SHOP, spec={"targetRef": TARGET}),
            API,
            "VerticalPodAutoscaler api targets Deployment api",
            id="target of a policy",
        ),
        pytest.param(SERVICE, SELECTED, "Service api selects Deployment api", id="selector"),
        pytest.param(
            obj("policy/v1", "PodDisruptionBudget", "api", SHOP, spec={"selector": {"matchLabels": {"app": "web"}}}),
            SELECTED,
            "PodDisruptionBudget api selects Deployment api",
            id="selector with a map",
        ),
        pytest.param(
            route("api", "Ingress", defaultBackend={"service": {"name": "api"}}),
            SERVICE,
            "Ingress api routes to Service api",
            id="ingress",
        ),
        pytest.param(
            route("api", "HTTPRoute", rules=[{"backendRefs": [{"name": "api"}]}]),
            SERVICE,
            "HTTPRoute api routes to Service api",
            id="route",
        ),
    ],
)
def test_what_specs_name_is_an_arrow_and_a_note(first: Manifest, second: Manifest, arrow: str) -> None:
    parents = [STATEFUL] if second is UNSCHEDULED else []
    found = diagram(SHOP, *parents, first, second)
    names = {one.identity: one.name for one in found.root.walk()}
    assert [f"{names[one.source]} {one.label} {names[one.target]}" for one in found.arrows] == [arrow]
    assert sum(len(one.notes) for one in found.root.walk()) == 1


def test_what_is_not_in_the_picture_has_no_arrow() -> None:
    # The Secret exists and belongs to another owner.
    assert diagram(SHOP, API, obj("v1", "Secret", "login")).arrows == ()
    odd = {**SERVICE, "spec": {"selector": {"app": [{}]}}}
    assert diagram(SHOP, SELECTED, odd).arrows == ()


def test_the_state_of_a_box_has_a_word_a_sign_and_a_colour() -> None:
    boxes = tuple(Box(f"Deployment {state}", state, state) for state in State)
    svg = to_svg(Diagram("", Box("Shop corner", "shop", State.READY, children=boxes)))
    signs = {
        state: "".join(re.findall(rf'<(?:path|circle) class="sign {state}"[^>]*?(?:d="M[\d. -]+([^"]*)"|r="6")', svg))
        for state in State
    }
    assert set(State) <= set(texts(svg))
    assert len({*signs.values()} - {""}) == len(State) - 1, "a sign that no other state has"
    assert all(f".{state}" in MARKS for state in {*State} - {State.UNKNOWN, State.SUPERSEDED})


def test_declared_boxes_have_their_order_and_notes() -> None:
    web = Box("Deployment web", "web", notes=("gate: closed",), order=2)
    root = Box("Shop", "shop", children=(Box("Secret login", "login", order=1), web))
    found = Diagram("", root, (Arrow("login", "web", "password"), Arrow("web", "login", "", is_required=False)))
    assert texts(to_svg(found)) == ["Shop", "1. Secret login", "2. Deployment web", "gate: closed"]
    assert to_mermaid(found).splitlines()[-2:] == ['  n1 -->|"password"| n2', '  n2 -.->|""| n1']


def overlapping(svg: str) -> bool:
    """Return whether two vertical lines of arrows lie on each other."""
    lines = [tuple(map(float, one)) for one in re.findall(r'd="M[\d.]+ ([\d.]+)H([\d.]+)V([\d.]+)H', svg)]
    spans = [(x, *sorted((start, end))) for start, x, end in lines]
    return any(
        one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
        for number, one in enumerate(spans)
        for other in spans[:number]
    )


def test_arrows_have_lanes_of_their_own_and_those_without_one_are_left_out() -> None:
    boxes = tuple(Box(f"b{number}", f"{number}") for number in range(12))
    arrows = tuple(Arrow(f"{number}", f"{11 - number}", "x") for number in range(12) if number != 11 - number)
    svg = to_svg(Diagram("", Box("Shop", "shop", children=boxes), arrows))
    assert svg.count("</g>") == 6
    assert not overlapping(svg)


@pytest.mark.parametrize("depth", [1, 40])
def test_an_owner_with_very_many_objects_has_a_picture_of_those_in_trouble(depth: int) -> None:
    pods = tuple(
        TreeNode(f"Pod {n}", State.FAILING if n == 4_999 else State.READY, ObjectKey("v1", "Pod", f"{n}"))
        for n in range(5_000)
    )
    node = TreeNode("ReplicaSet web", State.FAILING, ObjectKey("apps/v1", "ReplicaSet", "web"), children=pods)
    for number in range(depth):
        node = TreeNode(f"Node {number}", State.FAILING, ObjectKey("v1", "Node", f"{number}"), children=(node,))
    explained = explain_owner(OwnerSnapshot(objects=[SHOP], now=NOW), ObjectKey.of(SHOP))
    found = diagram_of(type(explained)(node, explained.cause))
    names = [one.name for one in found.root.walk()]
    assert len(names) <= 200
    assert "Pod 4999" in names
    assert named(found, "ReplicaSet web").notes == ("and 4950 more objects",)
    svg = to_svg(found)
    assert len(svg) < 100_000
    x = [float(one) for one in re.findall(r'<text class="[a-z]+" x="([\d.]+)"', svg)]
    assert max(x) < 130


# Fifty times the widest letters, one word without a break, letters that are twice as wide.
@pytest.mark.parametrize("name", ["W " * 50, "x" * 253, "名" * 80, HOSTILE, HOSTILE * 30])
def test_texts_have_their_lines(name: str) -> None:
    svg = to_svg(Diagram(name, Box(name, "a", State.FAILING, name, (name,))))
    assert max(len(one) for one in texts(svg)) <= 60
    assert len(texts(svg)) <= 18


HOSTILES: Final = [
    HOSTILE,
    '"><script>alert(1)</script>',
    "]]></style><svg onload=x>",
    "\ufffe\uffff\ud800",
    "&#x3c;b&gt;",
    "`%%{init}%%`\nend",
]


@pytest.mark.parametrize("hostile", HOSTILES)
def test_hostile_texts_are_texts_in_every_form(hostile: str) -> None:
    owner = shop(condition("Ready", reason=hostile, message=hostile), name=f"a{hostile}")
    child = obj("v1", "ConfigMap", hostile, owner)
    child["metadata"]["managedFields"] = [
        {"manager": f"shops/Shop/{hostile}/{owner['metadata']['uid']}", "operation": "Apply"},
        {"manager": hostile, "operation": "Update"},
    ]
    deployment = workload("Deployment", owner, name=hostile)
    deployment["spec"]["template"]["spec"]["containers"] = [{"envFrom": [{"configMapRef": {"name": hostile}}]}]
    objects = [owner, child, deployment, event(deployment, hostile, hostile)]
    snapshot = OwnerSnapshot(objects=objects, now=NOW, events=objects[-1:])
    explained = explain_owner(snapshot, ObjectKey.of(owner))
    found = diagram_of(explained)
    assert len(found.arrows) == 1
    root = ET.fromstring(standalone_svg(found))  # noqa: S314 (our own output)
    assert {one.tag.removeprefix(SVG) for one in root.iter()} == ELEMENTS
    attributes = {name for one in root.iter() for name in one.attrib}
    assert not [name for name in attributes if name.startswith("on") or "href" in name]
    page = to_html(found, explanation_lines(explained, NOW))
    assert "<script" not in page
    assert page.count("<svg") == page.count("</style>") == 1
    lines = to_mermaid(found).splitlines()
    form = re.compile(r'flowchart TB| +end| +(subgraph )?n\d\["[^"\[\]]*"\]| +n\d -->\|"uses"\| n\d')
    unquoted = [re.sub(r'"[^"]*"', lambda one: one[0].replace("[", "").replace("]", ""), line) for line in lines]
    assert [one for one in unquoted if not form.fullmatch(one)] == []
