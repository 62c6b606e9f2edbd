"""Fields that edits clear: those of an edited part that are set to None.

Models know which of their fields were set. What the baseline does not declare was never set, so a field that is set and
None was set to None by an edit. Only the fields of the part that an editor edits count, and those of the models below
it that the editor names. A part that an edit replaces by a model that was built elsewhere clears nothing, because
`from_dict` of the client sets all fields, those that are not given to None.

The metadata has maps that many writers share. Removing the last label of ours clears no label of another writer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ocf.objects.model_fields import api_names
from ocf.objects.owned_paths import OwnedPath

__all__ = ["EditedPart", "take_cleared"]


class EditedPart(NamedTuple):
    """A part of an object that a category of edits changes.

    Args:
        model: The part.
        place: Where `managedFields` lists it.
        below: Attributes of the models below it that its editor changes, too.
    """

    model: Any
    place: OwnedPath
    below: tuple[str, ...] = ()


def take_cleared(before: Iterable[EditedPart], after: Iterable[EditedPart]) -> tuple[OwnedPath, ...]:
    """Return the places of the fields that edits have set to None, of the parts before and after them.

    A model below an edited part of which nothing else is left is unset, so that no empty object is written for it.
    """
    known = {id(part.model) for part in before}
    found: dict[OwnedPath, None] = {}
    for part in after:
        if id(part.model) in known:
            found |= dict.fromkeys(_cleared(part.model, part.place, part.below))
    return tuple(found)


def _cleared(part: Any, place: OwnedPath, below: Iterable[str]) -> list[OwnedPath]:
    # Lists instead of generators, and no property of pydantic: this runs for each rendered object.
    given = getattr(part, "__pydantic_fields_set__", ())
    names = api_names(part.__class__)
    found: list[OwnedPath] = []
    for attribute in below:
        inner: Any = getattr(part, attribute, None)
        fields = api_names(inner.__class__)
        if not fields:
            continue
        cleared = _cleared(inner, (*place, f"f:{names[attribute]}"), fields)
        found += cleared
        if cleared and all(value is None for _, value in inner):
            setattr(part, attribute, None)
            part.model_fields_set.discard(attribute)
    unset = [attribute for attribute in given if getattr(part, attribute) is None]
    found += [(*place, f"f:{names.get(attribute, attribute)}") for attribute in sorted(unset)]
    return found
