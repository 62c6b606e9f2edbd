"""`ocf envtest-assets`: programs with which envtest starts the embedded API server."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

import click

from ocf.cli.command import Command
from ocf.cli.options import traceback_option

__all__ = ["envtest_assets"]

# Each program has this line, by which the next run knows that it may replace it.
_WRITTEN: Final = b"# Written by `ocf envtest-assets`"
_BEGIN: Final = 200  # bytes
# With -P, because the suites start it in folders of their own, whose modules Python would import otherwise.
_SERVER: Final = """#!/bin/sh
# Written by `ocf envtest-assets`: the embedded API server of ocf in place of kube-apiserver.
case "$1" in
--help) echo '  --secure-port int   The port on which to serve HTTPS.'; exit 0 ;;
--version) echo 'Kubernetes {version}'; exit 0 ;;
esac
exec {python} -P -c 'from ocf.cli.serve.kube_apiserver import main; main("{release}")' "$@"
"""
_ETCD: Final = """#!/bin/sh
# Written by `ocf envtest-assets`: in place of etcd, which the embedded API server of ocf does not need.
case "$1" in
--help) echo '  --listen-client-urls string   The URL on which to answer.'; exit 0 ;;
esac
exec {python} -I -S {script} "$@"
"""


@click.command(cls=Command)
@click.argument("folder", type=Path, metavar="FOLDER")
@click.option(
    "--kubernetes-version", metavar="VERSION", default="", help="Release to behave as, such as 1.33; default: 1.36."
)
@traceback_option
def envtest_assets(*, folder: Path, kubernetes_version: str) -> None:
    """Write programs that take the places of kube-apiserver and etcd in envtest.

    A suite of controller-runtime, and of other projects that start kube-apiserver and etcd of the folder
    KUBEBUILDER_ASSETS, then runs on the embedded API server, unchanged. No controller runs there, as in envtest. The
    programs use this installation of ocf. kubectl is linked beside them if it is installed.

    Example:
        export KUBEBUILDER_ASSETS="$(ocf envtest-assets /tmp/assets)"
    """
    from ocf.cli.serve import etcd
    from ocf.errors import ConfigError
    from ocf.schema.releases import Release

    release = Release.of(kubernetes_version)
    python = shlex.quote(sys.executable)
    texts = {
        "kube-apiserver": _SERVER.format(python=python, version=release.git_version, release=release.version),
        "etcd": _ETCD.format(python=python, script=shlex.quote(str(Path(etcd.__file__).absolute()))),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in texts:
            if _is_foreign(folder / name):
                raise ConfigError(
                    f"{folder / name} exists, and this command has not written it; name another folder, or move it away"
                )
        for name, text in texts.items():
            path = folder / name
            path.unlink(missing_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        _link_kubectl(folder / "kubectl")
    except OSError as error:
        advice = "choose a folder that you can write to"
        raise ConfigError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}; {advice}"
        ) from error
    click.echo(folder.absolute())


def _is_foreign(path: Path) -> bool:
    """Return whether a program exists that this command has not written, such as the real one."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return _WRITTEN not in file.read(_BEGIN)


def _link_kubectl(link: Path) -> None:
    import shutil

    found = shutil.which("kubectl")
    if found and not link.exists():
        # A link to a kubectl that is gone does not exist, and is in the way.
        link.unlink(missing_ok=True)
        link.symlink_to(Path(found).absolute())
