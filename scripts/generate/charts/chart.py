"""The files of the chart."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ocf.manifests.helm_templates import KUBERNETES, in_release
from ocf.manifests.install_options import Project
from ocf.objects import dump_document
from scripts.generate.charts.common import chart_values
from scripts.generate.charts.controller import ChartedController, controller_templates
from scripts.generate.charts.hpa_controller import hpa_in_chart
from scripts.generate.charts.nodegroups_controller import nodegroups_in_chart
from scripts.generate.charts.notes import CHART, NOTE
from scripts.generate.charts.values import Entries, value_rows, values_schema, values_yaml

__all__ = ["chart_files", "charted", "values"]

_TRAILING_SPACES: Final = re.compile(r" +\n")
_README: Final = """\
<!-- {note} -->

# The chart of the controllers

Installs [the HPA controller](../../docs/autoscaling/hpa-controller.md#install-in-a-cluster) and
[the node-group controller](../../docs/nodes/nodegroup-controller.md#install-in-a-cluster), each on its own or both,
from one image with `ocf`.

```sh
helm upgrade --install ocf charts/{chart} \\
  --namespace ocf-system --create-namespace \\
  --set image.repository=registry.example.com/ocf
```

Objects have the same names in every release, since a cluster has at most one of each controller: a second release
fails at once. The roles hold exactly what the chosen mode or provider needs.

| value | default | meaning |
| --- | --- | --- |
{rows}
"""


def charted() -> list[ChartedController]:
    """Return the controllers of the chart."""
    return [hpa_in_chart(), nodegroups_in_chart()]


def values(controllers: Sequence[ChartedController]) -> Entries:
    """Return all values of the chart.

    Args:
        controllers: The controllers.
    """
    return {**chart_values(), **{each.key: each.section for each in controllers}}


def chart_files(controllers: Sequence[ChartedController], project: Path) -> dict[str, str]:
    """Return the files of the chart, by their path in its folder.

    Args:
        controllers: The controllers.
        project: The pyproject.toml, which has the version.
    """
    version = Project.of_pyproject(tomllib.loads(project.read_text(encoding="utf-8"))["project"]).version
    described: dict[str, Any] = {
        "apiVersion": "v2",
        "name": CHART,
        "description": "Controllers for HorizontalPodAutoscalers and node groups.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": KUBERNETES,
        "keywords": ["autoscaling", "horizontalpodautoscaler", "hpa", "nodes"],
    }
    declared = values(controllers)
    templates = {
        f"templates/{each.name.removeprefix('ocf-')}/{file}": _TRAILING_SPACES.sub("\n", in_release(text))
        for each in controllers
        for file, text in controller_templates(each).items()
    }
    rows = "\n".join(f"| `{path}` | `{default}` | {meaning} |" for path, default, meaning in value_rows(declared))
    return {
        "Chart.yaml": f"# {NOTE}\n{dump_document(described)}",
        "README.md": _README.format(note=NOTE, chart=CHART, rows=rows),
        "values.yaml": f"# {NOTE}\n{values_yaml(declared)}",
        "values.schema.json": values_schema(declared, note=NOTE),
        **templates,
    }
