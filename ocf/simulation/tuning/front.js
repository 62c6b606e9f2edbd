"use strict";
// Shows the candidate under the pointer, or with the focus, below its chart and in all charts.
(() => {
  const points = [...document.querySelectorAll("[data-point]")];
  const show = (point) => {
    for (const each of points) each.classList.toggle("shown", each.dataset.point === point.dataset.point);
    point.closest("figure").querySelector("output.seen").textContent = point.getAttribute("aria-label");
  };
  for (const each of points) {
    each.addEventListener("pointerenter", () => show(each));
    each.addEventListener("click", () => show(each));
    each.addEventListener("focus", () => show(each));
  }
})();
