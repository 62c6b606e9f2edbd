"""Checks of what `ocf nodegroups try` reads, before its run: kinds, annotations, instance types and datacenters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ocf.cli.validate.places import find_place
from ocf.objects.manifest import PREFIX, split_api_version
from ocf.objects.suggestions import nearest

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.nodegroups import InstanceType
    from ocf.objects import Manifest

__all__ = ["annotation_problems", "kind_problem", "place_of", "type_problems", "unpriced_of"]


def place_of(document: Document, path: str) -> str:
    """Return file, line, object and path of a field, for messages."""
    manifest = document.manifest or {}
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    line, object_ = find_place(document, path).line, f"{manifest.get('kind')} {name or 'without a name'}"
    return f"{document.file}:{line}: {object_}{path and f': {path}'}"


def kind_problem(document: Document, taking_part: Collection[tuple[str, str]]) -> str:
    """Return why an object is probably meant to be of a kind that takes part; empty if it is not.

    It would be left out like an object of a kind that has no part in a trial.
    """
    from ocf.controllers.hpa.modes import OWN
    from ocf.controllers.nodegroup.model import GROUP
    from ocf.schema.builtin import builtin_kinds

    manifest = document.manifest or {}
    api_version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    group, version = split_api_version(api_version)
    ours = {(GROUP, "v1alpha1", each) for each in ("NodeGroup", "VPSieNode", OWN[1])}
    known = ours if group == GROUP else builtin_kinds(group)
    if (group, version, kind) in known:
        return ""
    same = [each for each, name in taking_part if name == kind and split_api_version(each)[0] == group]
    if same:
        return f"{place_of(document, 'apiVersion')}: must be {same[0]}, got {api_version!r}"
    names = {name for _, _, name in known}
    found = nearest(kind, sorted(names)) if kind not in names else ""
    if found and (group == GROUP or any(name == found for _, name in taking_part)):
        return f'{place_of(document, "kind")}: unknown kind {kind!r} of {api_version}, did you mean "{found}"?'
    if group == GROUP and kind not in names:
        return f"{place_of(document, 'kind')}: must be one of {', '.join(sorted(names))}, got {kind!r}"
    return ""


def annotation_problems(document: Document) -> Iterator[str]:
    """Yield annotations `ocf.dev/...` that are unknown, have an invalid value, or are not where they count."""
    from ocf_server.controllers.kubelet import EXIT_CODE, FINISH_AFTER, READY_AFTER

    manifest = document.manifest or {}
    of_pods = {READY_AFTER, FINISH_AFTER, EXIT_CODE}
    known = _annotations()
    for path, found_there, is_pod in _annotated(manifest):
        for name, value in found_there.items():
            where = f"{path}.{name}"
            if not str(name).startswith(f"{PREFIX}/"):
                continue
            if name not in known:
                found = nearest(str(name), known)
                hint = f', did you mean "{found}"?' if found else f"; known are {', '.join(sorted(known))}"
                yield f"{place_of(document, where)}: unknown annotation{hint}"
            elif name in of_pods and not is_pod:
                yield f"{place_of(document, where)}: is for pods: write it into spec.template.metadata.annotations"
            elif name in of_pods and (problem := _value_problem(str(name), value)):
                yield f"{place_of(document, where)}: {problem}, got {value!r}"


def _value_problem(name: str, value: object) -> str:
    from ocf.objects.durations import parse_duration
    from ocf_server.controllers.kubelet import EXIT_CODE, NEVER, READY_AFTER

    if name == EXIT_CODE:
        return "" if isinstance(value, str) and value.isdecimal() else "must be a number in quotes, such as '1'"
    if name == READY_AFTER and value == NEVER:
        return ""
    never = f", or {NEVER}" if name == READY_AFTER else ""
    try:
        parse_duration(str(value))
    except ValueError:
        return f"must be a duration like 1m30s{never}"
    return ""


def _annotations() -> Collection[str]:
    """Return the annotations that users may set on nodes, on pods and on what applies them."""
    from ocf.component.apply.adoption import ADOPTABLE_BY
    from ocf.component.apply.handover import BEFORE_SUSPENSION
    from ocf.component.apply.initial_values import CREATED_ONLY
    from ocf.component.owner_deletion import SKIP_CLEANUP
    from ocf.nodegroups.rules.rules import ANNOTATIONS
    from ocf_server.controllers.kubelet import EXIT_CODE, FINISH_AFTER, READY_AFTER
    from ocf_server.http.pod_logs import LOG

    component = (ADOPTABLE_BY, BEFORE_SUSPENSION, CREATED_ONLY, SKIP_CLEANUP)
    return {*ANNOTATIONS, *component, EXIT_CODE, FINISH_AFTER, READY_AFTER, LOG}


def _annotated(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield the paths with annotations, the annotations, and whether they are those of pods."""
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    for path, value in (("metadata", manifest), ("spec.template.metadata", template)):
        metadata = value.get("metadata") if isinstance(value, dict) else None
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(annotations, dict):
            yield f"{path}.annotations", annotations, path != "metadata" or manifest.get("kind") == "Pod"


def unpriced_of(types: Any) -> set[tuple[str, str]]:
    """Return name and zone of the offerings of a valid file of instance types that have no price."""
    return {
        (str(each["name"]), str(offering.get("zone", "")))
        for each in types
        for offering in each.get("offerings") or ()
        if "price" not in offering
    }


def type_problems(
    document: Document, types: Sequence[InstanceType], unpriced: Collection[tuple[str, str]]
) -> Iterator[str]:
    """Yield what a group names and the file of instance types does not have; nothing for an invalid group."""
    from ocf.controllers.nodegroup.objects import read_group

    manifest = document.manifest or {}
    spec = read_group(manifest).spec if manifest["kind"] == "NodeGroup" else None
    if spec is None:
        return
    known, zone = {each.name: _zones(each) for each in types}, spec.datacenter_id
    zones = {each for found in known.values() for each in found}
    named = [(f"spec.offeringIDs[{index}]", each) for index, each in enumerate(spec.offering_ids)]
    missing = [(path, _missing("instance type", name, known)) for path, name in named if name not in known]
    if zone not in zones:
        missing.append(("spec.datacenterID", _missing("datacenter", zone, zones)))
    yield from (f"{place_of(document, path)}: {problem}" for path, problem in missing)
    offered = [each for _, each in named if zone in known.get(each, ())]
    if not missing and not offered:
        places = "; ".join(f"{name}: {', '.join(sorted(known[name])) or 'none'}" for _, name in named)
        where = place_of(document, "spec.offeringIDs")
        yield f"{where}: none of the types is offered in datacenter {zone}; the datacenters of each are {places}"
    without = sorted({each for each in offered if (each, zone) in unpriced})
    if spec.instance_selection == "Cheapest" and without:
        where = place_of(document, "spec.instanceSelection")
        yield f"{where}: Cheapest needs prices: add the price of {', '.join(without)} in {zone} to the file of --types"


def _missing(what: str, name: str, known: Collection[str]) -> str:
    found = nearest(name, known)
    hint = f', did you mean "{found}"?' if found else f"; known are {', '.join(sorted(known))}"
    return f"{what} {name!r} is not in the file of --types{hint}"


def _zones(found: InstanceType) -> set[str]:
    return {each.zone for each in found.offerings}
