"""Verdicts on valid and invalid built-in objects, compared with those of a real API server.

`scripts/record/validation.py` recorded them; `corpus.py` describes the cases.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf_server import EmbeddedCluster
from tests.ocf_server.validation.corpus import FOLDER, Answer, Case, Corpus, create_stored, send

KINDS = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))
MOST_SHOWN = 20
LIMIT = 400


async def differences(corpus: Corpus) -> list[tuple[Case, Answer, Answer]]:
    """Replay a corpus on an embedded cluster; return the cases whose answers differ, with both answers."""
    cluster = EmbeddedCluster(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    stored = await create_stored(cluster, corpus.stored)
    found = []
    for case, expected in corpus.rows:
        answer = await send(cluster, corpus, case, stored)
        if answer != expected and _comparable(answer) != _comparable(expected):
            found.append((case, expected, answer))
    return found


# The listed differences in texts, see `docs/testing/serve.md`: the embedded API server does not know the names of Go
# types, and does not keep empty lists and maps.
_GO_TYPE = re.compile(r"of type (\[\])?(\w+\.\w+|string|struct.*)")
_EMPTY = re.compile(r"Invalid value: (\[\]|\{\}|null)")


def _comparable(answer: Answer) -> Answer:
    causes = tuple((reason, field, _EMPTY.sub("Invalid value: null", text)) for reason, field, text in answer.causes)
    message = _EMPTY.sub("Invalid value: null", _GO_TYPE.sub(r"of type \1*", answer.message))
    return Answer(answer.status, message, causes)


def shown(found: list[tuple[Case, Answer, Answer]]) -> Iterator[str]:
    for case, expected, answer in found[:MOST_SHOWN]:
        yield f"{str(case)[:LIMIT]}\n  real:     {_line(expected)}\n  embedded: {_line(answer)}"


def _line(answer: Answer) -> str:
    return f"{answer.status} {answer.message[:LIMIT]} {json.dumps(answer.causes)[:LIMIT]}"


@pytest.mark.parametrize("kind", KINDS)
async def test_verdicts_fields_and_texts_are_those_of_a_real_api_server(kind: str) -> None:
    found = await differences(Corpus.load(kind))
    assert not found, f"{len(found)} answers differ:\n" + "\n".join(shown(found))


@pytest.mark.parametrize("kind", KINDS)
def test_the_corpus_is_of_the_supported_release(kind: str) -> None:
    assert Corpus.load(kind).kubernetes == KUBERNETES_VERSION
