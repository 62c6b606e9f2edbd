"""Adoption: whether a component may take an object over that it did not create.

An object is the component's own if it refers to the owner, or a component of the owner, or of an earlier owner of the
same name, has applied it. Any other one of the same name was made by a user or another controller. To adopt it means to
change it, and to delete it with its owner.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from ocf.component.model.ownership import CREATOR, FIELDS
from ocf.component.model.resource_options import Adoption
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.manifest import PREFIX
from ocf.objects.name_validation import label_value
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.apply.takeover import FormerWriters
    from ocf.component.context import ReconcileContext
    from ocf.component.model.ownership import Owner
    from ocf.concepts.recorder import Event

__all__ = ["ADOPTABLE_BY", "adoption_event", "adoption_label", "adoption_problem", "is_own"]

ADOPTABLE_BY: Final = f"{PREFIX}/adoptable-by"
"""Label of an object that names the owner whose components may adopt it."""

_LONGEST_VALUE: Final = 63


def is_own(live: Manifest, component: str, context: ReconcileContext, former: FormerWriters) -> bool:
    """Return whether an object belongs to the owner already, or belonged to an earlier owner of the same name.

    One in which a component has only set single fields does not.

    Args:
        former: The former writers of the object.
    """
    owner, components = context.owned_by, {component, *context.claims.components}
    if owner.references(live) or owner.earlier_uids(live):
        return True
    if former.earlier and not former.is_shared:
        return True
    # A create whose fields have not become ours.
    if any(manager.name == owner.field_manager(component, CREATOR) for manager in former.moved):
        return True
    writers = [owner.component_of(name, components) for name in ManagedFields.of(live).appliers]
    return any(of is not None and not of[0].endswith(f"/{FIELDS}") for of in writers)


def adoption_label(key: ObjectKey) -> str:
    """Return the value of the label with which a user allows the components of an owner to adopt an object.

    Args:
        key: The owner.

    Returns:
        Kind and group, namespace and name; a hash of these if they are not the value of a label, because they have more
        than 63 characters or because of the name.

    Example:
        >>> adoption_label(ObjectKey("example.com/v1", "Shop", "corner", "town"))
        'Shop.example.com_town_corner'
    """
    kind = ".".join(filter(None, (key.kind, key.group)))
    # No group, namespace or name has the separator, so no two owners have the same value.
    text = "_".join(filter(None, (kind, key.namespace, key.name)))
    return hashlib.sha256(text.encode()).hexdigest()[:_LONGEST_VALUE] if label_value(text) else text


def adoption_problem(live: Manifest | None, owner: ObjectKey, adoption: Adoption) -> str:
    """Return why an object that is not the component's own must not be adopted; empty if it may be, or for None.

    Example:
        >>> live = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "town"}}
        >>> shop = ObjectKey("example.com/v1", "Shop", "corner", "town")
        >>> adoption_problem(live, shop, Adoption.ALWAYS)
        ''
        >>> print(adoption_problem(live, shop, Adoption.NEVER))
        v1/Secret/town/key exists, and was not created for Shop town/corner: delete it, or rename the resource
    """
    if live is None or adoption is Adoption.ALWAYS:
        return ""
    wanted, found = adoption_label(owner), get_field(live, ("metadata", "labels", ADOPTABLE_BY))
    if adoption is Adoption.LABELLED and found == wanted:
        return ""
    problem = f"{ObjectKey.of(live)} exists, and was not created for {_name(owner)}"
    if adoption is Adoption.NEVER:
        return f"{problem}: delete it, or rename the resource"
    seen = f", which is {found!r}" if found is not None else ""
    return (
        f"{problem}: to let it be adopted, set its label {ADOPTABLE_BY} to {wanted!r}{seen}; or delete it, or rename "
        "the resource"
    )


def adoption_event(owner: Owner, live: Manifest, *, unowned: bool) -> Event:
    """Return the event about the adoption of an object."""
    key = ObjectKey.of(live)
    writers = sorted({each.manager.name for each in ManagedFields.of(live).entries if not each.manager.subresource})
    by = f", which {', '.join(writers)} had written" if writers else ""
    then = "it stays when its owner is deleted" if unowned else "it is deleted with its owner"
    return owner.event(key, "ResourceAdopted", f"Adopted {owner.named(key)}{by}; {then}", action="Adopt")


def _name(owner: ObjectKey) -> str:
    return " ".join((owner.kind, "/".join(filter(None, (owner.namespace, owner.name)))))
