"""Takes the place of kube-apiserver in envtest: the embedded API server with the flags of the other.

The flags are those that envtest of controller-runtime and of other languages pass, in the form `--name=value` or
`--name value`. Flags about what the embedded server does not have, such as etcd, are ignored.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf_server.http.tls import TlsFiles

__all__ = ["main"]

_IGNORED: Final = frozenset(
    {
        "advertise-address",
        "allow-privileged",
        "api-audiences",
        "disable-admission-plugins",
        "enable-admission-plugins",
        "endpoint-reconciler-type",
        "etcd-cafile",
        "etcd-certfile",
        "etcd-keyfile",
        "etcd-servers",
        "external-hostname",
        "runtime-config",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
        "storage-media-type",
        "v",
        "watch-cache",
    }
)
"""Flags about what has no effect here."""
_LOOPBACK: Final = "127.0.0.1"
_GATES: Final = "feature-gates"
_FLAG: Final = re.compile(r"--[^-=]|-v\b")


def read_flags(words: Sequence[str]) -> dict[str, str]:
    """Return the values of flags; the last of several with one name, and all feature gates.

    Raises:
        ConfigError: If a word is no flag and belongs to none, or feature gates have no value.

    Example:
        >>> read_flags(["--secure-port=6443", "--cert-dir", "/tmp/certs", "--allow-privileged"])
        {'secure-port': '6443', 'cert-dir': '/tmp/certs', 'allow-privileged': 'true'}
    """
    found: dict[str, str] = {}
    rest = iter(range(len(words)))
    for index in rest:
        word, following = words[index], words[index + 1 : index + 2]
        if not _FLAG.match(word):
            raise ConfigError(f"{word!r:.60} is not a flag of kube-apiserver: write --NAME=VALUE")
        name, given, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        # Which of the other flags have no value is not known here.
        if not given and following and (name == _GATES or not following[0].startswith("-")):
            value = words[next(rest)]
        elif not given:
            if name == _GATES:
                raise ConfigError(f"--{name} has no value: write --{name}=NAME=true")
            value = "true"
        found[name] = f"{found[name]},{value}" if name == _GATES and name in found else value
    return found


def tls_files(flags: Mapping[str, str]) -> TlsFiles | None:
    """Return the certificate that flags name, or that lies in the folder of certificates; None if there is none.

    Raises:
        ConfigError: If a file that a flag names does not exist.
    """
    from ocf_server.http.tls import TlsFiles

    folder = Path(flags.get("cert-dir", "/var/run/kubernetes"))
    certificate = Path(flags.get("tls-cert-file") or folder / "apiserver.crt")
    key = Path(flags.get("tls-private-key-file") or folder / "apiserver.key")
    authority = flags.get("client-ca-file")
    if "tls-cert-file" not in flags and not certificate.exists() and authority is None:
        return None
    return TlsFiles(certificate, key, Path(authority) if authority else None)


async def serve(flags: Mapping[str, str], version: str) -> None:
    """Serve as a release until the process receives SIGTERM or SIGINT."""
    from ocf.cli.controllers import stopped_by_signals
    from ocf.schema.releases import read_gates
    from ocf_server import EmbeddedCluster
    from ocf_server.http import serving

    authorization = "RBAC" in flags.get("authorization-mode", "AlwaysAllow").split(",")
    # As in envtest, no controller runs: suites play them, and wait for what a garbage collector would remove.
    cluster = EmbeddedCluster(
        authorization=authorization,
        system_objects=True,
        collect=False,
        kubernetes_version=version,
        feature_gates=read_gates([flags.get(_GATES, "")]),
    )
    stop = stopped_by_signals()
    tls = tls_files(flags) or True
    port = flags.get("secure-port", "6443")
    if not port.isdecimal():
        raise ConfigError(f"--secure-port must be a number, such as 6443, got {port!r:.60}")
    async with serving(cluster, host=_LOOPBACK, port=int(port), tls=tls):
        await stop.wait()


def main(version: str = "") -> None:
    """Run.

    Args:
        version: The release to behave as; empty for the newest one that is known.
    """
    from ocf.concepts.open_files import raise_open_files

    try:
        flags = read_flags(sys.argv[1:])
        _name_unknown(flags)
        raise_open_files()
        asyncio.run(serve(flags, version))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


def _name_unknown(flags: Mapping[str, str]) -> None:
    """Name the flags that are not known on the standard error."""
    known = {"authorization-mode", "bind-address", "cert-dir", "client-ca-file", "secure-port", _GATES}
    known |= {"tls-cert-file", "tls-private-key-file", *_IGNORED}
    for name in sorted(flags.keys() - known):
        sys.stderr.write(f"--{name} is not known to the embedded API server and is ignored\n")
