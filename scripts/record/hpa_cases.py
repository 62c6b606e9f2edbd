"""The HPAs that `record_hpa_corpus.py` sends: every field absent, valid, at its bounds, beyond them, of a wrong type.

A case is a base, what is changed in it, and how it is sent. The choice of pairs is random with a fixed seed, so the
same cases come out every time.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
Edit: TypeAlias = tuple[Path, Any] | tuple[Path]
"""A value to be put somewhere, or only a path: what is there is taken away."""

ABSENT: Final = object()
PAIRS: Final = 1400
SEED: Final = 36


class Case(NamedTuple):
    """One request.

    Args:
        base: Name of the manifest it starts from.
        edits: What is changed in it.
        send: `create`, `scale`, or `update:` or `status:` with the name of a stored object.
        gated: Whether it goes to the server with the other feature gates.
    """

    base: str
    edits: tuple[Edit, ...] = ()
    send: str = "create"
    gated: bool = False


TARGET: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SELECTOR: Final[Json] = {"matchLabels": {"verb": "GET"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}
SOURCES: Final[Json] = {
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    "containerResource": {
        "name": "memory",
        "container": "app",
        "target": {"type": "AverageValue", "averageValue": "512Mi"},
    },
    "pods": {
        "metric": {"name": "rps", "selector": SELECTOR},
        "target": {"type": "AverageValue", "averageValue": "1k"},
    },
    "object": {
        "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
        "metric": {"name": "hits"},
        "target": {"type": "Value", "value": "10k"},
    },
    "external": {
        "metric": {"name": "queue", "selector": {"matchLabels": {"queue": "a"}}},
        "target": {"type": "AverageValue", "averageValue": "30"},
    },
}
RULES: Final[Json] = {
    "stabilizationWindowSeconds": 60,
    "selectPolicy": "Min",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 60},
        {"type": "Percent", "value": 50, "periodSeconds": 30},
    ],
    "tolerance": "50m",
}


def metric(source: str) -> Json:
    """Return a valid metric."""
    return {"type": source[0].upper() + source[1:], source: SOURCES[source]}


def hpa(**spec: Any) -> Json:
    """Return an HPA."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 10, **spec},
    }


BASES: Final[dict[str, Json]] = {
    "minimal": hpa(),
    "full": hpa(
        minReplicas=2,
        metrics=[metric(source) for source in SOURCES],
        behavior={"scaleUp": RULES, "scaleDown": {**RULES, "selectPolicy": "Max"}},
    ),
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 1}},
    **{source: hpa(metrics=[metric(source)]) for source in SOURCES},
}

OLDS: Final[dict[str, tuple[str, tuple[Edit, ...]]]] = {
    "plain": ("full", ()),
    "bare": ("minimal", ()),
    "tolerant": ("minimal", ((("spec", "behavior"), {"scaleUp": {"tolerance": "0.2"}}),)),
    "intolerant": ("minimal", ((("spec", "behavior"), {"scaleUp": {"stabilizationWindowSeconds": 5}}),)),
    "zero": ("external", ((("spec", "minReplicas"), 0),)),
    "deleting": ("minimal", ((("metadata", "finalizers"), ["example.com/wait"]),)),
    "odd": (
        "object",
        (
            (("spec", "scaleTargetRef", "apiVersion"), "v1"),
            (("spec", "metrics", 0, "object", "describedObject", "apiVersion"), "a/b/c"),
        ),
    ),
}
"""Objects that updates start from: a base and edits. `zero` needs a gate, `odd` no server lets in any more."""

WRONG_TYPES: Final[tuple[Any, ...]] = ("text", "5", 5, -1, 1.5, True, [], {}, ["a"], {"a": "b"}, None, [None])
INT32: Final = (0, 1, 2, -1, 2**31 - 1, -(2**31), 2**31, 2**63, 2**64, 1.0, "1")
WORDS: Final = ("", ".", "..", "a/b", "a%b", "a/%", "ä", "Web App", 'quo"te', "<&>", "tab\t", "\u200b", "x" * 300)
QUANTITIES: Final[tuple[Any, ...]] = (
    *("1", "0", "-1", "500m", "0.5", ".5", "1.", "+1", "1n", "0.1n", "-1n", "1u", "0m", "-0", "00", "01"),
    *("1k", "1K", "1M", "1Mi", "1ki", "1Ki", "0.1Ki", "1.5Gi", "1024Mi", "1000m", "1500m", "2.50", "2000", "1E"),
    *("1e3", "1E3", "12E6", "1e-3", "1e", "1e+2", "1e3Ki", "1_000", "1,000", "0x10", "Inf", "NaN", "\uff11", "abc"),
    *("", " ", " 1", "1 ", " 1 ", "1 Gi", "1\t", "\n1", "m", "Ki", "-", "+", ".", "e3", "--1", "1..2", "1.2.3"),
    *("8Ei", "10Ei", "-10Ei", "9223372036854775807", "9223372036854775808", "1000E", "1e30", "0.0001m", "100Pi"),
    *(5, 0, -3, 0.25, 1e-7, 1e22, 10**19, True, False, None, [], {}, "<1>", "1\u00a0"),
)
NAMES: Final[tuple[Any, ...]] = (
    *("", "web", "Web", "-web", "web-", "w" * 253, "w" * 254, "a.b", "a..b", "a_b", "a/b", "a%b", ".", "..", "ä"),
    *("1", "a b", 5, None, [], "ü" * 127),
)
KEYS: Final = (
    *("app", "", "a/b", "a/b/c", "/b", "a/", "A/b", "a.b/c", "-a", "a-", "A_b.c", "x" * 63, "x" * 64, "ä"),
    *("x" * 254 + "/a", "a b", "example.com/Name", "ü" * 32),
)
LABEL_VALUES: Final[tuple[Any, ...]] = (
    "",
    "a",
    "A_b.c-1",
    "-a",
    "a-",
    "x" * 63,
    "x" * 64,
    "ä",
    "a b",
    "a/b",
    None,
    5,
    True,
    [],
    {},
)
OWNER: Final[Json] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "1-2"}

TARGET_FIELDS: Final[dict[str, tuple[Any, ...]]] = {
    "type": ("Utilization", "Value", "AverageValue", "", "utilization", "<x>", 'a"b', "\t", *WRONG_TYPES),
    "averageUtilization": (*INT32, 100, *WRONG_TYPES),
    "averageValue": QUANTITIES,
    "value": ("1", "0", "-1m", "x", "", 7, None, *WRONG_TYPES),
}
API_VERSIONS: Final = (
    *("apps/v1", "v1", "", "/", "a/b/c", "apps/", "/v1", "a//b", "example.com/v1", "Apps/V1", "ä/b", "apps"),
    *WRONG_TYPES,
)
KINDS: Final = ("Deployment", "ReplicationController", "replicationcontroller", *WORDS, *WRONG_TYPES)
RESOURCE_NAMES: Final[tuple[Any, ...]] = (
    *("cpu", "memory", "ephemeral-storage", "storage", "pods", "requests.cpu", "hugepages-2Mi", "hugepages-"),
    *("requests.hugepages-2Mi", "nvidia.com/gpu", "kubernetes.io/foo", "x.kubernetes.io/foo", "requests.example.com/a"),
    *("CPU", "foo", "a/b/c", "/a", "a/", "-a", "ä", "a" * 64, "example.com/" + "a" * 63, "x" * 246 + "/a", ""),
    *("x" * 240 + "/a", "limits.memory", "services.nodeports", "<cpu>"),
)


def reference(path: Path) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield the fields of a reference with the values to try."""
    yield path, WRONG_TYPES
    yield (*path, "apiVersion"), API_VERSIONS
    yield (*path, "kind"), KINDS
    yield (*path, "name"), (*WORDS, *WRONG_TYPES)
    yield (*path, "Name"), ("web",)


def of_metrics() -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield the fields of metrics with the values to try."""
    metrics: Path = ("spec", "metrics")
    yield metrics, (*WRONG_TYPES, [{}], [None, None], [{"type": "Pods"}, metric("pods"), {"type": ""}])
    for position, source in enumerate(SOURCES):
        here: Path = (*metrics, position)
        yield here, WRONG_TYPES
        yield (*here, "type"), (*(name[0].upper() + name[1:] for name in SOURCES), "", "pods", "<&>", *WRONG_TYPES)
        yield (*here, source), WRONG_TYPES
        yield (*here, source, "target"), WRONG_TYPES
        for field, values in TARGET_FIELDS.items():
            yield (*here, source, "target", field), values
        if "metric" in SOURCES[source]:
            yield from of_identifier((*here, source, "metric"))
    yield (*metrics, 0, "resource", "name"), (*RESOURCE_NAMES, *WRONG_TYPES)
    yield (*metrics, 1, "containerResource", "name"), (*RESOURCE_NAMES, *WRONG_TYPES)
    yield (*metrics, 1, "containerResource", "container"), (*NAMES, "w" * 63, "w" * 64, *WRONG_TYPES)
    yield from reference((*metrics, 3, "object", "describedObject"))


def of_identifier(path: Path) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield the fields of a metric's name and selector with the values to try."""
    yield path, WRONG_TYPES
    yield (*path, "name"), (*WORDS, *WRONG_TYPES)
    yield (*path, "selector"), (*WRONG_TYPES, {"matchLabels": {"-": "-"}}, {"matchExpressions": [{}, None]})
    yield (*path, "selector", "matchLabels"), ({"a": None}, {"a": 5}, "x", {"ä ": "b c"})
    yield (*path, "selector", "matchExpressions"), ([{"key": 5}], [{"values": [1]}], [{"values": [None]}], {}, "x")


def of_behavior() -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield the fields of a behavior with the values to try."""
    yield ("spec", "behavior"), (*WRONG_TYPES, {"scaleup": {}}, {"scaleUp": None, "scaleDown": None})
    for direction in ("scaleUp", "scaleDown"):
        here: Path = ("spec", "behavior", direction)
        yield here, WRONG_TYPES
        yield (*here, "stabilizationWindowSeconds"), (*INT32, 3600, 3601, *WRONG_TYPES)
        yield (*here, "selectPolicy"), ("Max", "Min", "Disabled", "", "max", "<x>", "\x07", *WRONG_TYPES)
        yield (*here, "tolerance"), QUANTITIES
        yield (*here, "policies"), (*WRONG_TYPES, [{}], [None, {}], [{"type": "Pods"}])
        yield (*here, "policies", 0), WRONG_TYPES
        yield (*here, "policies", 1, "type"), ("Pods", "Percent", "", "pods", "é", *WRONG_TYPES)
        yield (*here, "policies", 0, "value"), (*INT32, *WRONG_TYPES)
        yield (*here, "policies", 1, "periodSeconds"), (*INT32, 1800, 1801, *WRONG_TYPES)


def of_metadata() -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """Yield the fields of `metadata` with the values to try."""
    yield ("metadata",), WRONG_TYPES
    yield ("metadata", "name"), (*NAMES, *WRONG_TYPES)
    yield ("metadata", "generateName"), NAMES
    yield ("metadata", "namespace"), ("shop", "Shop", "a.b", "a_b", "x" * 64, *WRONG_TYPES)
    yield ("metadata", "labels"), (*WRONG_TYPES, *({key: "a"} for key in KEYS), *({"a": each} for each in LABEL_VALUES))
    yield (
        ("metadata", "annotations"),
        (
            *WRONG_TYPES,
            *({key: "a"} for key in (*KEYS, "EXAMPLE.com/Name")),
            *({"a": each} for each in LABEL_VALUES),
            {"a": "x" * (256 * 1024 - 1)},
            {"a": "x" * 256 * 1024},
            {"a": "ü" * 128 * 1024},
            {"autoscaling.alpha.kubernetes.io/behavior": "x", "autoscaling.alpha.kubernetes.io/other": "y"},
            {"autoscaling.alpha.kubernetes.io/metrics": "x" * 256 * 1024},
        ),
    )
    yield ("metadata", "ownerReferences"), tuple(owners())
    yield (
        ("metadata", "finalizers"),
        (
            *WRONG_TYPES,
            *([key] for key in (*KEYS, "orphan", "foregroundDeletion", "kubernetes")),
            ["orphan", "foregroundDeletion"],
            ["example.com/wait", "example.com/wait", "a"],
        ),
    )
    yield ("metadata", "generation"), (*INT32, *WRONG_TYPES)
    yield ("metadata", "resourceVersion"), ("", *WRONG_TYPES[2:])
    yield ("metadata", "uid"), ("", *WRONG_TYPES[2:])
    for field in ("creationTimestamp", "deletionTimestamp"):
        times = ("2026-01-31T12:00:00Z", "2026-02-31T12:00:00Z", "2026-01-31", "2026-01-31T12:00:00.5+01:00", "now")
        yield ("metadata", field), (*times, "", *WRONG_TYPES)
    yield ("metadata", "deletionGracePeriodSeconds"), (0, 5, -1, "5", None, [])
    yield ("metadata", "selfLink"), ("x", 5)
    yield ("metadata", "managedFields"), (*WRONG_TYPES, [{"manager": "me", "operation": "Foo"}], [{"time": 5}])
    yield ("metadata", "label"), ({"a": "b"}, None)


def owners() -> Iterator[Any]:
    """Yield lists of owners."""
    yield from WRONG_TYPES
    yield from ([{**OWNER, "apiVersion": each}] for each in API_VERSIONS)
    for field in OWNER:
        yield [{key: value for key, value in OWNER.items() if key != field}]
        yield [{**OWNER, field: 5}]
    yield [{**OWNER, "apiVersion": "v1", "kind": "Event"}]
    yield [{**OWNER, "apiVersion": "/v1", "kind": "Event", "controller": True, "blockOwnerDeletion": False}]
    yield [OWNER, OWNER]
    controller = {**OWNER, "controller": True}
    yield [controller, controller]
    yield [controller, {**controller, "name": "<other>"}, {**controller, "name": "third"}]
    yield [controller, {**OWNER, "controller": "yes"}]
    yield [None, {}]


def of_all() -> list[tuple[Path, tuple[Any, ...]]]:
    """Return all fields of the full base with the values to try."""
    return [
        (("apiVersion",), ("autoscaling/v2", "autoscaling/v1", "", "v2", "autoscaling/v3", *WRONG_TYPES)),
        (("kind",), ("HorizontalPodAutoscaler", "", "Scale", "horizontalpodautoscaler", *WRONG_TYPES)),
        (("spec",), WRONG_TYPES),
        (("status",), (*WRONG_TYPES, {"currentReplicas": -1}, {"conditions": [{"typ": "x"}]}, {"foo": 1})),
        (("spec", "minReplicas"), (*INT32, 10, 11, *WRONG_TYPES)),
        (("spec", "maxReplicas"), (*INT32, *WRONG_TYPES)),
        (("spec", "max_replicas"), (5, None)),
        (("data",), ({}, None)),
        *reference(("spec", "scaleTargetRef")),
        *of_metrics(),
        *of_behavior(),
        *of_metadata(),
    ]


def singles() -> Iterator[Case]:
    """Yield the cases that change one field."""
    for path, values in of_all():
        yield Case("full", ((path,),))
        yield from (Case("full", ((path, value),)) for value in values)
    for base in BASES:
        yield Case(base, (), "scale" if base == "scale" else "create")
    for prefix in (*NAMES, "web-web-", "w" * 57 + "-", "w" * 58, "w" * 59):
        yield Case("minimal", ((("metadata",), {"generateName": prefix}),))
    for value in (*INT32, *WRONG_TYPES):
        yield Case("minimal", ((("spec", "minReplicas"), value),))
        yield Case("minimal", ((("spec", "maxReplicas"), value),))


def sources() -> Iterator[Case]:
    """Yield metrics of every type with every set of sources, and sources with every set of targets."""
    kinds = [*(name[0].upper() + name[1:] for name in SOURCES), "Foo", ""]
    for count in range(len(SOURCES) + 1):
        for kind, chosen in itertools.product(kinds, itertools.combinations(SOURCES, count)):
            entry = {"type": kind} | {name: SOURCES[name] for name in chosen}
            yield Case("minimal", ((("spec", "metrics"), [entry]),))
    amounts = {"value": "5", "averageValue": "5", "averageUtilization": 5}
    for source, kind, count in itertools.product(SOURCES, ("Utilization", "Value", "AverageValue", ""), range(4)):
        for chosen in itertools.combinations(amounts, count):
            target = {"type": kind} | {name: amounts[name] for name in chosen}
            yield Case(source, ((("spec", "metrics", 0, source, "target"), target),))


def pairs() -> Iterator[Case]:
    """Yield cases that change two or three fields."""
    chance = random.Random(SEED)  # noqa: S311 (no secret, only a choice)
    fields = of_all()
    for _ in range(PAIRS):
        chosen = chance.sample(fields, chance.choice((2, 2, 3)))
        # Outer fields first, or an inner one would have no place.
        edits = sorted(((path, chance.choice(values)) for path, values in chosen), key=lambda edit: len(edit[0]))
        if all(isinstance(value, str | int | float) for _, value in edits[:-1]):
            yield Case("full", tuple(edits))


def updates() -> Iterator[Case]:
    """Yield updates and status updates."""
    spec: Path = ("spec",)
    described: Path = ("spec", "metrics", 0, "object", "describedObject", "apiVersion")
    for old in OLDS:
        base = OLDS[old][0]
        for gated in (False, True):
            for low in (ABSENT, 0, 1, 2, 11, -1):
                edit: Edit = ((*spec, "minReplicas"),) if low is ABSENT else ((*spec, "minReplicas"), low)
                yield Case(base, (edit,), f"update:{old}", gated)
            for tolerance in ("0", "-1", "0.3"):
                rules = {"scaleDown": {"tolerance": tolerance}}
                yield Case(base, (((*spec, "behavior"), rules),), f"update:{old}", gated)
        for version, kind in itertools.product(API_VERSIONS[:8], ("Deployment", "ReplicationController", "Foo")):
            target = {"apiVersion": version, "kind": kind, "name": "web"}
            yield Case(base, (((*spec, "scaleTargetRef"), target),), f"update:{old}")
        for path, values in of_metadata():
            yield from (Case(base, ((path, value),), f"update:{old}") for value in values[::3])
        yield from (Case("object", ((described, version),), f"update:{old}") for version in API_VERSIONS[:8])
        for low, high in itertools.product((-1, 0, 5), repeat=2):
            status = {"currentReplicas": low, "desiredReplicas": high}
            yield Case(base, ((("status",), status),), f"status:{old}")
        labels = {"-": "a", "b": "-"}
        yield Case(base, ((("metadata", "labels"), labels),), f"status:{old}")
        yield Case(base, ((("spec", "maxReplicas"), -5),), f"status:{old}")


def gated() -> Iterator[Case]:
    """Yield cases for the server with the other feature gates."""
    for base in BASES:
        if base != "scale":
            yield from (Case(base, ((("spec", "minReplicas"), low),), gated=True) for low in (-1, 0, 1, 11))
    fields = [field for field in of_behavior() if field[0][-1] in {"tolerance", "scaleUp", "behavior"}]
    yield from (Case("full", ((path, value),), gated=True) for path, values in fields for value in values)
    for direction, kind in itertools.product(("scaleUp", "scaleDown"), ("", "Pods")):
        rules = {"tolerance": "-1", "policies": [{"type": kind, "value": 1, "periodSeconds": 1}]}
        yield Case("minimal", ((("spec", "behavior"), {direction: rules}),), gated=True)


def scales() -> Iterator[Case]:
    """Yield writes through the subresource `scale`."""
    fields = [field for field in of_metadata() if field[0][-1] in {"name", "labels", "finalizers", "metadata"}]
    fields += [(("spec",), WRONG_TYPES), (("spec", "replicas"), (*INT32, *WRONG_TYPES)), (("spec", "x"), (1,))]
    fields += [(("apiVersion",), ("", "v1", 5)), (("kind",), ("", "Foo")), (("status",), ({"replicas": "x"}, {}))]
    yield from (Case("scale", ((path, value),), "scale") for path, values in fields for value in values)


def cases() -> list[Case]:
    """Return all cases."""
    return [*singles(), *sources(), *pairs(), *updates(), *gated(), *scales()]


def edited(value: Any, edits: tuple[Edit, ...]) -> Any:
    """Return a manifest with the edits made; where one has no place, nothing happens."""
    for edit in edits:
        value = _edited(value, edit[0], edit[1:])
    return value


def _edited(value: Any, path: Path, new: tuple[Any, ...]) -> Any:
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        found = dict(value)
        if rest:
            found[str(first)] = _edited(value.get(str(first), {}), rest, new)
        elif new:
            found[str(first)] = new[0]
        else:
            found.pop(str(first), None)
        return found
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        inner = [_edited(value[first], rest, new)] if rest else list(new)
        return [*value[:first], *inner, *value[first + 1 :]]
    return value
