"""`ocf run`: run the operators of a module on a cluster, as the program of their container."""

from __future__ import annotations

import gc
import logging
import os
from typing import Final

import click

from ocf.cli.command import Command
from ocf.cli.exit_status import FAILED
from ocf.cli.options import target_argument, traceback_option

__all__ = ["run"]

_log: Final = logging.getLogger(__name__)


@click.command(cls=Command)
@target_argument
@traceback_option
def run(target: str) -> None:
    """Run operators on the cluster of the kubeconfig, or of their pod, until they are stopped.

    This is the program of an operator's container. All operators of a module run in one process, which has the name of
    the first one: its lease, and the prefix of its metrics. Environment variables configure it, and `ocf manifests`
    writes a Deployment that sets them: POD_NAMESPACE, LEADER_ELECTION, WARM_STANDBY, WATCH_NAMESPACES, PORT,
    WEBHOOK_SERVICE, WEBHOOK_PORT, WEBHOOK_CERTIFICATES, PAGE_PORT and TRACING. Log lines are JSON on the standard
    error. Ctrl-C and SIGTERM stop them.

    Example:
        ocf run shop.operator
    """
    from ocf.cli.operator_loader import load_operators
    from ocf.runtime.operator import environment_options, main

    operators = load_operators(target)
    name = operators[0].name
    options = environment_options(name, os.environ)
    # The command line collects seldom, because most commands end soon. `main` keeps a larger threshold than its own, so
    # it has to be small here for `main` to set the one of a process that runs for long.
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        main(*operators, options=options)
    except SystemExit as ended:  # the reason is logged
        raise click.exceptions.Exit(FAILED) from ended
    except Exception as error:
        # Where logs are collected, the message alone would not show where it happened.
        _log.critical("operator %s ended with an error", name, exc_info=error)
        raise
    finally:
        # A process that goes on, as one of tests does, would collect again and again, and take many times as long.
        gc.set_threshold(*threshold)
