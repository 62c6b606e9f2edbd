"""Assignability of types, with the types that type variables stand for.

Source: https://github.com/google/cel-go/blob/master/checker/types.go. A type variable is that of the items of an empty
list, of an optional value without a value, or of a parameter of a function; each use of it can determine more of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ocf_server.cel.types import ANY, CIDR, DURATION, IP, NULL, OPTIONAL, TIMESTAMP, TYPE, CelType, variable

__all__ = ["Bindings"]


@dataclass(slots=True)
class Bindings:
    """The types that the type variables of one expression stand for."""

    known: dict[str, CelType] = field(default_factory=dict)
    variables: int = 0

    def fresh(self) -> CelType:
        """Return a new type variable."""
        self.variables += 1
        return variable(f"_var{self.variables - 1}")

    def instantiated(self, kinds: Sequence[CelType]) -> list[CelType]:
        """Return the types of a signature with type variables of their own."""
        own: dict[str, CelType] = {}
        for kind in kinds:
            for name in _names(kind):
                if name not in own:
                    own[name] = self.fresh()
        return [_replaced(kind, own) for kind in kinds] if own else list(kinds)

    def resolved(self, kind: CelType, *, final: bool = False) -> CelType:
        """Return a type without the type variables that stand for a known type.

        Args:
            final: Whether the others become `dyn`, as after the check of the whole expression.
        """
        if kind.free:
            found = self.known.get(kind.name)
            if found is not None:
                return self.resolved(found, final=final)
            return ANY if final else kind
        if not kind.of:
            return kind
        return CelType(kind.name, tuple(self.resolved(below, final=final) for below in kind.of), kind.fields)

    def assign(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        """Return whether some types are assignable to others; if they are, remember the types of their type variables.

        Example:
            >>> from ocf_server.cel.types import INT, list_of
            >>> bindings = Bindings()
            >>> empty = list_of(bindings.fresh())
            >>> bindings.assign([empty], [list_of(INT)]), str(bindings.resolved(empty))
            (True, 'list(int)')
        """
        before = dict(self.known)
        if len(given) == len(wanted) and all(map(self._is_assignable, given, wanted)):
            return True
        self.known = before
        return False

    def joined(self, left: CelType, right: CelType) -> CelType | None:
        """Return the more general of two types; None if one is not assignable to the other."""
        return _more_general(left, right) if self.assign([left], [right]) else None

    def _is_assignable(self, one: CelType, other: CelType) -> bool:
        if other.free:
            valid, has_type = self._substitutes(one, other)
            if valid or has_type:
                return valid
        if one.free:
            return self._substitutes(other, one)[0]
        if one.is_open or other.is_open or one.name == other.name == TYPE.name:
            return True
        if NULL in (one, other):
            return _may_be_null(other if one == NULL else one)
        same = one.name == other.name and len(one.of) == len(other.of)
        return same and all(map(self._is_assignable, one.of, other.of))

    def _substitutes(self, kind: CelType, free: CelType) -> tuple[bool, bool]:
        """Return whether a type variable can stand for a type, and whether it stands for one already."""
        if kind == free:
            return True, True
        known = self.known.get(free.name)
        if known is None:
            if self._contains(kind, free):
                return False, False
            self.known[free.name] = kind
            return True, False
        if kind == known:
            return True, True
        if not self._is_assignable(kind, known):
            return False, True
        general = _more_general(kind, known)
        if not self._contains(general, free):
            self.known[free.name] = general
        return True, True

    def _contains(self, kind: CelType, free: CelType) -> bool:
        if kind == free:
            return True
        if kind.free:
            known = self.known.get(kind.name)
            return known is not None and self._contains(known, free)
        return any(self._contains(below, free) for below in kind.of)


def _may_be_null(kind: CelType) -> bool:
    return kind.is_object or kind.name == OPTIONAL or kind in (CIDR, DURATION, IP, NULL, TIMESTAMP)


def _more_general(left: CelType, right: CelType) -> CelType:
    """Return the more general of two types of which one is assignable to the other."""
    return left if _is_less_specific(left, right) else right


def _is_less_specific(left: CelType, right: CelType) -> bool:
    if left == ANY or left.free:
        return True
    if right == ANY or right.free or left.name != right.name:
        return False
    if left.name == TYPE.name:
        return True
    return len(left.of) == len(right.of) and all(map(_is_less_specific, left.of, right.of))


def _names(kind: CelType) -> list[str]:
    return [kind.name] if kind.free else [name for below in kind.of for name in _names(below)]


def _replaced(kind: CelType, own: dict[str, CelType]) -> CelType:
    if kind.free:
        return own[kind.name]
    return CelType(kind.name, tuple(_replaced(below, own) for below in kind.of), kind.fields) if kind.of else kind
