"""Settings of a connection to an API server, as `rest.Config` of client-go.

They are values: files that they name are read by the connection, again and again, so rotated credentials are used
without a restart. No representation contains a secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from ocf.cluster.impersonation import Impersonation
from ocf.errors import ConfigError

__all__ = ["ExecConfig", "Impersonation", "RestConfig", "TlsConfig"]

InteractiveMode: TypeAlias = Literal["Never", "IfAvailable", "Always"]

_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MAX_PORT: Final = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """TLS of a connection. Data precedes the file of the same purpose.

    Args:
        ca_file: Certificates of the authorities, PEM; without any, those of the operating system.
        ca_data: The same as data.
        cert_file: Client certificate, PEM.
        cert_data: The same as data.
        key_file: Private key of the client certificate, PEM, not encrypted.
        key_data: The same as data.
        insecure: Whether any server certificate is accepted.
        server_name: Name that the server certificate must have, also sent as SNI; empty for the host of the address.

    Raises:
        ConfigError: If a certificate has no key or a key no certificate, or authorities are given with `insecure`.
    """

    ca_file: str = ""
    ca_data: bytes = b""
    cert_file: str = ""
    cert_data: bytes = b""
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    insecure: bool = False
    server_name: str = ""

    def __post_init__(self) -> None:
        if self.has_certificate != bool(self.key_file or self.key_data):
            raise ConfigError("a client certificate needs its key, and a key its certificate; set both or neither")
        if self.insecure and (self.ca_file or self.ca_data):
            raise ConfigError("certificate authorities have no effect if no server certificate is checked; unset one")

    @property
    def has_certificate(self) -> bool:
        """Whether there is a client certificate."""
        return bool(self.cert_file or self.cert_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecConfig:
    """A credential plugin (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins).

    Args:
        command: The program: a path, or a name that is searched in `PATH`.
        api_version: Version of the `ExecCredential`, `client.authentication.k8s.io/v1` or `v1beta1`.
        args: Arguments of the program.
        env: Environment variables of the program, beside those of this process.
        install_hint: Text for the user if the program does not exist.
        interactive_mode: Whether the program uses standard input.
        cluster: The cluster, for a plugin that needs it; None does not pass it on.

    Raises:
        ConfigError: If there is no command, or a value is not one of those allowed.
    """

    command: str
    api_version: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.command:
            raise ConfigError("exec: command: required value")
        if self.api_version not in _EXEC_VERSIONS:
            raise ConfigError(f"exec: apiVersion: {self.api_version!r} is not one of {', '.join(_EXEC_VERSIONS)}")
        if self.interactive_mode not in ("Never", "IfAvailable", "Always"):
            raise ConfigError(
                f"exec: interactiveMode: {self.interactive_mode!r} is not one of Never, IfAvailable, Always"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """Address, TLS and credentials of a connection to an API server.

    The first that is set is used: a bearer token, user name and password, a client certificate, an auth provider, a
    credential plugin. A client certificate is sent with a token, too.

    Args:
        host: Address of the server, with an optional path: `https://10.0.0.1:6443`.
        tls: TLS, for an address with `https`.
        bearer_token: Token that authenticates each request.
        bearer_token_file: File with a bearer token, read again each minute; precedes `bearer_token`.
        username: User name for basic authentication.
        password: Password for basic authentication.
        exec: Credential plugin.
        auth_provider: The `auth-provider` of a kubeconfig; only those that the official client knows.
        impersonate: The user as whom requests are made; None is the user who authenticates.
        proxy_url: HTTP proxy; empty takes the one of the environment.

    Raises:
        ConfigError: If the address is not one of HTTP, or there is both a token and a user name.

    Example:
        >>> RestConfig(host="https://10.0.0.1:6443", bearer_token="s3cr3t", impersonate=Impersonation("jane")).host
        'https://10.0.0.1:6443'
    """

    host: str
    tls: TlsConfig = field(default_factory=TlsConfig)
    bearer_token: str = field(default="", repr=False)
    bearer_token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecConfig | None = None
    auth_provider: Mapping[str, Any] | None = field(default=None, repr=False)
    impersonate: Impersonation | None = None
    proxy_url: str = ""

    def __post_init__(self) -> None:
        if not _is_http(self.host):
            raise ConfigError(f"server: {self.host!r} is not an address such as https://10.0.0.1:6443")
        if (self.bearer_token or self.bearer_token_file) and (self.username or self.password):
            raise ConfigError("there are both a token and a user name with password; set one of them")


def _is_http(host: str) -> bool:
    try:
        parts = urlsplit(host)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) < _MAX_PORT
    except ValueError:
        return False
