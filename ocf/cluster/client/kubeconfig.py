"""Reading of kubeconfigs, as client-go does.

Of several files, the first that has an entry or a current context wins; missing files are ignored. Paths are relative
to the folder of the file that names them, also the command of a credential plugin if it contains a slash. Errors never
repeat what an entry contains: it may be a token.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from ocf.cluster.client.proxy import proxy_address
from ocf.cluster.client.rest_config import ExecConfig, Impersonation, InteractiveMode, RestConfig, TlsConfig
from ocf.errors import ConfigError, ManifestError
from ocf.objects import load_document

__all__ = ["load_config", "read_kubeconfig"]

_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}


def read_kubeconfig(paths: str, context: str | None = None) -> RestConfig:
    """Read the settings of a context.

    Args:
        paths: Path of a kubeconfig, or several, separated as in `PATH`.
        context: Name of the context; None takes the current one.
    """
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    files = [file for file in files if file.is_file()]
    if not files:
        raise ConfigError(f"no kubeconfig at {paths}; name one, set KUBECONFIG, or run in a pod with a service account")
    where = f", context {context!r}" if context else ""
    try:
        return _merge(files).config(context)
    except _UnknownContextError as error:
        raise ConfigError(f"kubeconfig {paths} {error}") from None
    except ConfigError as error:
        raise ConfigError(f"kubeconfig {paths}{where} cannot be used: {error}") from None


class _UnknownContextError(ConfigError):
    """The kubeconfig does not have the context."""


class _Entry(NamedTuple):
    """A map of a kubeconfig, with typed access to its fields; an empty value counts as unset."""

    value: Mapping[str, Any]
    path: str
    folder: Path

    def text(self, name: str) -> str:
        return str(self._typed(name, str, "a text") or "")

    def flag(self, name: str) -> bool:
        return bool(self._typed(name, bool, "true or false"))

    def file(self, name: str) -> str:
        """Return an absolute path; empty if it is not set."""
        return str(Path(os.path.abspath(self.folder / self.text(name)))) if self.text(name) else ""  # noqa: PTH100 (".." stays)

    def data(self, name: str) -> bytes:
        try:
            return base64.b64decode(self.text(name), validate=False)
        except (binascii.Error, ValueError):
            raise ConfigError(f"{self._at(name)}: invalid base64") from None

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._typed(name, list, "a list of texts") or []
        if not all(isinstance(value, str) for value in values):
            raise ConfigError(f"{self._at(name)}: expected a list of texts, but an item is not a text")
        return tuple(values)

    def mapping(self, name: str) -> "_Entry | None":
        value = self._typed(name, dict, "a map")
        return None if value is None else _Entry(value, self._at(name), self.folder)

    def items(self, name: str) -> "Iterator[_Entry]":
        for number, value in enumerate(self._typed(name, list, "a list") or ()):
            where = f"{self._at(name)}[{number}]"
            if not isinstance(value, dict):
                raise ConfigError(f"{where}: expected a map, not {type(value).__name__}")
            yield _Entry(value, where, self.folder)

    def _typed(self, name: str, wanted: type, description: str) -> Any:
        value = self.value.get(name)
        if value is not None and not isinstance(value, wanted):
            raise ConfigError(f"{self._at(name)}: expected {description}, not {type(value).__name__}")
        return value

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


class _Merged(NamedTuple):
    """The entries of all files by name."""

    clusters: Mapping[str, _Entry]
    users: Mapping[str, _Entry]
    contexts: Mapping[str, _Entry]
    current: str

    def config(self, name: str | None) -> RestConfig:
        """Return the settings of a context."""
        if name is not None and name not in self.contexts:
            known = ", ".join(sorted(self.contexts))
            raise _UnknownContextError(f"has no context {name!r}; there are: {known or 'none'}")
        chosen = name or self.current
        if not chosen:
            raise ConfigError("it has no current-context; select a context")
        context = _named(self.contexts, chosen, "context")
        user = context.text("user")
        return _rest_config(
            _named(self.clusters, context.text("cluster"), "cluster"),
            _named(self.users, user, "user") if user else _Entry({}, "user", Path()),
        )


def _named(entries: Mapping[str, _Entry], name: str, kind: str) -> _Entry:
    if name not in entries:
        raise ConfigError(f"it has no {kind} {name!r}; there are: {', '.join(sorted(entries)) or 'none'}")
    return entries[name]


def _merge(files: list[Path]) -> _Merged:
    sections: dict[str, dict[str, _Entry]] = {section: {} for section in _SECTIONS}
    current = ""
    for file in files:
        root = _load(file)
        current = current or root.text("current-context")
        for section, field in _SECTIONS.items():
            sections[section] = {**_section(root, section, field), **sections[section]}
    return _Merged(sections["clusters"], sections["users"], sections["contexts"], current)


def _load(file: Path) -> _Entry:
    try:
        root = load_document(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (ManifestError, UnicodeDecodeError):
        raise ConfigError(f"{file} does not contain one YAML map") from None
    return _Entry(root, "", file.absolute().parent)


def _section(root: _Entry, section: str, field: str) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for item in root.items(section):
        name = item.text("name")
        if name in entries:
            raise ConfigError(f"{section}: there are two entries with the name {name!r}")
        entries[name] = item.mapping(field) or _Entry({}, item.path, root.folder)
    return entries


def _rest_config(cluster: _Entry, user: _Entry) -> RestConfig:
    if not cluster.text("server"):
        raise ConfigError(f"{cluster.path}.server: required value")
    provider = user.mapping("auth-provider")
    proxy = cluster.text("proxy-url")
    return RestConfig(
        host=cluster.text("server").rstrip("/"),
        tls=_tls(cluster, user),
        bearer_token=user.text("token"),
        bearer_token_file=user.file("tokenFile"),
        username=user.text("username"),
        password=user.text("password"),
        exec=_exec(cluster, user),
        auth_provider=provider.value if provider else None,
        impersonate=_impersonation(user),
        proxy_url=proxy_address(proxy, f"{cluster.path}.proxy-url") if proxy else "",
    )


def _tls(cluster: _Entry, user: _Entry) -> TlsConfig:
    insecure = cluster.flag("insecure-skip-tls-verify")
    return TlsConfig(
        ca_file=cluster.file("certificate-authority"),
        ca_data=cluster.data("certificate-authority-data"),
        cert_file=user.file("client-certificate"),
        cert_data=user.data("client-certificate-data"),
        key_file=user.file("client-key"),
        key_data=user.data("client-key-data"),
        insecure=insecure,
        server_name=cluster.text("tls-server-name"),
    )


def _impersonation(user: _Entry) -> Impersonation | None:
    extra = user.mapping("as-user-extra")
    values = {key: extra.texts(key) for key in extra.value} if extra else {}
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    if not (name or uid or groups or values):
        return None
    if not name:
        raise ConfigError(f"{user.path}: as-uid, as-groups and as-user-extra need the user; set as")
    return Impersonation(name, uid, groups, values)


def _exec(cluster: _Entry, user: _Entry) -> ExecConfig | None:
    plugin = user.mapping("exec")
    if plugin is None:
        return None
    command = plugin.text("command")
    return ExecConfig(
        command=plugin.file("command") if "/" in command else command,
        api_version=plugin.text("apiVersion"),
        args=plugin.texts("args"),
        env={item.text("name"): item.text("value") for item in plugin.items("env")},
        install_hint=plugin.text("installHint"),
        interactive_mode=cast("InteractiveMode", plugin.text("interactiveMode") or "IfAvailable"),
        cluster=_exec_cluster(cluster) if plugin.flag("provideClusterInfo") else None,
    )


def _exec_cluster(cluster: _Entry) -> dict[str, Any]:
    """Return the `spec.cluster` of an `ExecCredential`."""
    authority = cluster.data("certificate-authority-data")
    file = cluster.file("certificate-authority")
    if file and not authority:
        try:
            authority = Path(file).read_bytes()
        except OSError as error:
            raise ConfigError(f"{cluster.path}.certificate-authority: {error}") from error
    fields = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "disable-compression": cluster.flag("disable-compression"),
        "config": next(
            (
                item.value.get("extension")
                for item in cluster.items("extensions")
                if item.text("name") == _EXEC_EXTENSION
            ),
            None,
        ),
    }
    return {name: value for name, value in fields.items() if value}


_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_config(
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    account: Path = _SERVICE_ACCOUNT,
) -> RestConfig:
    """Read the settings of the configured cluster.

    Args:
        kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the service account of the pod, else `~/.kube/config`.
        context: The context of the kubeconfig to use; None takes the current one. A service account has no contexts.
    """
    paths = os.fspath(kubeconfig) if kubeconfig is not None else environ.get("KUBECONFIG", "")
    if not paths and context is None and "KUBERNETES_SERVICE_HOST" in environ:
        return _service_account(environ, account)
    return read_kubeconfig(paths or _DEFAULT_KUBECONFIG, context)


def _service_account(environ: Mapping[str, str], account: Path) -> RestConfig:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "")
    token, authorities = account / "token", account / "ca.crt"
    missing = [str(file) for file in (token, authorities) if not file.is_file()]
    problem = f"no {' and no '.join(missing)}" if missing else "" if host and port else "no address in the environment"
    if problem:
        raise ConfigError(f"the service account of this pod cannot be used: {problem}")
    return RestConfig(
        host=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        tls=TlsConfig(ca_file=str(authorities)),
        bearer_token_file=str(token),
    )
