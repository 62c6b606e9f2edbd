"""Record what Grafana and Prometheus accept: the schema of dashboards, and the expressions of dashboard and alerts.

    python -m scripts.record.dashboard

The schema is derived from the types that Grafana publishes as the npm package `@grafana/schema` (Apache License 2.0),
by `ts-json-schema-generator`, without its descriptions. The expressions are read by Prometheus's own parser, which
`oracles/promql` calls; variables of Grafana are replaced by a value. Needs npm and Go.
"""

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from scripts.record.dashboard_parts.prometheus import build_oracle, run_program
from tests.runtime.monitoring.queries import EXPRESSIONS, RECORDED, SCHEMA

_GRAFANA: Final = "@grafana/schema@13.2.3"
_GENERATOR: Final = "ts-json-schema-generator@2.10.0"
_TYPES: Final = (
    "export type { Dashboard } from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';\n"
)
_TEXTS: Final = frozenset({"description", "deprecated"})
_NAMED: Final = frozenset({"properties", "definitions"})
_COMMENT: Final = (
    f"Generated from {_GRAFANA} (https://github.com/grafana/grafana, packages/grafana-schema), Copyright Grafana Labs, "
    "Apache License 2.0, by scripts/record/dashboard.py; descriptions are left out."
)


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as name:
        schema = {"$comment": _COMMENT, **_without_texts(_schema(Path(name)))}
        SCHEMA.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
        verdicts = zip(EXPRESSIONS, _verdicts(Path(name)), strict=True)
        RECORDED.write_text(json.dumps(dict(verdicts), indent=2) + "\n", encoding="utf-8")


def _schema(folder: Path) -> Any:
    """Return the schema of Grafana's type `Dashboard`; properties that it does not have are not allowed."""
    (folder / "dashboard.ts").write_text(_TYPES, encoding="utf-8")
    run_program(
        "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", _GRAFANA, _GENERATOR, cwd=folder
    )
    program = str(folder / "node_modules" / ".bin" / "ts-json-schema-generator")
    return json.loads(
        run_program(program, "--path", "dashboard.ts", "--type", "Dashboard", "--no-type-check", cwd=folder)
    )


def _without_texts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_texts(each) for name, each in value.items()} if key in _NAMED else _without_texts(value)
        for key, value in schema.items()
        if key not in _TEXTS
    }


def _verdicts(folder: Path) -> Any:
    return json.loads(run_program(str(build_oracle(folder)), cwd=folder, given=json.dumps(EXPRESSIONS)))


if __name__ == "__main__":
    main()
