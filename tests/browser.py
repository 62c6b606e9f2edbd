"""A browser for the tests of pages: what it draws, in which colours, and how wide.

The browser is `chromium` of the path, or the program that `CHROMIUM` names. Without one these tests are left out,
unless `OCF_REQUIRE` lists `chromium`.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.requirements import leave_out

DARK: Final = "--blink-settings=preferredColorScheme=0"
LIGHT: Final = "--blink-settings=preferredColorScheme=1"
SUFFICIENT_CONTRAST: Final = 4.5
HARNESS: Final = """\
<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe><pre id="found"></pre>
<script>
onload = () => {{
  const view = document.querySelector("iframe").contentWindow, page = view.document;
  const texts = [...page.querySelectorAll("body *")].filter(
    (one) => !one.closest("title,desc") && [...one.childNodes].some((node) => node.nodeType == 3 && node.data.trim()));
  const wide = page.documentElement.clientWidth + 0.5;
  const paper = view.getComputedStyle(page.body).backgroundColor;
  const found = {{
    width: page.documentElement.clientWidth, scrolled: page.documentElement.scrollWidth, paper,
    outside: texts.filter((one) => one.getBoundingClientRect().right > wide).map((one) => one.textContent),
    texts: texts.map((one) => {{
      const style = view.getComputedStyle(one), drawn = one instanceof view.SVGElement;
      const svg = one.ownerSVGElement;
      const factor = drawn ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      return {{text: one.textContent.trim().slice(0, 40), size: parseFloat(style.fontSize) * factor,
               colour: drawn ? style.fill : style.color}};
    }}),
  }};
  document.getElementById("found").textContent = JSON.stringify(found);
}};
</script>
"""


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of the browser; skips the test without one."""
    named = os.environ.get("CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"]
    found = next((path for path in map(shutil.which, names) if path is not None), None)
    if found is None:
        leave_out("chromium", "chromium is not installed: the tests of pages in a browser are left out")
    return found


def run(chromium: str, folder: Path, *options: str) -> str:
    """Run the browser with a profile of its own; return what it prints."""
    return _run(chromium, folder, *options).stdout


def complaints(chromium: str, folder: Path, address: str) -> tuple[str, list[str]]:
    """Return the document of a page after its scripts, and the lines that it writes to the console."""
    done = _run(chromium, folder, "--enable-logging=stderr", "--dump-dom", address)
    return done.stdout, re.findall(r"^\[.*:CONSOLE.*$", done.stderr, re.MULTILINE)


def _run(chromium: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    command = [chromium, *fixed, f"--user-data-dir={folder / 'profile'}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 (ours)


def measured(chromium: str, folder: Path, page: str, width: int, scheme: str) -> Any:
    """Return the sizes and colours of a page in a frame of a width."""
    harness = folder / "harness.html"
    harness.write_text(HARNESS.format(width=width, page=html.escape(page)), encoding="utf-8")
    dom = run(chromium, folder, scheme, "--dump-dom", harness.as_uri())
    [found] = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    return json.loads(html.unescape(found))


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as the Web Content Accessibility Guidelines define it."""
    shares = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
