"""Try an installed wheel: run by the Python that has it, in an empty folder, without a checkout in sight.

python -P wheel_smoke.py core        # without extras: what needs one names it
python -P wheel_smoke.py extras      # with all extras of operators: modules can be imported, type hints resolve
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import typing
from functools import cache
from importlib.metadata import packages_distributions, requires
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Final

import ocf
import ocf_server

HPA: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
"""
SCENARIO: Final = f"""
name: web
hpa:{HPA.replace(chr(10), chr(10) + "  ").rstrip()}
workload: {{capacity: 10, requests: {{cpu: 100m}}}}
load: [{{type: Steady, rate: 12}}]
duration: 10m
"""
DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs, singular: crontab}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 1}]}
"""
OWNERS: Final = "{apiVersion: example.com/v1, kind: Shop, metadata: {name: corner, namespace: shop}}"
COMPONENTS: Final = """
from ocf import component
from ocf.primitives import configmap

MOTTO = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motto", "namespace": "shop"}}

def components(owner):
    return component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(MOTTO).build()).build()
"""
FILES: Final = {
    "web.yaml": HPA,
    "scenario.yaml": SCENARIO,
    "crd.yaml": DEFINITION,
    "shop.yaml": OWNERS,
    "shop.py": COMPONENTS,
}
WORK: Final = (
    "--version",
    "--help",
    "validate --lint web.yaml",
    "default web.yaml",
    "preview shop:components --owner shop.yaml --explain",
    "simulate scenario.yaml",
    "tune scenario.yaml --search spec.minReplicas=2..3 --sampler grid --jobs 1",
    "hpa-controller manifests",
    "nodegroups manifests",
    "completion bash",
)
"""Command lines that need no extra."""

NAMED: Final = {
    "new operator shop-operator": "new",
    "new kind crd.yaml": "new",
    "simulate scenario.yaml --parquet load.parquet": "parquet",
    "tune scenario.yaml --search spec.minReplicas=2..3 --sampler tpe": "tune",
    "tune scenario.yaml --search spec.minReplicas=2..3 --sampler grid --dask tcp://localhost:1": "dask",
    "serve --tls": "testing",
    "serve --load crd.yaml": "cel",
}
"""Command lines that need an extra, with its name."""

HEAVY: Final = ("kubernetes", "aiohttp", "pydantic", "prometheus_client", "rich", "click", "yaml")


def main(scope: str) -> int:
    """Try the wheel, and return how many things failed."""
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    failed = [f"{ocf.__file__} is not the installed package"] if "site-packages" not in str(ocf.__file__) else []
    failed += (_core if scope == "core" else _extras)()
    for each in failed:
        print(f"  failed: {each}")
    return len(failed)


def _core() -> list[str]:
    failed = [f"ocf {line}: {error}" for line in WORK if (error := _error(line, 0)) is not None]
    for line, extra in NAMED.items():
        error = _error(line, 2)
        shown = _ran(line).stderr if error is None else ""
        if error is not None or f"ocf[{extra}]" not in shown:
            failed.append(f"ocf {line}: the extra {extra} is not named: {error or shown}")
    return [*failed, *_served(), *_loaded(), *(f"no module of ocf imports {name}" for name in unused_dependencies())]


def unused_dependencies() -> list[str]:
    """Return the dependencies of the core that no module of the installed package imports."""
    imported = _imported_packages()
    modules: dict[str, set[str]] = {}
    for module, packages in packages_distributions().items():
        for package in packages:
            modules.setdefault(_normalized(package), set()).add(module)
    required = [_normalized(text) for text in requires("ocf") or () if "extra ==" not in text]
    return [name for name in required if not modules.get(name, set()) & imported]


@cache
def _imported_packages() -> frozenset[str]:
    """Return the packages that any module of the installed package imports."""
    return frozenset(
        name.partition(".")[0]
        for package in (ocf, ocf_server)
        for path in Path(next(iter(package.__path__))).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        for name in _imported(node)
    )


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def _normalized(requirement: str) -> str:
    """Return the normalized name of the package of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _extras() -> list[str]:
    failed = []
    found = (pkgutil.walk_packages(each.__path__, f"{each.__name__}.") for each in (ocf, ocf_server))
    for module in chain.from_iterable(found):
        try:
            imported = importlib.import_module(module.name)
            if module.ispkg:
                _resolve_hints(imported)
        except Exception as error:  # noqa: BLE001 (any error is a failure of the wheel)
            failed.append(f"import {module.name}: {type(error).__name__}: {error}")
    made = _error("new operator shop-operator", 0)
    return [*failed, *([f"ocf new operator: {made}"] if made else []), *_tested("shop-operator")]


def _resolve_hints(module: ModuleType) -> None:
    """Evaluate the annotations of what a package exports; raise the error of one that does not resolve."""
    for found in (getattr(module, name) for name in getattr(module, "__all__", ())):
        members = (
            vars(found).values()
            if inspect.isclass(found) and found.__module__.startswith(("ocf.", "ocf_server."))
            else ()
        )
        for each in (found, *members):
            value = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
            if inspect.isfunction(value) or inspect.isclass(value):
                typing.get_type_hints(value)


def _tested(project: str) -> list[str]:
    """Run the tests of a project that was written by the wheel."""
    if not Path(project).is_dir():
        return []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    return [f"tests of {project}: {done.stdout[-2000:]}{done.stderr[-500:]}"] if done.returncode else []


def _ran(line: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-c", "from ocf.cli import main; main()", *shlex.split(line)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (ours)


def _error(line: str, status: int) -> str | None:
    """Run a command line; return what is wrong, None if nothing is."""
    done = _ran(line)
    if done.returncode == status and "Traceback" not in done.stderr:
        return None
    return f"status {done.returncode} instead of {status}: {done.stderr.strip()[-500:]}"


def _served() -> list[str]:
    """Start the embedded API server, and stop it when it serves."""
    command = [sys.executable, "-P", "-c", "from ocf.cli import main; main()", "serve", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (ours)
        line = process.stdout.readline() if process.stdout is not None else ""
        process.send_signal(signal.SIGINT)
    served = line.startswith("{") and str(json.loads(line)["url"]).startswith("http://127.0.0.1:")
    return [] if served and process.returncode == 0 else [f"ocf serve: {line} status {process.returncode}"]


def _loaded() -> list[str]:
    """Import the package in a new process, and name the libraries that it loads."""
    program = f"import sys, ocf; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    return [f"import ocf loads {done.stdout.strip()}"] if done.stdout.strip() else []


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
