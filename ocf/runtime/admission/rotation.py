"""When certificates are renewed, and which one a server shows: decisions only, nothing is written here.

A renewal has two steps. First the new pair is put next to the current one, and its authority into the bundle that API
servers trust. Only when every configuration has that bundle, and has had it for a while, the new pair becomes the
current one. The old authority stays in the bundle until its certificate has expired: whoever still shows it is trusted.

A server goes by what it sees, too: it never leaves a pair that works for one that is not trusted yet, whatever is in
the Secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.runtime.admission.key_pairs import KeyPair, authorities, expires, issue

__all__ = ["Renewal", "RotationPolicy", "StoredCertificates", "Trust", "offered", "plan"]

_LEFT: Final = 1 / 6  # of its time; pairs of ours are valid from long before they were made, so of theirs a third
_MOST_RETIRED: Final = 8
_NEXT: Final = ("next.crt", "next.key")
_CURRENT: Final = ("tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Renewal:
    """When certificates are renewed.

    Args:
        lifetime: How long a certificate is valid; after two thirds of it, it is renewed.
        settling: How long a new authority must have been in all configurations before its certificate is shown: by far
            longer than an API server needs to hear of a change.
        interval: How often to look. That costs one read of the Secret and of each configuration.
    """

    lifetime: timedelta = timedelta(days=90)
    settling: timedelta = timedelta(minutes=1)
    interval: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """How certificates are made.

    Args:
        hosts: The names and addresses that they are for.
        lifetime: How long they are valid; after two thirds of it they are renewed.
    """

    hosts: tuple[str, ...]
    lifetime: timedelta


@dataclass(frozen=True, slots=True)
class Trust:
    """What API servers trust.

    Args:
        bundles: The authorities in each configuration; nothing where there is none, so nobody who could mistrust.
        settled: The authorities that have been in all of them for a while.
    """

    bundles: Sequence[frozenset[bytes]] = ()
    settled: frozenset[bytes] = frozenset()

    def holds(self, pair: KeyPair) -> bool:
        """Tell whether a pair is trusted by every configuration."""
        return all(pair.authority in bundle for bundle in self.bundles)

    def has_held(self, pair: KeyPair) -> bool:
        """Tell whether a pair has been trusted for a while."""
        return self.holds(pair) and (not self.bundles or pair.authority in self.settled)


@dataclass(frozen=True, slots=True)
class StoredCertificates:
    """What replicas share.

    Args:
        current: The pair to show.
        next: The pair that follows, while its authority is not trusted yet; None outside of a renewal.
        retired: Authorities of earlier pairs that some replica may still show.
    """

    current: KeyPair
    next: KeyPair | None = None
    retired: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> StoredCertificates | None:
        """Read the data of a Secret.

        Args:
            data: The field `data`, texts in base64.

        Returns:
            What is kept there; None if it cannot be read in full.
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
        """The authorities to be trusted."""
        following = [self.next.authority] if self.next else []
        return b"".join(dict.fromkeys([self.current.authority, *following, *self.retired]))


def plan(
    kept: StoredCertificates | None, shown: KeyPair | None, trust: Trust, now: datetime, policy: RotationPolicy
) -> StoredCertificates:
    """Decide what is to be kept.

    Args:
        kept: What is kept; None if nothing is, or nothing that can be read.
        shown: The pair that this replica shows; None at its start.
        trust: What API servers trust.
        now: The instant.
        policy: How certificates are made.

    Returns:
        What is to be kept; equal to `kept` if that is as it should be.
    """
    if kept is None:
        kept = _anew(shown, trust, now, policy)
    if kept.next is not None and kept.next.is_usable(now) and _takes_over(kept, kept.next, trust, now):
        kept = StoredCertificates(kept.next, None, (kept.current.authority, *kept.retired))
    if _is_due(kept.current, now, policy) and (kept.next is None or _is_due(kept.next, now, policy)):
        kept = replace(kept, next=issue(policy.hosts, now, policy.lifetime))
    return replace(kept, retired=_retired(kept, shown, now))


def offered(kept: StoredCertificates, shown: KeyPair | None, trust: Trust, now: datetime) -> KeyPair:
    """Choose the pair that a replica shows: what is kept, unless what it shows is trusted and that is not yet.

    Args:
        kept: What is kept.
        shown: The pair that the replica shows; None at its start.
        trust: What API servers trust.
        now: The instant.
    """
    if shown is None or shown == kept.current:
        return kept.current
    still_good = not shown.has_expired(now) and trust.holds(shown)
    if still_good and (kept.current.has_expired(now) or not trust.has_held(kept.current)):
        return shown
    return kept.current


def _pair(data: Mapping[str, Any], names: tuple[str, str]) -> KeyPair:
    pair = KeyPair.read(*(base64.b64decode(data[name], validate=True) for name in names))
    if not pair.is_signed_by_its_authority():
        raise ConfigError(f"{names[0]} does not end in the authority that it comes from")
    return pair


def _anew(shown: KeyPair | None, trust: Trust, now: datetime, policy: RotationPolicy) -> StoredCertificates:
    """Begin again: with what is shown while that works, and a new pair to follow it."""
    fresh = issue(policy.hosts, now, policy.lifetime)
    # Other replicas may show pairs of which nothing is left but the authority in the bundle.
    known = tuple(sorted(frozenset().union(*trust.bundles)))
    if shown is not None and not shown.has_expired(now) and trust.holds(shown):
        return StoredCertificates(shown, fresh, known)
    return StoredCertificates(fresh, None, known)


def _takes_over(kept: StoredCertificates, upcoming: KeyPair, trust: Trust, now: datetime) -> bool:
    # Where the current one has expired, nothing is to be lost; not so where it is not valid yet, for a clock set back.
    return trust.has_held(upcoming) or (kept.current.has_expired(now) and trust.holds(upcoming))


def _is_due(pair: KeyPair, now: datetime, policy: RotationPolicy) -> bool:
    """Tell whether a pair must be followed by another one."""
    renewed = pair.not_after - (pair.not_after - pair.not_before) * _LEFT
    return not pair.not_before <= now < renewed or pair.hosts != tuple(sorted(policy.hosts))


def _retired(kept: StoredCertificates, shown: KeyPair | None, now: datetime) -> tuple[bytes, ...]:
    """Return the authorities of earlier pairs that may still be shown somewhere, and of the one that is shown here."""
    named = {kept.current.authority, *([kept.next.authority] if kept.next else [])}
    ours = [shown.authority] if shown is not None and not shown.has_expired(now) else []
    found = dict.fromkeys([*ours, *kept.retired])
    return tuple(one for one in found if one not in named and expires(one) > now)[:_MOST_RETIRED]
