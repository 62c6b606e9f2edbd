"""A self-contained HTML page: it loads nothing, and its policy forbids that and any script but its own.

It is readable on a screen of 390 pixels, in the dark scheme, and in print.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

__all__ = ["COLOURS", "STYLE", "html_page"]

COLOURS: Final = """\
:root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--paper:#fff;--card:#f6f8fa;--line:#d1d9e0;
--want:#6639ba;--up:#0550ae;--down:#953800;--good:#2da44e;--bad:#cf222e;--warn:#bf8700}
@media (prefers-color-scheme:dark){:root{--ink:#f0f6fc;--muted:#9da7b3;--paper:#0d1117;--card:#161b22;--line:#3d444d;
--want:#d2a8ff;--up:#79c0ff;--down:#ffa657;--good:#3fb950;--bad:#f85149;--warn:#d29922}}
@media print{:root{color-scheme:light;--ink:#000;--muted:#444;--paper:#fff;--card:#fff;--line:#999;
--want:#6639ba;--up:#0550ae;--down:#953800;--good:#2da44e;--bad:#cf222e;--warn:#bf8700}}
"""
"""Colours as CSS variables, for both schemes and for print."""

STYLE: Final = """\
*{box-sizing:border-box}body{margin:0 auto;padding:1rem;max-width:46rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.05rem;margin:1.75rem 0 .4rem}
p{margin:.3rem 0}.at,figcaption,th{color:var(--muted)}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.75rem 1rem;margin:1rem 0}
dl{display:flex;flex-wrap:wrap;gap:.5rem;margin:1rem 0}
dl div{flex:1 1 6rem;border:1px solid var(--line);border-radius:.6rem;padding:.4rem .75rem}
dt{color:var(--muted);font-size:.875rem}dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
figure{margin:1rem 0;break-inside:avoid}figure>svg{display:block;width:100%;max-width:38rem;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;padding:0;margin:.4rem 0;font-size:.875rem}
.legend svg{width:1em;height:1em;vertical-align:-.1em;margin-right:.35em}
ul.steps{margin:.2rem 0 .5rem;padding-left:1.2rem}
ul.steps li.here{font-weight:600}table{border-collapse:collapse;width:100%;font-size:.9rem}
td,th{text-align:left;padding:.25rem .5rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}section{break-inside:avoid}}
"""
"""Style of text, tables, lists and figures."""
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
{scripts}</body>
</html>
"""


def html_page(*, title: str, body: str, marks: str = "", script: str = "", data: str = "") -> str:
    """Return a page.

    Args:
        marks: Style of what only this page shows.
        script: JavaScript, the only one that the policy of the page allows; without it, the page has none.
        data: JSON for the script, in the element with the identifier `data`.

    Example:
        >>> page = html_page(title="1 < 2", body="<main>yes</main>")
        >>> page.startswith("<!doctype html>"), "<title>1 &lt; 2</title>" in page
        (True, True)
    """
    policy = scripts = ""
    if script:
        digest = b64encode(sha256(script.encode()).digest()).decode()
        policy = f"; script-src 'sha256-{digest}'"
        # In a script element, no text ends with it but its end tag.
        safe = data.replace("<", "\\u003c")
        scripts = f'<script type="application/json" id="data">{safe}</script>\n<script>{script}</script>\n'
    style = COLOURS + marks + STYLE
    return _PAGE.format(title=escape(title), style=style, body=body, policy=policy, scripts=scripts)
