"""What rules may use on a real server and not here: it is refused, for a rule that is only half understood misleads."""

from typing import Final

from ocf.embedded.api.status_errors import unsupported
from ocf.errors import ApiError

__all__ = ["LACKING", "lacking", "without_library"]

_INSTEAD: Final = "write the rule without, or test it against a real API server"

LACKING: Final = frozenset(
    {
        *("asApproximateFloat", "asInteger", "bind", "cidr", "containsCIDR", "containsIP", "first", "flatten"),
        *("format.named", "getEscapedPath", "getHost", "getHostname", "getPort", "getQuery", "getScheme", "ip"),
        *("ip.isCanonical", "isCIDR", "isInteger", "isIP", "isSemver", "isURL", "last"),
        *("lists.range", "masked", "optFlatMap", "optMap", "optional.none", "optional.of", "optional.ofNonZeroValue"),
        *("orValue", "prefixLength", "semver", "sortBy", "strings.quote", "transformList", "transformMap"),
        *("transformMapEntry", "uint", "url", "validate"),
    }
)
"""Functions of a real server's that rules cannot use here."""


def lacking(what: str) -> ApiError:
    """Refuse a rule that uses something which a real server knows."""
    return unsupported(f"evaluate {what} in x-kubernetes-validations", _INSTEAD)


def without_library() -> ApiError:
    """Refuse a rule as the library that reads it is not there."""
    return unsupported("evaluate x-kubernetes-validations", "install ocf[cel], or leave the rules out")
