"""TLS of the HTTP server: a certificate authority that is made for one server, and its serving certificate."""

import ssl
from dataclasses import dataclass

from ocf.errors import ConfigError

__all__ = ["ServingTls"]


@dataclass(frozen=True, slots=True)
class ServingTls:
    """The TLS configuration of a server.

    Args:
        authority: The certificate of the authority that issued it, as PEM.
    """

    context: ssl.SSLContext
    authority: bytes

    @classmethod
    def issue(cls, *hosts: str) -> "ServingTls":
        """Make an authority, and a serving certificate for some hosts; both are valid for years and kept in memory.

        Raises:
            ConfigError: If trustme, which issues certificates, is not installed.
        """
        try:
            import trustme
        except ImportError as error:
            raise ConfigError("serving with TLS needs trustme: install it with pip install 'ocf[testing]'") from error
        authority = trustme.CA(organization_name="ocf")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*hosts).configure_cert(context)
        return cls(context, authority.cert_pem.bytes())
