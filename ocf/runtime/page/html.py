"""The page as HTML, rendered on the server: it is complete without a script, which only replaces its parts.

Every text of others is escaped here, isolated from the direction of what surrounds it, and has escapes for characters
that are not visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from ocf.autoscaling.explain.html_page import COLOURS, STYLE
from ocf.autoscaling.explain.svg import picture, rect
from ocf.objects import ObjectKey
from ocf.objects.printable import visible
from ocf.objects.timestamps import format_time
from ocf.ownership import values
from ocf.ownership.diagram import diagram_of
from ocf.ownership.lines import by_trouble
from ocf.ownership.picture import MARKS, to_svg
from ocf.ownership.tree import OwnerExplanation, State, TreeNode
from ocf.runtime.component_diagram import with_declared
from ocf.runtime.page.timeline import Reconcile, Write
from ocf.runtime.page.view import QueueNumbers, WatchNumbers

if TYPE_CHECKING:
    from ocf.component.diff import ComponentDiff, ObjectDiff
    from ocf.errors import ForbiddenError
    from ocf.ownership.diagram import Diagram
    from ocf.runtime.page.options import SpecText

__all__ = [
    "Frame",
    "Listing",
    "activity_parts",
    "document",
    "edit_form",
    "forbidden_parts",
    "login_form",
    "notice",
    "owner_parts",
    "owners_parts",
]

PAGE: Final = 100
"""Owners on one page of the list."""
_SIGNS: Final = {
    State.READY: "✓",
    State.UNKNOWN: "?",
    State.PROGRESSING: "…",
    State.GONE: "∅",
    State.FAILING: "✗",
    State.SUPERSEDED: "↷",
}
_BARS: Final = (600, 60)
_MOST_LINES: Final = 400


@dataclass(frozen=True, slots=True)
class Frame:
    """What surrounds the content of a page.

    Args:
        root: The relative address of the first page, `../../`.
        user: The user of the caller; empty where there are no users.
        stream: The relative address of the changes of this page; empty for a page that does not change.
    """

    title: str
    root: str
    user: str = ""
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Which owners are listed.

    Args:
        search: Words that name, namespace, kind or sentence contain; empty for all owners.
        state: A state; empty for all.
        page: Number of the page, from 0.
    """

    search: str = ""
    state: str = ""
    page: int = 0

    def query(self, **changes: str | int) -> str:
        """Return the query of the address, with changes."""
        fields = {"q": self.search, "state": self.state, "page": self.page} | changes
        named = urlencode({name: value for name, value in fields.items() if value}, errors="replace")
        return f"?{named}" if named else "."

    def selects(self, key: ObjectKey, found: OwnerExplanation) -> bool:
        """Return whether an owner is listed, on some page."""
        if not (self.state or self.search):
            return True
        if self.state and found.root.state != self.state:
            return False
        place = f"{key.kind} {key.namespace}/{key.name} {found.sentence}".lower()
        return all(word in place for word in self.search.lower().split())


def plain(value: str) -> str:
    r"""Return a text for HTML, and for the value of an attribute.

    Example:
        >>> print(plain("<b>\x1b[2J"))
        &lt;b&gt;\x1b[2J
    """
    return escape(visible(value))


def isolated(value: str) -> str:
    """Return a text for HTML whose direction changes nothing around it."""
    return f"<bdi>{plain(value)}</bdi>"


def owner_path(key: ObjectKey) -> str:
    """Return the relative address of an owner's page; the namespace of a cluster-scoped one is `-`.

    Example:
        >>> owner_path(ObjectKey("example.com/v1", "Shop", "corner", "town"))
        'Shop.example.com/town/corner'
    """
    group, kind = key.group_kind
    return "/".join(
        quote(one, safe="", errors="replace") for one in (f"{kind}.{group}", key.namespace or "-", key.name)
    )


def document(frame: Frame, parts: Mapping[str, str], *, token: str = "", after: str = "") -> str:
    """Return a page.

    Args:
        parts: HTML of each part by its identifier.
        token: Names the state of the parts, for the stream of changes.
        after: HTML below the parts, which no change replaces.
    """
    content = "\n".join(f'<section id="{name}">{html}</section>' for name, html in parts.items())
    stream = f' data-stream="{plain(frame.stream)}" data-token="{plain(token)}"' if frame.stream else ""
    root = plain(frame.root)
    user = (
        f'<form method="post" action="{root}logout"><span>{isolated(frame.user)}</span> <button>Log out</button></form>'
        if frame.user
        else ""
    )
    live = '<p id="live" role="status">as of the load of the page</p>' if frame.stream else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{plain(frame.title)}</title>\n"
        f'<link rel="stylesheet" href="{root}page.css">\n<link rel="icon" href="data:,">\n'
        f'<script src="{root}page.js" defer></script>\n</head>\n<body>\n'
        '<a class="skip" href="#main">To the content</a>\n'
        f'<header><nav aria-label="Pages"><a href="{root or "."}">Owners</a> '
        f'<a href="{root}activity">Activity</a></nav>'
        f'{live}{user}</header>\n<main id="main"{stream}>\n{content}\n{after}</main>\n</body>\n</html>\n'
    )


@cache
def style() -> str:
    """Return the style of the page."""
    return COLOURS + STYLE + MARKS + files("ocf.runtime.page").joinpath("page.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script of the page, which replaces parts that have changed."""
    return files("ocf.runtime.page").joinpath("page.js").read_text(encoding="utf-8")


def login_form(problem: str, root: str) -> str:
    """Return the form for the token of a caller."""
    return (
        f"<h1>Log in</h1><p>{plain(problem)}</p>"
        f'<form method="post" action="{plain(root)}login"><label for="token">Token of the cluster</label>'
        '<input id="token" name="token" type="password" autocomplete="off" required>'
        "<button>Log in</button></form><p>A token is printed by <code>kubectl create token NAME</code>.</p>"
    )


def forbidden_parts(error: ForbiddenError) -> dict[str, str]:
    """Return the page of a caller who may not see what was asked for."""
    return {"forbidden": f"<h1>Forbidden</h1><p>{isolated(str(error))}</p>"}


def notice(text: str) -> str:
    """Return what every page says first; empty for an empty text."""
    return f'<p class="missed" role="alert">{isolated(text)}</p>' if text else ""


# The list of owners.


def owners_parts(found: Mapping[ObjectKey, OwnerExplanation], listing: Listing, note: str = "") -> dict[str, str]:
    """Return the parts of the first page.

    Args:
        found: The owners that the caller may list.
        note: Why there may be more owners than these; may be empty.
    """
    chosen = {id(one): key for key, one in found.items() if listing.selects(key, one)}
    ordered = by_trouble([found[key] for key in chosen.values()])
    counts = {state: sum(one.root.state is state for one in found.values()) for state in State}
    page = min(listing.page, max(0, (len(ordered) - 1) // PAGE))
    shown = ordered[page * PAGE : (page + 1) * PAGE]
    rows = "".join(_row(chosen[id(one)], one) for one in shown)
    states = "".join(
        f'<li><a href="{plain(listing.query(state="" if listing.state == state else str(state), page=0))}"'
        f"{' aria-current=true' if listing.state == state else ''}>{_mark(state)} {counts[state]}</a></li>"
        for state in reversed(State)
        if counts[state] or listing.state == state
    )
    total = f"{counts[State.READY]} of {values.plural_count(len(found), 'owner')} ready"
    hint = f"<p>{plain(note)}</p>" if note else ""
    nothing = "No owner is found." if found else "" if note else "There is no owner."
    return {
        "summary": f'<h1>{total}</h1><ul class="states">{states}</ul>{hint}',
        "search": _search_form(listing),
        "owners": (f'<ol class="owners">{rows}</ol>' if rows else f"<p>{nothing}</p>")
        + _pages(listing, page, len(ordered)),
    }


def _search_form(listing: Listing) -> str:
    state = f'<input type="hidden" name="state" value="{plain(listing.state)}">' if listing.state else ""
    return (
        '<form role="search" action="."><label for="q">Search</label>'
        f'<input id="q" name="q" type="search" value="{plain(listing.search)}">{state}<button>Search</button></form>'
    )


def _row(key: ObjectKey, found: OwnerExplanation) -> str:
    root = found.root
    place = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return (
        f'<li class="{root.state}">{_mark(root.state)} <a href="{plain(owner_path(key))}">{plain(key.kind)} '
        f"{isolated(place)}</a><small>{_since(root)}</small><p>{isolated(found.sentence)}</p></li>"
    )


def _mark(state: State) -> str:
    return f'<b class="state {state}"><span aria-hidden="true">{_SIGNS[state]}</span> {state}</b>'


def _pages(listing: Listing, page: int, total: int) -> str:
    if total <= PAGE:
        return ""
    last = (total - 1) // PAGE
    links = [
        (f'<a href="{plain(listing.query(page=page - 1))}">Before</a>' if page else ""),
        f"{page * PAGE + 1} to {min(total, (page + 1) * PAGE)} of {total}",
        (f'<a href="{plain(listing.query(page=page + 1))}">After</a>' if page < last else ""),
    ]
    return f'<nav class="pages" aria-label="Pages of owners">{" ".join(filter(None, links))}</nav>'


# One owner.


def owner_parts(
    key: ObjectKey,
    found: OwnerExplanation,
    records: Sequence[Reconcile],
    visible: Callable[[ObjectKey], bool],
    declared: Diagram | None = None,
) -> dict[str, str]:
    """Return the parts of the page of an owner.

    Args:
        declared: The diagram of its components; None if the operator's code reads the cluster to return them.
        visible: Returns whether the caller may read an object, so that values of its fields are shown.
    """
    diagram = diagram_of(found)
    if declared is not None:
        diagram = with_declared(diagram, declared)
    place = f"{key.namespace}/{key.name}" if key.namespace else key.name
    remarks = "".join(f"<p>{isolated(one)}</p>" for one in found.remarks)
    unread = "".join(f"<li>{isolated(f'{one}: {one.why}')}</li>" for one in found.unread)
    left_out = f"<p>Not read, so that causes may be missing:</p><ul>{unread}</ul>" if unread else ""
    return {
        "explanation": (
            f"<h1>{_mark(found.root.state)} {plain(key.kind)} {isolated(place)}</h1>"
            f'<p class="cause">{isolated(found.sentence)}</p>{remarks}'
        ),
        "picture": f"<h2>Picture</h2><figure>{to_svg(diagram)}</figure>",
        "tree": f'<h2>Objects</h2><ul class="tree">{_node(found.root)}</ul>{left_out}',
        "reconciles": _reconciles(records, visible),
    }


def _node(node: TreeNode) -> str:
    texts = [node.text] if node.text and node.state is not State.READY else []
    texts += [f"{values.plural_count(node.warnings, 'warning')} in the last hour"] if node.warnings else []
    texts += [f"also written by {', '.join(node.writers)}"] if node.writers else []
    inner = "".join(_node(child) for child in node.children)
    below = f"<ul>{inner}</ul>" if inner else ""
    said = "".join(f"<p>{isolated(one)}</p>" for one in texts)
    head = f"{_mark(node.state)} {isolated(node.name)}<small>{_since(node)}</small>"
    return f'<li class="{node.state}">{head}{said}{below}</li>'


def _since(node: TreeNode) -> str:
    """Return since when; not for how long, which would change all the time."""
    return f" since {_time(node.since)}" if node.since is not None else ""


def _time(instant: datetime) -> str:
    return f'<time datetime="{format_time(instant)}">{instant:%Y-%m-%d %H:%M:%S}</time>'


# What reconciles did.


def activity_parts(
    queues: Sequence[QueueNumbers],
    watches: Sequence[WatchNumbers],
    rate: float,
    records: Sequence[Reconcile],
    visible: Callable[[ObjectKey], bool],
) -> dict[str, str]:
    """Return the parts of the page of queue, watches and reconciles."""
    cards = "".join(
        f"<h2>{plain(one.operator)}</h2><dl>{_card('waiting', one.waiting)}{_card('running', one.running)}"
        f"{_card('scheduled', one.later)}{_card('paused', one.paused)}</dl>"
        for one in queues
    )
    rows = "".join(
        f'<tr><th scope="row">{plain(one.kind)}<small>{plain(one.api_version)}</small></th>'
        f"<td>{isolated(one.namespace or 'all')}</td><td>{one.objects}</td>"
        f"<td>{isolated(one.problem or 'none')}</td></tr>"
        for one in watches
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("kind", "namespace", "objects", "problem"))
    return {
        "queue": f"<h1>Activity</h1><dl>{_card('requests per second', f'{rate:.1f}')}</dl>{cards}",
        "reconciles": _reconciles(records, visible),
        "watches": (
            f'<h2>Watches</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        ),
    }


def _card(name: str, value: object) -> str:
    return f"<div><dt>{name}</dt><dd>{value}</dd></div>"


def _reconciles(records: Sequence[Reconcile], visible: Callable[[ObjectKey], bool]) -> str:
    if not records:
        return "<h2>Reconciles</h2><p>None since the start of the process.</p>"
    return (
        f"<h2>Last {values.plural_count(len(records), 'reconcile')}</h2>{_bars(records)}"
        f'<div class="reconciles">{"".join(_reconcile(one, visible) for one in records)}</div>'
    )


def _bars(records: Sequence[Reconcile]) -> str:
    """Return a chart of durations, the latest at the right; a failure goes below the line, readable without colour."""
    width, height = _BARS
    longest = max(one.seconds for one in records) or 1.0
    step = width / 50
    bars: list[str] = []
    for number, one in enumerate(records):
        tall = max(2.0, round(one.seconds / longest * (height - 12), 1))
        x, y = round(width - (number + 1) * step, 1), height - 12.0 - tall
        bars.append(rect(x, y, (str(step - 2), tall), f"band {'bad' if one.problem else 'good'}"))
        if one.problem:
            bars.append(rect(x, height - 12.0, (str(step - 2), 8.0), "band bad"))
    failed = sum(bool(one.problem) for one in records)
    words = f"{longest:.3g} s at most, {failed} failed"
    drawn = picture(
        bars,
        title="Durations of the reconciles",
        description=f"{words}. The list below has them all.",
        identifier="durations",
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
        class_="bars",
        role="img",
    )
    return f"<figure>{drawn}<figcaption>{words}</figcaption></figure>"


def _reconcile(one: Reconcile, visible: Callable[[ObjectKey], bool]) -> str:
    place = f"{one.owner.namespace}/{one.owner.name}" if one.owner.namespace else one.owner.name
    result = "failed" if one.problem else "done"
    state = State.FAILING if one.problem else State.READY
    writes = values.plural_count(len(one.writes), "write")
    triggers = "; ".join(one.triggers) or "asked for by the process"
    steps = "".join(
        f"<li>{isolated(step.component)}: {isolated(f'{step.resource.kind} {step.resource.name}')}: "
        f"{plain(step.done)}</li>"
        for step in one.steps
    )
    problem = f"<p>{isolated(one.problem)}</p>" if one.problem else ""
    return (
        f'<details id="r{one.number}"><summary><b class="state {state}">'
        f'<span aria-hidden="true">{_SIGNS[state]}</span> {result}</b> '
        f"{plain(one.owner.kind)} {isolated(place)}, {_time(one.began)}, {one.seconds:.3g} s, "
        f"{writes}<small>{isolated(triggers)}</small></summary>{problem}"
        f'<ol class="steps">{steps}</ol>{"".join(_write(each, visible) for each in one.writes)}</details>'
    )


def _write(one: Write, visible: Callable[[ObjectKey], bool]) -> str:
    name = f"{one.key.kind} {f'{one.key.namespace}/' if one.key.namespace else ''}{one.key.name}"
    part = f" ({plain(one.part)})" if one.part else ""
    texts = [one.problem, one.note]
    rows = ""
    if one.fields and visible(one.key):
        rows = "".join(
            f'<tr><th scope="row">{isolated(each.path)}</th><td><del>{isolated(each.before)}</del></td>'
            f"<td><ins>{isolated(each.after)}</ins></td></tr>"
            for each in one.fields
        )
    elif one.fields:
        texts.append(f"{values.plural_count(len(one.fields), 'field')}, of an object that you may not read")
    table = f'<div class="scroll"><table class="fields"><tbody>{rows}</tbody></table></div>' if rows else ""
    said = "".join(f"<p>{isolated(each)}</p>" for each in texts if each)
    return f"<h3>{plain(one.verb)} {isolated(name)}{part}</h3>{said}{table}"


# The spec of an owner, in `ocf dev` only.


def edit_form(edited: SpecText, key: str, *, problem: str = "", plan: Sequence[ComponentDiff] | None = None) -> str:
    """Return the form that edits the spec of an owner.

    Args:
        key: The secret of the process that a form of another page does not know.
        problem: Why the spec cannot be written; empty if it can, or was not tried.
        plan: What the next reconcile would write; None if it was not asked for.
    """
    shown = notice(problem)
    shown += _plan(plan) if plan is not None else ""
    write = '<button name="do" value="write">Write it</button>' if plan is not None and not problem else ""
    is_open = " open" if problem or plan is not None else ""
    return (
        f'<section id="edit"><details{is_open}><summary>Edit the spec</summary><form method="post" action="#edit">'
        f'<input type="hidden" name="key" value="{plain(key)}">'
        f'<input type="hidden" name="generation" value="{plain(edited.generation)}">'
        f'<label for="spec">Spec as YAML</label><textarea id="spec" name="spec" rows="16" spellcheck="false">\n'
        f"{plain(edited.text)}</textarea>"
        f'<button name="do" value="plan">Show what would be written</button>{write}</form>{shown}</details></section>'
    )


def _plan(plan: Sequence[ComponentDiff]) -> str:
    found = "".join(
        f"<h3>{plain(one.component or 'before the components')}</h3>"
        + (f"<p>The reconcile would fail: {isolated(one.problem)}</p>" if one.problem else "")
        + ("".join(_planned(each) for each in one.objects) or "<p>Nothing would be written.</p>")
        for one in plan
    )
    return f"<h2>What would be written</h2>{found or '<p>Nothing would be written.</p>'}"


def _planned(one: ObjectDiff) -> str:
    rows = "".join(
        f'<tr><th scope="row">{isolated(each.path)}</th><td><del>{isolated(_value(each.before))}</del></td>'
        f"<td><ins>{isolated(_value(each.after))}</ins></td></tr>"
        for each in one.fields
    )
    table = f'<div class="scroll"><table class="fields"><tbody>{rows}</tbody></table></div>' if rows else ""
    return f"<p><b>{plain(one.verb)}</b> {isolated(one.resource)}</p>{table}"


def _value(value: object) -> str:
    shown = "" if value is None else str(value)
    return "not shown: may be secret" if shown.startswith("redacted, sha256 ") else shown
