"""Credential plugins: programs that print an `ExecCredential`.

The protocol is that of client-go (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/). The
standard error of the program is that of this process, so its messages are seen; its output is a secret, and no error
contains it.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass, field
from typing import Any

from ocf.cluster.client.rest_config import ExecConfig
from ocf.cluster.client.tls import ClientKeyPair
from ocf.concepts.open_files import restore_open_files
from ocf.errors import ConfigError
from ocf.objects import parse_time

__all__ = ["ExecCredential", "parse_credential", "run_plugin"]


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """Credentials of a plugin.

    Args:
        token: Bearer token; empty for none.
        pair: Client certificate; None for none.
        expires: When they expire, in seconds since the epoch; None for never.
    """

    token: str = field(default="", repr=False)
    pair: ClientKeyPair | None = None
    expires: float | None = None


async def run_plugin(config: ExecConfig) -> ExecCredential:
    """Run a plugin."""
    interactive = _is_interactive(config)
    spec = {"interactive": interactive} | ({"cluster": config.cluster} if config.cluster is not None else {})
    info = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}
    try:
        process = await asyncio.create_subprocess_exec(
            config.command,
            *config.args,
            env={**os.environ, **config.env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            preexec_fn=restore_open_files(),
        )
    except (OSError, ValueError) as error:
        hint = f"; {config.install_hint}" if config.install_hint else ""
        reason = error.strerror if isinstance(error, OSError) else "invalid arguments"
        raise ConfigError(f"the credential plugin {config.command} cannot be run: {reason}{hint}") from None
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:  # the caller was cancelled
            process.kill()
            await process.wait()
    if process.returncode:
        raise ConfigError(f"the credential plugin {config.command} failed with exit code {process.returncode}")
    return parse_credential(output, config)


def parse_credential(output: bytes, config: ExecConfig) -> ExecCredential:
    """Parse the output of a plugin."""
    problem = f"the credential plugin {config.command} returned no credentials"
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        raise ConfigError(f"{problem}: its output is not JSON") from None
    if not isinstance(answer, dict) or not isinstance(status := answer.get("status"), dict):
        raise ConfigError(f"{problem}: its output has no status")
    if answer.get("kind") != "ExecCredential" or answer.get("apiVersion") != config.api_version:
        raise ConfigError(f"{problem}: expected an ExecCredential of {config.api_version}")
    token, certificate, key = (_text(status, n) for n in ("token", "clientCertificateData", "clientKeyData"))
    if bool(certificate) != bool(key):
        raise ConfigError(f"{problem}: it returned only one of clientCertificateData and clientKeyData")
    if not (token or certificate):
        raise ConfigError(f"{problem}: it returned neither a token nor a certificate")
    pair = ClientKeyPair(certificate.encode(), key.encode()) if certificate else None
    try:
        expiration = _text(status, "expirationTimestamp")
        return ExecCredential(token, pair, parse_time(expiration).timestamp() if expiration else None)
    except ValueError:
        raise ConfigError(f"{problem}: its expirationTimestamp is not a time") from None


def _text(status: dict[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""


def _is_interactive(config: ExecConfig) -> bool:
    """Return whether the plugin gets the standard input of this process."""
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if config.interactive_mode == "Always" and not terminal:
        raise ConfigError(f"the credential plugin {config.command} needs a terminal, and standard input is not one")
    return terminal and config.interactive_mode != "Never"
