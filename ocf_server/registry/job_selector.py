"""The selector and the labels that the API server generates for a Job.

Source: `generateSelector` in `pkg/registry/batch/job/strategy.go` and `SetDefaults_Job` in
`pkg/apis/batch/v1/defaults.go` of Kubernetes.
"""

from typing import Final

from ocf.objects import Manifest

__all__ = ["generate_selector"]

_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
_OLD_UID: Final = "controller-uid"
_OLD_NAME: Final = "job-name"


def generate_selector(job: Manifest) -> None:
    """Set the selector of a new Job, and the labels of its pods; with `manualSelector` both are left as they are.

    Labels and selectors of the user stay; validation rejects those that differ from the generated ones. A Job without
    labels gets those of its pods.

    Args:
        job: The Job, with its name and uid; it is changed.
    """
    metadata, spec = job["metadata"], job["spec"]
    template = spec["template"].setdefault("metadata", {})
    sent = template.get("labels") or {}
    # Defaulting has given the Job the map of its template, if it has no labels of its own.
    inherited = not metadata.get("labels") or metadata["labels"] is sent
    if not spec.get("manualSelector"):
        uid, name = metadata["uid"], metadata["name"]
        generated = {_OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
        template["labels"] = {**generated, **sent}
        selector = spec.get("selector") or {}
        spec["selector"] = {**selector, "matchLabels": {_UID: uid, **(selector.get("matchLabels") or {})}}
    if inherited and template.get("labels"):
        metadata["labels"] = dict(template["labels"])
