"""No answer, condition or event quotes the text of an exception of Python: it changes with the version of Python.

So did that of an integer of more than 4300 digits: https://github.com/python/cpython/issues/95778.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.data_validation import decode_base64
from ocf.objects.durations import parse_duration
from ocf.objects.quantity import Quantity
from ocf.objects.timestamps import parse_micro_time, parse_rfc3339, parse_time
from ocf_server.cel.values import read_duration, read_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parent.parent
# What commands print on a terminal, and what tests and simulations of users report, reaches no cluster.
LOCAL: Final = ("ocf/cli/", "ocf/testing/", "ocf/simulation/")

# Handlers that quote an exception of a class that Python raises as well, and why its text is ours nevertheless.
QUOTED: Final = {
    "ocf/autoscaling/algorithm/metric_values.py: ValueError": "parse_duration",
    "ocf/component/author_code.py: Exception": "a gate of the author, whose own text this is",
    "ocf/component/owner_finalizers.py: Exception": "failure_text, which quotes our own errors only",
    "ocf/component/reconcile/resources.py: Exception": "failure_text, which quotes our own errors only",
    "ocf/component/reconcile/prerequisites.py: Exception": "a prerequisite of the author, whose own text this is",
    "ocf/component/reconcile/rollout.py: Exception": "failure_text, which quotes our own errors only",
    "ocf/controllers/hpa/snapshot/observer.py: QuantityError, ValueError": "parse_time, and quantities",
    "ocf/nodegroups/snapshot/pods.py: ValueError": "parse_time",
    "ocf/objects/data_validation.py: ValueError": "decode_base64",
    "ocf/runtime/operator/background.py: Exception": "failure_text, which quotes our own errors only",
    "ocf/runtime/operator/process.py: Exception": "failure_text, which quotes our own errors only",
    "ocf/runtime/operator/process.py: Exception, asyncio.CancelledError": "the same",
    "ocf/runtime/page/stream.py: Exception": "failure_text, which quotes our own errors only",
    "ocf_server/admission/dispatcher.py: ValueError": "patched_object, and the engine of policies",
    "ocf_server/api/webhook_client.py: TimeoutError, aiohttp.ClientError, OSError, ValueError": "call_problem",
    "ocf_server/cel/checker.py: ValueError, OverflowError, EvaluationError": "only that of a regular expression",
    "ocf_server/cel/values.py: ValueError": "the readers of the formats",
    "ocf_server/codec/decoding.py: ValueError": "decode_base64 and the readers of times",
    "ocf_server/http/pod_logs.py: ValueError": "parse_rfc3339",
    "ocf_server/http/proxy.py: aiohttp.ClientError, OSError, ValueError": "call_problem",
}
BUILT_IN: Final = {
    "ArithmeticError",
    "AttributeError",
    "Exception",
    "KeyError",
    "LookupError",
    "OverflowError",
    "RecursionError",
    "TypeError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "ValueError",
    "ZeroDivisionError",
}


def quotes(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler puts the text of its exception into another text."""
    for node in ast.walk(ast.Module(handler.body, [])):
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name) and node.value.id == handler.name:
            return True
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
        if called in {"str", "call_problem", "failure_text", "one_line"} and isinstance(node, ast.Call) and node.args:
            return isinstance(node.args[0], ast.Name) and node.args[0].id == handler.name
    return False


def handlers() -> Iterator[str]:
    """Yield the handlers of classes of Python that quote the exception."""
    for path in sorted([*(ROOT / "ocf").rglob("*.py"), *(ROOT / "ocf_server").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(LOCAL):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ExceptHandler) or node.name is None or node.type is None:
                continue
            classes = [
                ast.unparse(one) for one in (node.type.elts if isinstance(node.type, ast.Tuple) else [node.type])
            ]
            if BUILT_IN & {*classes} and quotes(node):
                yield f"{name}: {', '.join(classes)}"


def test_each_handler_that_quotes_an_exception_of_python_is_known() -> None:
    """A new one needs a reason why its text does not depend on Python; one that is gone needs none."""
    assert set(handlers()) == QUOTED.keys()


PARTS: Final = st.sampled_from(
    [
        *("9" * 5000, "-", "+", "0001", "9999", "2026", "-02-30", "-13-01", "T", "24:00:00", "Z", "+14:00", "-23:59"),
        *(".5", "h", "m", "s", "days", "1e999", "Ki", "\ud800", "\u0661", "\x00", "=", "\xe9"),
        *("2026-01-01T00:00:00", "0001-01-01T00:00:00"),
    ]
)
TEXTS: Final = st.one_of(st.text(max_size=20), st.lists(PARTS, max_size=5).map("".join))
READERS: Final[list[Callable[[str], object]]] = [
    decode_base64,
    parse_duration,
    Quantity.parse,
    parse_micro_time,
    parse_rfc3339,
    parse_time,
    read_duration,
    read_instant,
]


def raised(read: Callable[[str], object], text: str) -> ValueError | None:
    """Return the error of a reader, which must be of the class that its callers handle."""
    try:
        read(text)
    except ValueError as error:
        return error
    return None


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
@given(text=TEXTS)
def test_a_reader_words_its_errors_itself(read: Callable[[str], object], text: str) -> None:
    """Its exception comes from a `raise` of ours."""
    error = raised(read, text)
    if error is not None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = linecache.getline(last.filename, last.lineno or 0).strip()
        assert re.match(r"raise\b", line), f"{last.filename}: {line}: {error}"
