"""The file kind `Scenario`."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from ocf.simulation.fields import Instant, Model, Period, PositivePeriod
from ocf.simulation.load.loads import Loads
from ocf.simulation.scenario.activator import Activator
from ocf.simulation.scenario.controller import HpaControllerSettings, MetricsPipeline
from ocf.simulation.scenario.node_groups import NodeGroupSettings, NodeSettings
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.prediction import Prediction
from ocf.simulation.scenario.workload import Workload

__all__ = ["HpaEdit", "Neighbor", "Scenario"]


def _manifest_or_path(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and value):
        return value
    raise ValueError("must be the manifest of a HorizontalPodAutoscaler, or the path of a file with one")


AutoscalerSource = Annotated[
    dict[str, Any] | str,
    BeforeValidator(_manifest_or_path),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string", "minLength": 1}], "examples": ["hpa.yaml"]}),
]
"""The manifest of an HPA, or the path of a file with it."""


class HpaEdit(Model):
    """An edit of the HPA.

    Args:
        at: Time since the start; the first sync that is not before it is the first one with the edit.
        spec: The whole `spec` of the HPA from then on.
        recreated: Whether the HPA was deleted and created anew: its history and its status begin again.
    """

    at: Period
    spec: dict[str, Any]
    recreated: bool = False


class Neighbor(Model):
    """Another workload with an HPA of its own: it shares the nodes, or is called by others.

    Metrics pipeline, controller and nodes are those of the scenario. The fields mean what they mean in a scenario.

    Args:
        name: Its name; unique among the neighbors and the scenario.
        hpa: Its HPA.
        hpa_edits: Edits of its HPA.
        workload: Its pods.
        load: Its load; the type `Served` is what another workload serves.
        activator: What scales it from and to zero.
        prediction: A forecast of its load.
        objectives: What a good run of it is.
    """

    name: Annotated[str, Field(min_length=1)]
    hpa: AutoscalerSource
    hpa_edits: tuple[HpaEdit, ...] = ()
    workload: Workload
    load: Loads
    activator: Activator | None = None
    prediction: Prediction | None = None
    objectives: Objectives = Objectives()


class Scenario(Model):
    """A scenario: everything that decides the result of a simulation.

    Args:
        api_version: `ocf.dev/v1`.
        kind: `Scenario`.
        name: Name of the scenario, for reports.
        hpa: The HorizontalPodAutoscaler, of any version: the manifest, or the path of a file with it, relative to
            the file of the scenario.
        hpa_edits: Edits of the HPA, in order of time; its history and its status go on, unless it is created anew.
        workload: The workload that is scaled.
        load: The load, or loads that are added up.
        metrics: The metrics pipeline.
        controller: Settings of the HPA controller.
        activator: What scales the workload from and to zero; None: only the HPA scales it.
        prediction: A forecast of the load as one more metric of the HPA; None: none.
        node_groups: Groups of nodes, on which the requests of the pods place them; empty: a pod never waits for a node.
        nodes: Settings of the scheduler and of the controller of node groups.
        neighbors: Other workloads, each with an HPA and a load of its own, on the same nodes.
        objectives: What a good run is.
        duration: How long the simulation runs; None: as long as the load, which has an end then.
        start: The instant at which it starts. In a file, by default that at which the first of the loads with instants
            was recorded.
        seed: Seed of all random numbers.
    """

    model_config = ConfigDict(json_schema_extra={"$schema": GenerateJsonSchema.schema_dialect})

    api_version: Literal["ocf.dev/v1"] = "ocf.dev/v1"
    kind: Literal["Scenario"] = "Scenario"
    name: Annotated[str, Field(min_length=1)] = "simulation"
    hpa: AutoscalerSource
    hpa_edits: tuple[HpaEdit, ...] = ()
    workload: Workload
    load: Loads
    metrics: MetricsPipeline = MetricsPipeline()
    controller: HpaControllerSettings = HpaControllerSettings()
    activator: Activator | None = None
    prediction: Prediction | None = None
    node_groups: tuple[NodeGroupSettings, ...] = ()
    nodes: NodeSettings = NodeSettings()
    neighbors: tuple[Neighbor, ...] = ()
    objectives: Objectives = Objectives()
    duration: PositivePeriod | None = None
    start: Instant = datetime(2026, 1, 1, tzinfo=UTC)
    seed: int = 0

    @property
    def is_dated(self) -> bool:
        """Whether the start is a date that means something: it is set, or the load was recorded then."""
        return "start" in self.model_fields_set

    def services(self) -> "tuple[Scenario, ...]":
        """Return a scenario for each workload: this one, and one for each neighbor with the rest of this one."""
        # Each has random numbers of its own, which do not depend on its place.
        others = (
            self.model_copy(
                update={
                    **{name: getattr(each, name) for name in type(each).model_fields},
                    "neighbors": (),
                    "seed": self.seed + crc32(each.name.encode()),
                }
            )
            for each in self.neighbors
        )
        return self, *others
