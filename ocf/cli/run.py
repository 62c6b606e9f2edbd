"""`ocf run`: run an operator on a cluster, as the program of its container."""

from __future__ import annotations

import gc
import logging
import os
from typing import Final

import click

from ocf.cli.command import Command
from ocf.cli.exit_status import FAILED
from ocf.cli.options import traceback_option

__all__ = ["run"]

_log: Final = logging.getLogger(__name__)


@click.command(cls=Command)
@click.argument(
    "target",
    metavar="MODULE[:NAME]",
    help="The operator: shop.operator, shop/operator.py or shop, optionally with its name.",
)
@traceback_option
def run(target: str) -> None:
    """Run an operator on the cluster of the kubeconfig, or of its pod, until it is stopped.

    This is the program of an operator's container. Environment variables configure it, and `ocf manifests` writes a
    Deployment that sets them: POD_NAMESPACE, LEADER_ELECTION, WATCH_NAMESPACES, PORT, WEBHOOK_SERVICE, WEBHOOK_PORT,
    WEBHOOK_CERTIFICATES and TRACING. Log lines are JSON on the standard error. Ctrl-C and SIGTERM stop it.

    Example:
        ocf run shop.operator
    """
    from ocf.cli.operator_loader import load_operator
    from ocf.runtime.operator import environment_options, main

    operator = load_operator(target)
    options = environment_options(operator.name, os.environ)
    # The command line collects seldom, because most commands end soon. `main` keeps a larger threshold than its own, so
    # it has to be small here for `main` to set the one of a process that runs for long.
    gc.set_threshold(1)
    try:
        main(operator, options=options)
    except SystemExit as ended:  # the reason is logged
        raise click.exceptions.Exit(FAILED) from ended
    except Exception as error:
        # Where logs are collected, the message alone would not show where it happened.
        _log.critical("operator %s ended with an error", operator.name, exc_info=error)
        raise
