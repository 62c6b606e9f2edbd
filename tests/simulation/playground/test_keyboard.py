"""The keys that the page shows for the curve are those that change it; without the simulations of the page."""

import html
import json
import re
from pathlib import Path
from typing import Final

from tests.browser import run

PAGE: Final = Path(__file__).parents[3] / "docs" / "playground"
EVENTS: Final = {"←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown"}
HARNESS: Final = """\
<!doctype html><meta charset="utf-8"><main>{shown}</main><svg id="svg"></svg><pre id="found"></pre>
<script>{code}
const svg = document.getElementById("svg"), curve = new Curve(svg, () => {{}}), events = {events};
const changes = {{}};
for (const each of document.querySelectorAll("main kbd")) {{
  curve.set({{rates: [10, 20, 30], end: 180, fixed: false}});
  curve.chosen = 1;
  curve.draw();
  const key = each.textContent.replace(" ", ""), options = {{key: events[key] ?? key, cancelable: true}};
  const before = svg.getAttribute("aria-valuetext");
  const taken = !svg.dispatchEvent(new KeyboardEvent("keydown", options));
  changes[each.textContent] = [taken, svg.getAttribute("aria-valuetext") !== before];
}}
document.getElementById("found").textContent = JSON.stringify(changes);
</script>
"""


def test_each_key_that_is_shown_changes_the_part_of_the_curve_or_its_load(chromium: str, tmp_path: Path) -> None:
    modules = "".join((PAGE / name).read_text(encoding="utf-8") for name in ("files.js", "curve.js"))
    code = re.sub(r"^import .*$|^export (?=\w)", "", modules, flags=re.MULTILINE)
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    [shown] = re.findall(r'<p class="at" id="curve-help">(.*?)</p>', page, re.DOTALL)
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(shown=shown, code=code, events=json.dumps(EVENTS)), encoding="utf-8")

    dom = run(chromium, tmp_path, "--dump-dom", harness.as_uri())
    [text] = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)

    keys = ("←", "→", "Home", "End", "↑", "↓", "Page Up", "Page Down")
    assert json.loads(html.unescape(text)) == {key: [True, True] for key in keys}
