"""A plan as one page: what each group does, and for each pod and each node why; nodes as bars."""

from collections.abc import Iterator
from html import escape
from typing import Final

from ocf.autoscaling.explain.html_page import html_page
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.plan_report import outcome_text, plan_lines, pod_lines
from ocf.nodegroups.scale_down import CandidateOutcome, Utilization, Verdict, utilization_of

__all__ = ["plan_html"]

_FULL: Final = 100.0
_MARKS: Final = """\
.bar{display:block;width:100%;max-width:16rem;height:.6rem;margin:.15rem 0}.bar .room{fill:var(--line)}
.bar .cpu{fill:var(--up)}.bar .memory{fill:var(--want)}.node{border-left:.25rem solid var(--line);padding-left:.6rem;
margin:.7rem 0;break-inside:avoid}.node.remove{border-color:var(--down)}.node h3{font-size:1rem;margin:0}
"""


def plan_html(view: ClusterView, plan: NodeGroupPlan) -> str:
    """Render a plan as a page."""
    body = [
        "<main>\n<header><h1>Node groups</h1></header>",
        f'<div class="card">{_paragraphs(plan_lines(view, plan))}</div>',
        *_section("Pending pods", _paragraphs(pod_lines(plan))),
        *_section("Nodes", "".join(_nodes(plan))),
        "</main>",
    ]
    return html_page(title="Node groups: what would be done now", body="\n".join(body), marks=_MARKS)


def _paragraphs(lines: Iterator[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _section(title: str, content: str) -> Iterator[str]:
    if content:
        yield f"<section><h2>{escape(title)}</h2>{content}</section>"


def _nodes(plan: NodeGroupPlan) -> Iterator[str]:
    if plan.decision.scale_down.stopped:
        yield f"<p>No node is removed: {escape(plan.decision.scale_down.stopped)}</p>"
    for each in sorted(plan.decision.scale_down.outcomes, key=lambda each: (each.group, each.node)):
        node = plan.snapshot.nodes.get(each.node)
        utilization = None if node is None else utilization_of(node, plan.snapshot)
        yield _node(each, utilization)


def _node(outcome: CandidateOutcome, utilization: Utilization | None) -> str:
    css = "node remove" if outcome.verdict is Verdict.REMOVE else "node"
    used = "its utilization is not known" if utilization is None else f"requested: {utilization}"
    bars = "" if utilization is None else _bar("cpu", utilization.cpu) + _bar("memory", utilization.memory)
    return (
        f'<div class="{css}"><h3>{escape(outcome.node)}</h3>{bars}<p class="at">{escape(used)}</p>'
        f"<p>{escape(outcome_text(outcome))}</p></div>"
    )


def _bar(resource: str, percent: float) -> str:
    width = min(percent, _FULL)
    return (
        f'<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" '
        f'aria-label="{percent:.0f} % {resource}"><rect class="room" width="100" height="4"/>'
        f'<rect class="{resource}" width="{width:.1f}" height="4"/></svg>'
    )
