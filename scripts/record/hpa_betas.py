"""Record how Kubernetes 1.24 reads HPAs of autoscaling/v2beta1 and v2beta2, for `tests/autoscaling/api/test_betas.py`.

    scripts/oracles/hpa_betas/build.sh /tmp/hpa-betas
    python -m scripts.record.hpa_betas /tmp/hpa-betas

A row has the version, the annotations and the spec of an object, and the answer: the error of the decoder, or the spec
as autoscaling/v2 and the fields and messages of its errors. The objects are random with a fixed seed: valid ones, in
which fields are missing, unknown, of another version, null, of a wrong type or at a bound.
"""

import argparse
import json
import lzma
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.record.hpa_v1_cases import INGRESS, METRICS, PREFIX, RULES, SELECTOR, TARGET, VALUES, Json

OUTPUT: Final = Path(__file__).parents[2] / "tests" / "autoscaling" / "api" / "data" / "hpa_betas.json.xz"
COUNT: Final = 2400
SEED: Final = 7
V2BETA1_SHARE: Final = 0.6
V2_METRICS: Final[tuple[Json, ...]] = (
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "rps", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "1k"},
        },
    },
    {
        "type": "Object",
        "object": {"describedObject": INGRESS, "metric": {"name": "h"}, "target": {"type": "Value", "value": "10k"}},
    },
    {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": 30}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "app",
            "target": {"type": "Utilization", "averageUtilization": 60},
        },
    },
)
V2_RULES: Final[Json] = {
    "stabilizationWindowSeconds": 60,
    "selectPolicy": "Min",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
}
BEHAVIORS: Final[tuple[Json, ...]] = (
    {},
    {"scaleUp": V2_RULES},
    {"scaleDown": {"selectPolicy": "Disabled"}},
    {"scaleUp": {}, "scaleDown": V2_RULES},
)
ANNOTATIONS: Final[tuple[Any, ...]] = ({"ScaleUp": RULES}, {"ScaleDown": RULES}, {}, {"ScaleDown": {}}, [])
FIELDS: Final = ("target", "metric", "selector", "averageValue", "targetAverageValue", "targetValue", "metricName")


def cases() -> Iterator[Json]:
    """Yield the objects."""
    chance = random.Random(SEED)  # noqa: S311 (a choice of cases)
    for _ in range(COUNT):
        old = chance.random() < V2BETA1_SHARE
        spec: Json = {"scaleTargetRef": TARGET, "maxReplicas": chance.choice((5, 10, 10, 10, 0, -1))}
        if chance.random() < 0.6:  # noqa: PLR2004
            spec["minReplicas"] = chance.choice((1, 2, 3, 0, 20))
        if chance.random() < 0.9:  # noqa: PLR2004
            spec["metrics"] = chance.sample(METRICS if old else V2_METRICS, chance.randint(0, 3))
        if not old and chance.random() < 0.5:  # noqa: PLR2004
            spec["behavior"] = chance.choice(BEHAVIORS)
        annotations = {"example.com/own": "kept"} if chance.random() < 0.3 else {}  # noqa: PLR2004
        if chance.random() < 0.2:  # noqa: PLR2004
            annotations[f"{PREFIX}behavior"] = json.dumps(chance.choice(ANNOTATIONS))
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            spec = changed(spec, chance)
        version = "autoscaling/v2beta1" if old else "autoscaling/v2beta2"
        yield {
            "apiVersion": version,
            "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
            "spec": spec,
        }


def changed(spec: Json, chance: random.Random) -> Json:
    """Return a spec in which one value is missing, has another name or another value."""
    spec = json.loads(json.dumps(spec))
    container, key = chance.choice([*places(spec)] or [(spec, "maxReplicas")])
    how = chance.choice(("delete", "rename", "add", "replace", "replace"))
    if how == "replace" or not isinstance(container, dict):
        container[key] = chance.choice(VALUES)
    elif how == "add":
        container.setdefault(chance.choice(FIELDS), chance.choice(VALUES))
    else:
        value = container.pop(key, None)
        if how == "rename":
            container[f"{key}X"] = value
    return spec


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the places of all values in a map or a list."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    arguments = parser.parse_args()
    sent = list(cases())
    lines = "".join(f"{json.dumps({**each, 'kind': 'HorizontalPodAutoscaler'})}\n" for each in sent)
    done = subprocess.run([arguments.program], input=lines, capture_output=True, text=True, check=True)  # noqa: S603
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [
        [
            each["apiVersion"],
            each["metadata"]["annotations"],
            each["spec"],
            answer.get("error", ""),
            answer["v2"]["spec"] if "v2" in answer else None,
            answer.get("problems", []),
        ]
        for each, answer in zip(sent, answers, strict=True)
    ]
    table = {"columns": ["version", "annotations", "spec", "error", "v2", "problems"], "rows": rows}
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    OUTPUT.write_bytes(lzma.compress(text.encode(errors="surrogatepass"), preset=9 | lzma.PRESET_EXTREME))
    sys.stderr.write(f"{len(rows)} rows, {OUTPUT.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
