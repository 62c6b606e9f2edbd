"use strict";
// Replaces the parts of the page that have changed. The page is complete without it.
(() => {
  const main = document.querySelector("main[data-stream]"), live = document.getElementById("live");
  if (!main || !window.EventSource) return;
  let source = null, token = main.dataset.token;

  const replace = (id, html) => {
    const part = document.getElementById(id);
    // What the reader types is not replaced.
    if (!part || part.querySelector("input")) return;
    // What the reader has opened stays open, and what has the focus keeps it.
    const open = new Set([...part.querySelectorAll("details[open][id]")].map((one) => one.id));
    const active = part.contains(document.activeElement) ? document.activeElement : null;
    const place = active && (active.closest("[id]") !== part ? `#${CSS.escape(active.closest("[id]").id)} ` : "");
    const href = active && active.getAttribute("href");
    part.innerHTML = html;
    for (const one of part.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = true;
    if (!active) return;
    const again = href ? [...part.querySelectorAll("a")].find((one) => one.getAttribute("href") === href)
      : place && part.querySelector(`${place}${active.localName}`);
    if (again) again.focus({preventScroll: true});
  };
  const start = () => {
    if (source) return;
    source = new EventSource(`${main.dataset.stream}&token=${encodeURIComponent(token)}`);
    source.onopen = () => { live.textContent = "follows changes"; };
    source.onmessage = (event) => {
      const message = JSON.parse(event.data);
      token = message.token;
      for (const [id, html] of Object.entries(message.parts)) replace(id, html);
      live.textContent = `changed at ${new Date().toLocaleTimeString()}`;
    };
    source.onerror = () => {
      live.textContent = "not connected: this is the last known state";
      // The browser tries again by itself, unless the server has refused.
      if (source.readyState === EventSource.CLOSED) { source = null; setTimeout(visible, 10000); }
    };
  };
  // A browser has six connections to a server: pages that are hidden must not hold them.
  const visible = () => {
    if (!document.hidden) start();
    else if (source) { source.close(); source = null; live.textContent = "stopped while hidden"; }
  };
  document.addEventListener("visibilitychange", visible);
  addEventListener("pagehide", () => { if (source) { source.close(); source = null; } });
  addEventListener("pageshow", visible);
})();
