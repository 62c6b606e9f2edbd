"""The lines of an explanation: what could not be read, and the commands that print the missing rights."""

from typing import Final

from ocf.ownership.lines import explanation_lines
from ocf.ownership.snapshot import UnreadKind
from ocf.ownership.tree import CauseStep, OwnerExplanation, State, TreeNode
from tests.ownership.world import NOW

DENIED: Final = 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "town"'


def lines_of(*unread: UnreadKind) -> list[str]:
    found = OwnerExplanation(
        TreeNode("Shop corner", State.READY), (CauseStep("Shop corner is ready", None),), (), unread
    )
    return [line for _, line in explanation_lines(found, NOW)]


def test_the_missing_rights_of_a_namespace_are_in_one_command() -> None:
    printed = "The role that allows it is printed by kubectl create"
    options = "--dry-run=client --output=yaml"

    found = lines_of(
        UnreadKind("pods", "town", DENIED),
        UnreadKind("deployments.apps", "town", DENIED),
        UnreadKind("nodes", "", DENIED),
    )

    assert found[-2:] == [
        f"{printed} role ocf-explain --namespace=town --verb=get,list --resource=pods,deployments.apps {options}",
        f"{printed} clusterrole ocf-explain --verb=get,list --resource=nodes {options}",
    ]


def test_what_fails_for_another_reason_needs_no_role() -> None:
    found = lines_of(UnreadKind("pods", "town", "the server is down"))
    assert found[-1] == "pods may not be read in town: the server is down"


def test_an_explanation_of_which_everything_was_read_has_no_command() -> None:
    assert not any("kubectl" in each for each in lines_of())
