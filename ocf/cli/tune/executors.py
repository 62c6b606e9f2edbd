"""Executors for `ocf tune`: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from ocf.errors import ConfigError

__all__ = ["executor_of"]

_CONNECT_SECONDS = 10


@contextmanager
def executor_of(*, jobs: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """Provide an executor; None if one process is enough.

    Args:
        jobs: Number of processes; None for one per processor.
        dask: Address of the scheduler of a Dask cluster, such as `tcp://10.0.0.1:8786`; None for processes.
    """
    if dask is not None:
        with _dask_client(dask) as client:
            yield client.get_executor()
        return
    count = jobs or _processors()
    if count == 1:
        yield None
        return
    # New processes, since a fork copies the threads of none but the caller, and locks of the others stay locked.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_ignore_interrupts) as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to workers, too: the main process ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ConfigError("--dask needs distributed: install it with pip install 'ocf[dask]'") from None
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--dask: {address} cannot be reached: {str(error) or type(error).__name__}") from error
    with client:
        try:
            yield client
        except (distributed.KilledWorker, distributed.CancelledError) as error:
            raise ConfigError(f"--dask: the cluster lost a worker: {error}") from error
