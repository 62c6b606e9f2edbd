"""Record what a real Prometheus answers to the queries of `ocf record --prometheus`, for the tests.

`prometheus` and `promtool` are not installed by this project. The series of
`tests/simulation/recording/prometheus_series.py` are written into a new database.

    python -m scripts.record.prometheus FOLDER
"""

import argparse
import asyncio
import io
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import aiohttp

from ocf.cli.record.prometheus import Access, open_prometheus, record_range
from ocf.errors import ConfigError
from ocf.simulation.recording.prometheus import SeriesSelection, Steps
from ocf.testing.envtest.startup import free_port
from tests.cli.record.prometheus_answers import FAILING, PATH, Answer, PrometheusStub, Question, hpa, save
from tests.simulation.recording.prometheus_series import END, SCRAPE, START, STYLES, openmetrics

_SECONDS: Final = 60
_PAUSE: Final = 0.2


@contextmanager
def _prometheus(folder: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        home, port = Path(name), free_port()
        (home / "series.txt").write_text(openmetrics(), encoding="utf-8")
        (home / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
        words = ("tsdb", "create-blocks-from", "openmetrics", f"{home / 'series.txt'}", f"{home / 'data'}")
        convert = [f"{folder / 'promtool'}", *words]
        subprocess.run(convert, check=True)  # noqa: S603 (programs that the caller names)
        flags = {
            "config.file": home / "prometheus.yml",
            "storage.tsdb.path": home / "data",
            "storage.tsdb.retention.time": "100y",
            "web.listen-address": f"127.0.0.1:{port}",
            "log.level": "warn",
        }
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        with subprocess.Popen([folder / "prometheus", *arguments]) as process:  # noqa: S603 (likewise)
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


async def _record(url: str) -> None:
    answers: dict[Question, Answer] = {}
    async with aiohttp.ClientSession() as session:
        async with asyncio.timeout(_SECONDS):
            while not await _is_ready(session, url):  # noqa: ASYNC110 (another process)
                await asyncio.sleep(_PAUSE)

        async def ask(question: Question) -> Answer:
            async with session.post(f"{url}{PATH}", data=dict(question)) as response:
                answers[question] = response.status, await response.text()
            return answers[question]

        async with PrometheusStub(ask).running() as stub, open_prometheus(Access(url=stub.url)) as source:
            for style in STYLES:
                selection, steps = SeriesSelection(style, "web"), Steps.between(START, END, SCRAPE)
                await record_range(source, selection, steps, io.StringIO(), manifest=hpa(style), warn=print)
            for expression, length in FAILING.values():
                with suppress(ConfigError):
                    await source.range(expression, Steps.between(START, START + length, timedelta(seconds=1)))
    save(answers)
    print(f"{len(answers)} answers")


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/-/ready") as response:
            return response.ok
    except aiohttp.ClientError:
        return False


def main() -> None:
    """Read the command line, and record."""
    parser = argparse.ArgumentParser(description="Record the answers of a real Prometheus.")
    parser.add_argument("folder", type=Path, help="folder with the programs prometheus and promtool")
    with _prometheus(parser.parse_args().folder) as url:
        asyncio.run(_record(url))


if __name__ == "__main__":
    main()
