"""The server that Kubernetes' end-to-end tests run on."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.request import Request, urlopen

__all__ = ["embedded_server"]

COMPACTION: Final = 10.0  # seconds


@contextmanager
def embedded_server() -> Iterator[str]:
    """Start an `ocf serve` with all its controllers; provide the path of its kubeconfig."""
    ocf = Path(sys.executable).with_name("ocf")
    command = [str(ocf), "serve", "--controllers", "all", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 (our own command)
        try:
            assert server.stdout is not None  # noqa: S101 (it was opened with a pipe)
            place = json.loads(server.stdout.readline())
            with compacting(place["url"]):
                yield place["kubeconfig"]
        finally:
            server.terminate()


@contextmanager
def compacting(url: str) -> Iterator[None]:
    """Write an object and compact the history at intervals, as the leases and the compactor of a real cluster do."""
    stop = Event()

    def send(path: str, method: str, body: Any) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        request = Request(f"{url}{path}", json.dumps(body).encode(), headers, method=method)  # noqa: S310 (loopback)
        urlopen(request).close()  # noqa: S310 (loopback)

    def repeat() -> None:
        count = 0
        while not stop.wait(COMPACTION):
            count += 1
            send("/api/v1/namespaces/kube-public", "PATCH", {"metadata": {"annotations": {"count": str(count)}}})
            if count % 3 == 0:
                send("/ocf/compact", "POST", {})

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
