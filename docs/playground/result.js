// The result of a run: the parts of a report, which keeps its zoom, open tables and hidden lines from run to run.
/* global drawReport */

export class Result {
  constructor(element) {
    this.element = element;
    this.report = null;
  }

  show({title, body, data}) {
    const before = this.kept();
    this.report?.remove();
    this.element.innerHTML = `<h2></h2>${body}`;
    this.element.querySelector("h2").textContent = title;
    const parsed = JSON.parse(data);
    this.report = drawReport(this.element, parsed, before.end === parsed.end ? before.visible : undefined);
    this.end = parsed.end;
    for (const details of this.element.querySelectorAll("details")) {
      details.open = before.open.includes(details.firstElementChild.textContent);
    }
    for (const button of this.element.querySelectorAll("button[data-series]")) {
      if (before.hidden.includes(nameOf(button))) button.click();
    }
    this.current(true);
  }

  // Whether the result is that of the texts.
  current(is) {
    this.element.classList.toggle("old", !is);
  }

  kept() {
    const all = (selector) => [...this.element.querySelectorAll(selector)];
    return {
      end: this.end,
      visible: this.report?.visible(),
      open: all("section > details[open]").map((each) => each.firstElementChild.textContent),
      hidden: all("button[data-series][aria-pressed=false]").map(nameOf),
    };
  }
}

const nameOf = (button) => `${button.closest("section").querySelector("h2").textContent}: ${button.textContent}`;
