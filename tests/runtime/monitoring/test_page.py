"""The tables of the page about observability say what the code says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse

from ocf.concepts import ApplyOperation, Attempt, SystemClock
from ocf.concepts.recorder import Why
from ocf.runtime.admission.webhook_metrics import WebhookMetrics
from ocf.runtime.events.poster import Drop
from ocf.runtime.monitoring import PrometheusRecorder, alert_rules
from tests.runtime.monitoring.log_calls import LEVELS, loggers

PAGE: Final = Path(__file__).parents[3] / "docs" / "operators" / "observability.md"
SOURCES: Final = [
    file for package in ("ocf", "ocf_server") for file in (Path(__file__).parents[3] / package).rglob("*.py")
]
ATTRIBUTE: Final = re.compile(r'"(ocf\.[a-z_.]+)": ')
ROLE: Final = re.compile(r'object_attributes\("(ocf\.[a-z]+)", [a-z.]*key\)')
ROW: Final = re.compile(r"^\| (.+) \|$", re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index(f"\n| {heading} |") :].strip().split("\n\n")[0]
    return [[cell.strip(" `") for cell in row.split("|")] for row in ROW.findall(table)[2:]]


def test_the_table_of_metrics_is_what_is_exported(attempt: Callable[..., Attempt]) -> None:
    recorder = PrometheusRecorder(controller="shop")
    recorder.attempted(attempt())
    recorder.attempted(attempt(operation=None, why=Why.FAILED))
    recorder.observed(attempt().owner, [{"type": "Ready", "lastTransitionTime": "2026-01-01T12:00:00Z"}])
    families = parse(recorder.render().body.decode())

    listed = {(name, kind, frozenset(re.findall(r"\w+", labels))) for name, kind, labels, _ in rows("metric")}
    assert listed == {
        (sample.name, family.type, frozenset(sample.labels)) for family in families for sample in family.samples
    }


def test_the_table_of_webhook_metrics_is_what_is_exported() -> None:
    registry = CollectorRegistry()
    with WebhookMetrics(registry, SystemClock()).measured("/validate") as request:
        request.failed(ignored=True)
    families = parse(generate_latest(registry).decode())

    exported = {
        (family.name + "_total" * (family.type == "counter"), family.type, frozenset(sample.labels) - {"le"})
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    rowed = rows("webhook metric")
    assert {(name, kind, frozenset(re.findall(r"\w+", labels))) for name, kind, labels, _ in rowed} == exported


def test_the_table_of_reasons_to_write_is_the_code() -> None:
    assert [why for why, *_ in rows("why")] == [str(why) for why in Why]
    assert {operation for _, operation, *_ in rows("why")} == {"", *(operation.lower() for operation in ApplyOperation)}


def test_the_table_of_drops_is_the_code() -> None:
    assert [why for why, _ in rows("dropped because")] == [str(drop) for drop in Drop]


def test_the_table_of_alerts_is_the_rule_file() -> None:
    groups = yaml.safe_load(alert_rules())["groups"]

    assert [name for name, _ in rows("alert")] == [rule["alert"] for group in groups for rule in group["rules"]]


def test_the_table_of_attributes_is_the_code() -> None:
    listed = {name.strip(" `") for names, *_ in rows("attribute") for name in names.split(",")}
    quoted = {name for path in SOURCES for name in ATTRIBUTE.findall(path.read_text(encoding="utf-8"))}
    roles = {name for path in SOURCES for name in ROLE.findall(path.read_text(encoding="utf-8"))}
    assert listed == quoted | {f"{role}.{part}" for role in roles for part in ("api_version", "kind", "name")}


def test_the_table_of_fields_is_what_is_logged() -> None:
    assert {(name, logger) for name, logger, _ in rows("field")} == {
        (field, name) for name, logger in loggers().items() for field in logger.fields
    }


def test_the_table_of_loggers_is_what_is_logged() -> None:
    columns = LEVELS[:4]
    listed = {
        name: {level for level, cell in zip(columns, cells, strict=True) if cell} for name, *cells in rows("logger")
    }
    logged = {
        name: {"ERROR" if level == "CRITICAL" else level for level in one.levels} for name, one in loggers().items()
    }

    assert listed == logged


def test_the_table_of_levels_is_complete() -> None:
    assert [level for level, _ in rows("level")] == [*reversed(LEVELS[:4])]
