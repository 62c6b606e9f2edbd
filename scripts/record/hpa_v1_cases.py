"""The HPAs of autoscaling/v1 that `record_hpa_v1.py` sends: annotations that are right, odd, and wrong.

A case is the annotations and the spec of an object. They are random with a fixed seed: valid JSON of Go's types, in
which keys change their case or are given twice, values are missing, null, of a wrong type or at a bound, and texts are
cut.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
COUNT: Final = 1600
SEED: Final = 14
TARGET: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
INGRESS: Final[Json] = {"kind": "Ingress", "name": "main", "apiVersion": "networking.k8s.io/v1"}
SELECTOR: Final[Json] = {
    "matchLabels": {"verb": "GET"},
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
}
METRICS: Final[tuple[Json, ...]] = (
    {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
    {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 60}},
    {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}},
    {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "1k", "selector": SELECTOR}},
    {"type": "Object", "object": {"target": INGRESS, "metricName": "hits", "targetValue": "10k", "selector": SELECTOR}},
    {"type": "Object", "object": {"target": INGRESS, "metricName": "hits", "targetValue": "0", "averageValue": "5"}},
    {"type": "External", "external": {"metricName": "q", "metricSelector": SELECTOR, "targetValue": "30"}},
    {"type": "External", "external": {"metricName": "q", "targetAverageValue": "30"}},
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "app", "targetAverageUtilization": 60},
    },
)
POLICY: Final[Json] = {"Type": "Pods", "Value": 4, "PeriodSeconds": 60}
RULES: Final[Json] = {
    "StabilizationWindowSeconds": 60,
    "SelectPolicy": "Min",
    "Policies": [POLICY, {**POLICY, "Type": "Percent"}],
    "Tolerance": "50m",
}
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, 5, -1, 1.5, 1.0, 2**31 - 1, 2**31, 2**63, "", "text", "5", "1Gi", "0", "1e3", " 1 ", "1 Gi"),
    *([], {}, [None], ["a"], [5], {"a": "b"}, {"a": None}, {"a": 5}, {"matchLabels": {}}, {"matchExpressions": []}),
    *({"matchExpressions": [{}]}, {"matchExpressions": [None]}, {"matchLabels": {"a": None}}, {"matchLabels": None}),
)
TEXTS: Final = (
    *("", " ", "null", "{}", "[]", "[{}]", "[null]", "[null, null]", "[5]", '"text"', "5", "true", "[[]]", "{", "[{]"),
    *("[{}] x", "[{},]", "NaN", "[NaN]", '[{"type": "\\ud800"}]', "\ufeff[]", '{"ScaleUp": null}', '{"ScaleUp": {}}'),
    *('{"ScaleUp": {"Policies": null}}', '{"ScaleUp": {"Policies": []}}', '{"ScaleDown": {"Policies": [null]}}'),
    *('{"scaleup": {"POLICIES": [{"TYPE": "Pods", "value": 1, "periodseconds": 5}]}}', '{"\u017fcaleUp": {}}'),
    *('{"ScaleUp": {"Policies": [{"Type": "Pods", "Value": 1e1, "PeriodSeconds": 5}]}}', '{"ScaleUp": []}'),
    *('{"ScaleUp": {"Tolerance": 1e-1}}', '{"ScaleUp": {"Tolerance": 0.05}}', '{"ScaleUp": {"Tolerance": {}}}'),
)


def cases() -> Iterator[Json]:
    """Yield the annotations and the spec of each object."""
    chance = random.Random(SEED)  # noqa: S311 (a choice of cases)
    for text in TEXTS:
        for name in ("metrics", "behavior"):
            yield {"annotations": {f"{PREFIX}{name}": text}, "spec": spec_of(chance)}
    for _ in range(COUNT):
        annotations = {}
        if happens(0.7, chance):
            metrics = chance.sample(METRICS, chance.randint(1, 3))
            annotations[f"{PREFIX}metrics"] = written(metrics, chance)
        if happens(0.6, chance):
            rules = {name: RULES for name in ("ScaleUp", "ScaleDown") if happens(0.8, chance)}
            annotations[f"{PREFIX}behavior"] = written(rules, chance)
        if happens(0.1, chance):
            annotations[f"{PREFIX}scale-up-tolerance"] = "0.2"
        if happens(0.2, chance):
            annotations["example.com/own"] = "kept"
        yield {"annotations": annotations, "spec": spec_of(chance)}


def happens(share: float, chance: random.Random) -> bool:
    """Return True in a share of the calls."""
    return chance.random() < share


def spec_of(chance: random.Random) -> Json:
    """Return a spec, with or without the fields that have defaults."""
    spec: Json = {"scaleTargetRef": TARGET, "maxReplicas": 10}
    if happens(0.4, chance):
        spec["minReplicas"] = chance.choice((1, 2, 0, 11))
    if happens(0.4, chance):
        spec["targetCPUUtilizationPercentage"] = chance.choice((70, 1, 0, -5))
    return spec


def written(value: Any, chance: random.Random) -> str:
    """Return the text of a value, with up to three changes."""
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        value = changed(value, chance)
    text = json.dumps(value, ensure_ascii=False)
    if happens(0.03, chance):
        text = text[: chance.randrange(len(text))]
    return doubled(text, chance) if happens(0.06, chance) else text


def changed(value: Any, chance: random.Random) -> Any:
    """Return a copy with one change somewhere."""
    if isinstance(value, list) and value and happens(0.9, chance):
        position = chance.randrange(len(value))
        return [changed(item, chance) if number == position else item for number, item in enumerate(value)]
    if isinstance(value, dict) and value:
        key = chance.choice(list(value))
        if happens(0.55, chance) and isinstance(value[key], dict | list):
            return {name: changed(item, chance) if name == key else item for name, item in value.items()}
        return with_change(value, key, chance)
    return chance.choice(VALUES)


def with_change(value: Json, key: str, chance: random.Random) -> Json:
    """Return a map in which one key is another one, missing, or has another value."""
    kind = chance.choice(("case", "case", "missing", "value", "value", "value", "unknown"))
    if kind == "missing":
        return {name: item for name, item in value.items() if name != key}
    if kind == "value":
        return {**value, key: chance.choice(VALUES)}
    if kind == "unknown":
        return {**value, chance.choice(("extra", "resource", "pods", "Value", "tolerance")): chance.choice(VALUES)}
    spelled = chance.choice((str.upper, str.lower, str.swapcase, str.capitalize))(key)
    return {spelled if name == key else name: item for name, item in value.items()}


def doubled(text: str, chance: random.Random) -> str:
    """Return a text in which one key of a map is given a second time, with another value."""
    keys = [part for part in text.split('"') if part.isalpha()]
    start = text.find("{")
    if not keys or start < 0:
        return text
    extra = f'"{chance.choice(keys)}": {json.dumps(chance.choice(VALUES))}, '
    return f"{text[: start + 1]}{extra}{text[start + 1 :]}"
