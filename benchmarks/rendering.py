"""Rendering of the autoscaler and its parts.

The first baseline is the least that any Python program can do: write the same object as a dict and dump it as JSON. The
second is the models of the client library alone: the cost of building autoscalers with them without `ocf`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.autoscaler import VERSION, base, modelled, mutation, plain, resource
from benchmarks.figures import Case, Suite
from benchmarks.timer import each_call
from ocf.objects import Manifest, write_model
from ocf.primitives import hpa

__all__ = ["suite"]

_LIMIT: Final = 150_000
_TARGET: Final = "backend"


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    assert _full() == write_model(modelled(_TARGET)) == plain(_TARGET), "what is compared has to be the same object"
    built, baseline = resource(_TARGET), base(_TARGET)
    yield [
        Case(name="rendering.dict", what="the same object as a dict, dumped as JSON", measure=each_call(_dumped)),
        Case(
            name="rendering.models",
            what="the same object in the client's models, written once",
            measure=each_call(lambda: write_model(modelled(_TARGET))),
            against="rendering.dict",
        ),
        Case(
            name="rendering.full",
            what="an HPA from its base: build with one gated mutation, render",
            measure=each_call(_full),
            limit=_LIMIT,
            against="rendering.dict",
        ),
        Case(
            name="rendering.build",
            what="of this: building",
            measure=each_call(lambda: hpa.Builder(baseline).with_mutation(mutation(VERSION)).build()),
            against="rendering.full",
        ),
        Case(
            name="rendering.render",
            what="of this: rendering",
            measure=each_call(built.render),
            against="rendering.full",
        ),
    ]


def _dumped() -> str:
    return json.dumps(plain(_TARGET))


def _full() -> Manifest:
    return resource(_TARGET).render()
