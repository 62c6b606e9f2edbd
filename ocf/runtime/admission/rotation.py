"""Rotation of certificates: decides when they are renewed and which one a replica presents; writes nothing.

A renewal has two steps. First the new pair is stored next to the current one, and its CA is added to the bundle that
API servers trust. Once every configuration has had that bundle for some time, the new pair becomes the current one. The
old CA stays in the bundle until it expires, so that replicas which still present the old certificate are trusted.

A replica also checks the configurations itself: it never replaces a trusted pair by one that is not trusted yet,
independent of the Secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.runtime.admission.key_pairs import KeyPair, authorities, expiry_of, issue

__all__ = ["Renewal", "RotationPolicy", "StoredCertificates", "Trust", "choose_pair", "plan"]

# Remaining share of the validity at which a pair is renewed. Issued pairs are also valid for their lifetime before they
# were issued, so that is a third of their lifetime.
_LEFT: Final = 1 / 6
_MOST_RETIRED: Final = 8
_NEXT: Final = ("next.crt", "next.key")
_CURRENT: Final = ("tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Renewal:
    """Timing of the renewal of certificates.

    Args:
        lifetime: How long a certificate is valid; it is renewed after two thirds.
        propagation: How long a new CA must have been in all configurations before its certificate is presented: much
            longer than API servers need to observe a change.
        interval: Interval between two checks, each of which reads the Secret and every configuration.
    """

    lifetime: timedelta = timedelta(days=90)
    propagation: timedelta = timedelta(minutes=1)
    interval: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """Settings of issued certificates.

    Args:
        lifetime: How long they are valid; they are renewed after two thirds.
    """

    hosts: tuple[str, ...]
    lifetime: timedelta


@dataclass(frozen=True, slots=True)
class Trust:
    """The CAs that API servers trust.

    Args:
        bundles: The CAs of each configuration; empty without configurations, when no API server checks a certificate.
        established: The CAs that have been in all bundles for `Renewal.propagation`.
    """

    bundles: Sequence[frozenset[bytes]] = ()
    established: frozenset[bytes] = frozenset()

    def trusts(self, pair: KeyPair) -> bool:
        """Return whether every configuration trusts a pair."""
        return all(pair.authority in bundle for bundle in self.bundles)

    def is_established(self, pair: KeyPair) -> bool:
        """Return whether every configuration has trusted a pair for `Renewal.propagation`."""
        return self.trusts(pair) and (not self.bundles or pair.authority in self.established)


@dataclass(frozen=True, slots=True)
class StoredCertificates:
    """The certificates that the replicas share.

    Args:
        next: The pair that follows, while its CA is not trusted yet; None outside of a renewal.
    """

    current: KeyPair
    next: KeyPair | None = None
    retired: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> StoredCertificates | None:
        """Read the data of a Secret.

        Args:
            data: The field `data`, with values in base64.

        Returns:
            The certificates; None if any value is missing or cannot be read.
        """
        try:
            current = _pair(data, _CURRENT)
            upcoming = _pair(data, _NEXT) if any(name in data for name in _NEXT) else None
            bundle = base64.b64decode(data.get("ca.crt", ""), validate=True)
        except (ConfigError, binascii.Error, KeyError, TypeError, ValueError):
            return None
        named = {current.authority, *([upcoming.authority] if upcoming else [])}
        return cls(current, upcoming, tuple(found for found in authorities(bundle) if found not in named))

    def data(self) -> dict[str, str]:
        """Return the data of the Secret."""
        pairs = {_CURRENT: self.current, **({_NEXT: self.next} if self.next else {})}
        texts = {
            name: text
            for names, pair in pairs.items()
            for name, text in zip(names, (pair.chain, pair.key), strict=True)
        }
        return {
            name: base64.b64encode(text).decode() for name, text in sorted({**texts, "ca.crt": self.bundle}.items())
        }

    @property
    def bundle(self) -> bytes:
        """The CAs to be trusted."""
        following = [self.next.authority] if self.next else []
        return b"".join(dict.fromkeys([self.current.authority, *following, *self.retired]))


def plan(
    kept: StoredCertificates | None, shown: KeyPair | None, trust: Trust, now: datetime, policy: RotationPolicy
) -> StoredCertificates:
    """Return the certificates that are to be stored.

    Args:
        kept: The stored certificates; None if there are none, or if they cannot be read.
        shown: The pair that this replica presents; None at its start.

    Returns:
        The certificates to store; equal to `kept` if nothing has to change.
    """
    if kept is None:
        kept = _start_over(shown, trust, now, policy)
    if kept.next is not None and kept.next.is_usable(now) and _can_replace(kept, kept.next, trust, now):
        kept = StoredCertificates(kept.next, None, (kept.current.authority, *kept.retired))
    if _is_due(kept.current, now, policy) and (kept.next is None or _is_due(kept.next, now, policy)):
        kept = replace(kept, next=issue(policy.hosts, now, policy.lifetime))
    return replace(kept, retired=_retired(kept, shown, now))


def choose_pair(kept: StoredCertificates, shown: KeyPair | None, trust: Trust, now: datetime) -> KeyPair:
    """Return the pair that a replica presents: the stored one, unless only the present one is trusted yet.

    Args:
        shown: The pair that the replica presents; None at its start.
    """
    if shown is None or shown == kept.current:
        return kept.current
    still_good = not shown.has_expired(now) and trust.trusts(shown)
    if still_good and (kept.current.has_expired(now) or not trust.is_established(kept.current)):
        return shown
    return kept.current


def _pair(data: Mapping[str, Any], names: tuple[str, str]) -> KeyPair:
    pair = KeyPair.read(*(base64.b64decode(data[name], validate=True) for name in names))
    if not pair.is_signed_by_its_authority():
        raise ConfigError(f"{names[0]}: the certificate chain does not end at the CA that issued it")
    return pair


def _start_over(shown: KeyPair | None, trust: Trust, now: datetime, policy: RotationPolicy) -> StoredCertificates:
    """Return new certificates; the presented pair stays the current one while it is trusted."""
    fresh = issue(policy.hosts, now, policy.lifetime)
    # Other replicas may present pairs whose only trace is their CA in the bundle.
    known = tuple(sorted(frozenset().union(*trust.bundles)))
    if shown is not None and not shown.has_expired(now) and trust.trusts(shown):
        return StoredCertificates(shown, fresh, known)
    return StoredCertificates(fresh, None, known)


def _can_replace(kept: StoredCertificates, upcoming: KeyPair, trust: Trust, now: datetime) -> bool:
    # An expired pair is replaced at once; one that is not valid yet, because the clock was set back, is not.
    return trust.is_established(upcoming) or (kept.current.has_expired(now) and trust.trusts(upcoming))


def _is_due(pair: KeyPair, now: datetime, policy: RotationPolicy) -> bool:
    """Return whether a pair must be renewed."""
    renewed = pair.not_after - (pair.not_after - pair.not_before) * _LEFT
    return not pair.not_before <= now < renewed or pair.hosts != tuple(sorted(policy.hosts))


def _retired(kept: StoredCertificates, shown: KeyPair | None, now: datetime) -> tuple[bytes, ...]:
    """Return the CAs of earlier pairs that other replicas may present, and of the pair that this one presents."""
    named = {kept.current.authority, *([kept.next.authority] if kept.next else [])}
    ours = [shown.authority] if shown is not None and not shown.has_expired(now) else []
    found = dict.fromkeys([*ours, *kept.retired])
    return tuple(one for one in found if one not in named and expiry_of(one) > now)[:_MOST_RETIRED]
