"""`managedFields` as the server writes them, entry by entry.

The expected entries are in `goldens/`, recorded from a real server by `pytest --ocf-update-goldens -k "envtest"`; only
the times are masked. Managers are named in the order in which they write, because a server sorts entries by seconds
first and then by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf.cluster import PatchType, Subresource
from ocf.objects import dump_document, load_document

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

GOLDENS: Final = Path(__file__).parent / "goldens"
Story: TypeAlias = Callable[["Env"], Awaitable[object]]

DEPLOYMENT: Final = """
metadata: {labels: {tier: one}, annotations: {a.io/b: c}, finalizers: [a.io/x]}
spec:
  replicas: 3
  selector: {matchLabels: {app: demo}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers:
      - name: web
        image: web:1
        args: [--fast]
        env: [{name: A, value: "1"}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP, name: dns}]
        resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}
        volumeMounts: [{name: scratch, mountPath: /tmp}]
        readinessProbe: {httpGet: {path: /ready, port: 80}}
      tolerations: [{key: a, operator: Exists}]
      volumes: [{name: scratch, emptyDir: {}}]
"""
AUTOSCALER: Final = """
spec:
  minReplicas: 2
  maxReplicas: 8
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}
  behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 30}]}}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}
  - {type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 1000m}}}
"""
SERVICE: Final = """
metadata: {labels: {tier: one}}
spec:
  type: LoadBalancer
  selector: {app: demo}
  ports: [{name: http, port: 80, targetPort: web}, {name: dns, port: 53, protocol: UDP}]
"""
WIDGET: Final = """
metadata: {labels: {tier: one}}
spec:
  size: 2
  colour: red
  tags: [a, b]
  order: [k, l]
  limits: {cpu: "1"}
  labels: {a: "1"}
  free: {deep: {deeper: [1, {a: 2}]}, empty: {}, none: []}
  contact: {email: a@b.io}
  parts: [{name: a, image: x}, {name: b, count: 2}]
"""


def created(kind: str, body: str) -> Story:
    return lambda env: env.create(kind, body)


def applied(kind: str, body: str) -> Story:
    return lambda env: env.apply("author", kind, body)


def sequence(*steps: Story) -> Story:
    """Return a story that runs the steps one after another."""

    async def story(env: Env) -> None:
        for step in steps:
            await step(env)

    return story


def merged(by: str, kind: str, patch: str, part: Subresource | None = None) -> Story:
    return lambda env: env.merge(kind, patch, by=by, part=part)


def then_applied(by: str, kind: str, body: str, part: Subresource | None = None) -> Story:
    return lambda env: env.apply(by, kind, body, force=True, part=part)


def updated(by: str, kind: str, **changes: Any) -> Story:
    async def story(env: Env) -> None:
        live = await env.get(kind)
        await env.update({**live, **{name: {**live.get(name, {}), **value} for name, value in changes.items()}}, by=by)

    return story


STORIES: Final = [
    pytest.param("Deployment", created("Deployment", DEPLOYMENT), id="a Deployment is created"),
    pytest.param("Deployment", applied("Deployment", DEPLOYMENT), id="a Deployment is applied"),
    pytest.param(
        "Deployment",
        sequence(
            applied("Deployment", DEPLOYMENT),
            merged("b", "Deployment", "spec: {replicas: 5}", Subresource.SCALE),
            merged("c", "Deployment", "status: {replicas: 3, readyReplicas: 2}", Subresource.STATUS),
            updated("d", "Deployment", spec={"paused": True}),
            then_applied("e", "Deployment", "metadata: {labels: {tier: two}}"),
        ),
        id="a Deployment is scaled and reported and updated and shared",
    ),
    pytest.param(
        "Deployment",
        sequence(
            applied("Deployment", DEPLOYMENT),
            lambda env: env.patch(
                "Deployment",
                {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
                patch_type=PatchType.STRATEGIC_MERGE,
                by="b",
            ),
        ),
        id="a Deployment gets a container by strategic patch",
    ),
    pytest.param(
        "HorizontalPodAutoscaler",
        created("HorizontalPodAutoscaler", AUTOSCALER),
        id="an autoscaler is created",
    ),
    pytest.param(
        "HorizontalPodAutoscaler", applied("HorizontalPodAutoscaler", AUTOSCALER), id="an autoscaler is applied"
    ),
    pytest.param(
        "HorizontalPodAutoscaler",
        sequence(
            applied("HorizontalPodAutoscaler", AUTOSCALER),
            merged("b", "HorizontalPodAutoscaler", "spec: {minReplicas: 1}"),
            merged(
                "c",
                "HorizontalPodAutoscaler",
                "status: {desiredReplicas: 2, conditions: [{type: ScalingActive, status: 'True'}]}",
                Subresource.STATUS,
            ),
            then_applied("d", "HorizontalPodAutoscaler", "spec: {behavior: {scaleUp: {selectPolicy: Max}}}"),
        ),
        id="an autoscaler is patched and reported and shared",
    ),
    pytest.param("Service", created("Service", SERVICE), id="a Service is created"),
    pytest.param("Service", applied("Service", SERVICE), id="a Service is applied"),
    pytest.param(
        "Service",
        sequence(
            applied("Service", SERVICE),
            merged("b", "Service", "spec: {sessionAffinity: ClientIP}"),
            then_applied("c", "Service", "spec: {ports: [{name: more, port: 81}]}"),
            merged(
                "d",
                "Service",
                "status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}",
                Subresource.STATUS,
            ),
        ),
        id="a Service is patched and shared and reported",
    ),
    pytest.param("Widget", created("Widget", WIDGET), id="a custom resource is created"),
    pytest.param("Widget", applied("Widget", WIDGET), id="a custom resource is applied"),
    pytest.param(
        "Widget",
        sequence(
            applied("Widget", WIDGET),
            merged("b", "Widget", "spec: {replicas: 5}", Subresource.SCALE),
            merged("c", "Widget", "status: {replicas: 2}", Subresource.STATUS),
            then_applied("d", "Widget", "status: {phase: New}", Subresource.STATUS),
            then_applied("e", "Widget", "spec: {tags: [b, c], parts: [{name: b, image: z}], limits: {memory: '1'}}"),
            updated("f", "Widget", spec={"order": ["z"], "colour": "green"}),
        ),
        id="a custom resource is written through all subresources",
    ),
    pytest.param(
        "ConfigMap", created("ConfigMap", "{data: {a: '1'}, binaryData: {b: aGk=}}"), id="a ConfigMap is created"
    ),
    pytest.param(
        "ConfigMap",
        sequence(
            created("ConfigMap", "data: {a: '1', b: '2'}"),
            then_applied("b", "ConfigMap", "{data: {b: '3'}, immutable: false}"),
            merged("c", "ConfigMap", "{data: null, metadata: {labels: {a: b}}}"),
        ),
        id="a ConfigMap loses what it had",
    ),
    pytest.param("Secret", applied("Secret", "{stringData: {a: '1'}, type: Opaque}"), id="a Secret is applied"),
    pytest.param(
        "ConfigMap",
        lambda env: env.create(
            "ConfigMap",
            "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: other, "
            "uid: 8a2c7a5e-0000-4000-8000-000000000000, controller: true}]}",
        ),
        id="an owner is named",
    ),
]


@pytest.mark.parametrize(("kind", "story"), STORIES)
@pytest.mark.promise("conformance", runs="17 objects, each written by several managers")
async def test_entries_equal_those_of_the_server(
    env: Env, request: pytest.FixtureRequest, update_goldens: bool, kind: str, story: Story
) -> None:
    title = request.node.callspec.id.partition("-")[2]
    golden = GOLDENS / f"{title.replace(' ', '-')}.yaml"
    await story(env)
    entries = (await env.get(kind))["metadata"]["managedFields"]
    for entry in entries:
        if "time" in entry:
            entry["time"] = "*"
    if update_goldens and not env.may_reject:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(dump_document({"managedFields": entries}), encoding="utf-8")

    assert entries == load_document(golden.read_text(encoding="utf-8"))["managedFields"]
