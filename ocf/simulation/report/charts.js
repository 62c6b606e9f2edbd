"use strict";
// Draws the charts of a report in a part of a page: step lines over time, with a common range and a common cursor.
// `page` is a document or an element, and `visible` the range that is shown at first, in seconds. Returns an object with
// the range that is visible, and with a function that removes what listens to the window.
function drawReport(page, data, visible = [0, data.end]) {
  const LEFT = 46, RIGHT = 10, TOP = 8, AXIS = 24, BAND = 36, LABEL = 14, MOST_ACTIONS = 100;
  // With dates that mean something, a second line below the axis has those of the range.
  const BOTTOM = AXIS + (data.dated ? 14 : 0), HEIGHT = 166 + BOTTOM;
  const SECOND = 1, MINUTE = 60, HOUR = 3600, DAY = 86400;
  const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 5 * DAY, 10 * DAY, 30 * DAY, 100 * DAY, 365 * DAY];
  const SHORTEST = 10 * SECOND;
  let range = visible;
  let cursor = null;

  const node = (name, attributes, parent) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  };
  // Index of the last row that begins at or before a time; -1 if there is none.
  const rowAt = (times, time) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle + 1; else high = middle;
    }
    return low - 1;
  };
  const two = (value) => String(value).padStart(2, "0");
  const clock = (time, step) => {
    const at = new Date((data.start + time) * 1000);
    const day = `${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
    if (step >= DAY) return day;
    const hour = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
    return step < MINUTE ? `${hour}:${two(at.getUTCSeconds())}` : hour;
  };
  const year = (time) => new Date((data.start + time) * 1000).getUTCFullYear();
  const date = (time) => `${data.dated ? `${year(time)}-` : ""}${clock(time, DAY)}`;
  const moment = (time) => `${date(time)} ${clock(time, SECOND)}`;
  const number = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= 1e6) return `${+(value / 1e6).toPrecision(4)} M`;
    if (Math.abs(value) >= 1e4) return `${+(value / 1e3).toPrecision(4)} k`;
    return String(+value.toPrecision(4));
  };
  const niceStep = (span, most) => {
    const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  };

  // The button that takes the place of a legend entry.
  const buttonOf = (entry) => {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.series = entry.dataset.series;
    button.setAttribute("aria-pressed", "true");
    button.append(...entry.childNodes);
    entry.replaceWith(button);
    return button;
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.spec = data.charts[figure.dataset.chart];
      this.svg = figure.querySelector("svg.plot");
      this.svg.classList.remove("static");
      this.buttons = [...figure.querySelectorAll(".entry[data-series]")].map(buttonOf);
      this.outputs = [...figure.querySelectorAll("output[data-series]")];
      this.moment = figure.querySelector("output.moment");
      this.hidden = new Set();
      for (const button of this.buttons) {
        button.addEventListener("click", () => {
          const which = +button.dataset.series;
          if (!this.hidden.delete(which)) this.hidden.add(which);
          button.setAttribute("aria-pressed", String(!this.hidden.has(which)));
          this.draw();
        });
      }
      this.listen();
    }

    x(time) {
      return LEFT + (time - range[0]) / (range[1] - range[0]) * (this.width - LEFT - RIGHT);
    }

    timeAt(event) {
      const box = this.svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) * this.width / box.width - LEFT) / (this.width - LEFT - RIGHT);
      return range[0] + Math.min(1, Math.max(0, share)) * (range[1] - range[0]);
    }

    y(value) {
      return this.height - BOTTOM - value / this.top * (this.height - TOP - BOTTOM);
    }

    draw() {
      this.width = Math.max(240, Math.round(this.svg.clientWidth || 640));
      this.height = this.spec.bands ? TOP + BOTTOM + BAND * this.spec.bands.length : HEIGHT;
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      for (const each of [...this.svg.children]) if (!/^(title|desc)$/.test(each.nodeName)) each.remove();
      this.timeAxis();
      if (this.spec.bands) this.drawBands(); else this.drawLines();
      this.selection = node("rect", {class: "selection", y: TOP, height: this.height - TOP - BOTTOM, width: 0}, this.svg);
      this.line = node("line", {class: "cursor", y1: TOP, y2: this.height - BOTTOM, x1: -9, x2: -9}, this.svg);
      this.showCursor();
    }

    timeAxis() {
      const span = range[1] - range[0], most = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 76));
      const step = TIME_STEPS.find((each) => span / each <= most) ?? 365 * DAY * Math.ceil(span / most / (365 * DAY));
      const first = Math.ceil((data.start + range[0]) / step) * step - data.start;
      for (let time = first; time <= range[1]; time += step) {
        const x = this.x(time).toFixed(1);
        node("line", {class: "grid", x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM}, this.svg);
        const midnight = (data.start + time) % DAY === 0;
        const anchor = x > this.width - 24 ? "end" : "middle";
        const text = node("text", {x, y: this.height - BOTTOM + 16, "text-anchor": anchor}, this.svg);
        text.textContent = clock(time, midnight ? DAY : step);
      }
      if (!data.dated) return;
      const dates = [...new Set(range.map(date))].join(" to ");
      node("text", {class: "dates", x: LEFT, y: this.height - BOTTOM + 30}, this.svg).textContent = `${dates} UTC`;
    }

    // The rows of a series that are visible.
    visible(series) {
      const run = data.runs[series.run], times = run.times;
      const low = run.low[series.key] ?? [], high = run.high[series.key] ?? low;
      const first = Math.max(0, rowAt(times, range[0])), last = rowAt(times, range[1]);
      return {times, low, high, first, last: Math.min(last, low.length - 1), end: run.end};
    }

    drawLines() {
      const shown = this.spec.series.map((series, which) => ({series, which}))
        .filter(({which}) => !this.hidden.has(which));
      let most = 0;
      for (const {series} of shown) {
        const {high, first, last} = this.visible(series);
        for (let row = first; row <= last; row++) if (high[row] > most) most = high[row];
      }
      for (const {value} of this.spec.marks) if (value <= 2 * most || most === 0) most = Math.max(most, value);
      const step = niceStep(most || 1, 4), whole = this.spec.whole ? Math.max(1, step) : step;
      this.top = Math.max(whole, Math.ceil(most / whole - 1e-9) * whole);
      for (let value = 0; value <= this.top * 1.0001; value += whole) {
        const y = this.y(value).toFixed(1);
        node("line", {class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y}, this.svg);
        const text = node("text", {x: LEFT - 6, y: +y + 4, "text-anchor": "end"}, this.svg);
        text.textContent = number(value);
      }
      for (const {value} of this.spec.marks) {
        if (value > this.top) continue;
        const y = this.y(value).toFixed(1);
        node("line", {class: "mark", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y}, this.svg);
      }
      for (const {series, which} of shown) {
        node("path", {class: `series ${series.style}`, "data-series": which, d: this.path(this.visible(series))}, this.svg);
      }
    }

    // A step line; rows that share a pixel are one vertical line from the lowest to the highest value.
    path({times, low, high, first, last, end}) {
      const parts = [];
      let pixel = null, lowest = 0, highest = 0, latest = 0, drawing = false;
      const flush = () => {
        if (pixel === null) return;
        const x = pixel.toFixed(1);
        parts.push(drawing ? `H${x}` : `M${x} ${this.y(latest).toFixed(1)}`);
        if (highest > lowest) parts.push(`V${this.y(highest).toFixed(1)}V${this.y(lowest).toFixed(1)}`);
        parts.push(`V${this.y(latest).toFixed(1)}`);
        drawing = true;
        pixel = null;
      };
      for (let row = first; row <= last; row++) {
        const x = this.x(Math.max(range[0], times[row]));
        if (low[row] === null) {
          flush();
          if (drawing) parts.push(`H${x.toFixed(1)}`);
          drawing = false;
          continue;
        }
        if (pixel !== null && x - pixel >= 1) flush();
        if (pixel === null) [pixel, lowest, highest] = [x, low[row], high[row]];
        lowest = Math.min(lowest, low[row]);
        highest = Math.max(highest, high[row]);
        latest = low[row];
      }
      flush();
      if (drawing) parts.push(`H${this.x(Math.min(range[1], end)).toFixed(1)}`);
      return parts.join("");
    }

    drawBands() {
      this.spec.bands.forEach((band, which) => {
        const y = TOP + which * BAND + LABEL;
        node("text", {x: LEFT, y: y - 3}, this.svg).textContent = band.name;
        band.changes.forEach(([begin, state], at) => {
          const end = band.changes[at + 1]?.[0] ?? data.end;
          if (end <= range[0] || begin >= range[1]) return;
          const left = this.x(Math.max(begin, range[0])), right = this.x(Math.min(end, range[1]));
          const width = Math.max(1, right - left).toFixed(1);
          node("rect", {class: `band ${band.states[state][0]}`, x: left.toFixed(1), y, width, height: BAND - LABEL - 4}, this.svg);
        });
      });
    }

    showCursor() {
      if (!this.line) return;
      const x = cursor === null || cursor < range[0] || cursor > range[1] ? -9 : this.x(cursor).toFixed(1);
      this.line.setAttribute("x1", x);
      this.line.setAttribute("x2", x);
      this.moment.textContent = cursor === null ? "" : moment(cursor);
      for (const output of this.outputs) {
        output.textContent = cursor === null ? "" : this.valueAt(+output.dataset.series, cursor);
      }
    }

    valueAt(which, time) {
      if (this.spec.bands) {
        const {changes, states} = this.spec.bands[which];
        const at = rowAt(changes.map(([begin]) => begin), time);
        return at < 0 ? "–" : states[changes[at][1]][1];
      }
      const series = this.spec.series[which], run = data.runs[series.run], row = rowAt(run.times, time);
      const low = run.low[series.key]?.[row], high = run.high[series.key]?.[row] ?? low;
      return low === high ? number(low) : `${number(low)} to ${number(high)}`;
    }

    listen() {
      let begin = null;
      this.svg.addEventListener("pointermove", (event) => {
        moveCursor(this.timeAt(event));
        if (begin === null) return;
        const [left, right] = [begin, cursor].sort((one, other) => one - other);
        this.selection.setAttribute("x", this.x(left));
        this.selection.setAttribute("width", this.x(right) - this.x(left));
      });
      this.svg.addEventListener("pointerdown", (event) => {
        begin = this.timeAt(event);
        moveCursor(begin);
      });
      const finish = (event) => {
        if (begin === null) return;
        const [left, right] = [begin, this.timeAt(event)].sort((one, other) => one - other);
        const wide = this.x(right) - this.x(left) > 6;
        begin = null;
        if (wide) show(left, right); else this.selection.setAttribute("width", 0);
      };
      this.svg.addEventListener("pointerup", finish);
      this.svg.addEventListener("pointercancel", () => { begin = null; this.selection.setAttribute("width", 0); });
      this.svg.addEventListener("pointerleave", () => { if (begin === null) moveCursor(null); });
      this.svg.addEventListener("dblclick", () => show(0, data.end));
      this.svg.addEventListener("keydown", (event) => {
        const span = range[1] - range[0], step = {ArrowLeft: -span / 100, ArrowRight: span / 100}[event.key];
        if (step) moveCursor(Math.min(range[1], Math.max(range[0], (cursor ?? range[0]) + step)));
        else if (event.key === "+") zoom(0.5);
        else if (event.key === "-") zoom(2);
        else if (event.key === "0" || event.key === "Escape") show(0, data.end);
        else return;
        event.preventDefault();
      });
    }
  }

  const charts = [...page.querySelectorAll("figure[data-chart]")].map((figure) => new Chart(figure));
  const label = page.querySelector("#range");
  for (const each of page.querySelectorAll(".tools, .hint")) each.hidden = false;

  function moveCursor(time) {
    cursor = time;
    for (const chart of charts) chart.showCursor();
  }

  function show(begin, end) {
    const span = Math.min(data.end, Math.max(Math.min(SHORTEST, data.end), end - begin));
    begin = Math.min(Math.max(0, begin), data.end - span);
    range = [begin, begin + span];
    for (const chart of charts) chart.draw();
    label.textContent = `${moment(range[0])} to ${moment(range[1])} UTC`;
    showActions();
  }

  function zoom(factor) {
    const span = (range[1] - range[0]) * factor, middle = cursor ?? (range[0] + range[1]) / 2;
    show(middle - span / 2, middle + span / 2);
  }

  function showActions() {
    const body = page.querySelector("#actions tbody");
    if (!body) return;
    const inside = data.actions.filter(([time]) => time >= range[0] && time <= range[1]);
    body.replaceChildren(...inside.slice(0, MOST_ACTIONS).map(([time, before, after, reason, source, lines]) => {
      const row = document.createElement("tr");
      const sources = data.sources ? [data.texts[source]] : [];
      for (const text of [moment(time), ...sources, `${before} → ${after}`]) row.insertCell().textContent = text;
      const cell = row.insertCell();
      cell.textContent = data.texts[reason];
      if (lines && lines.length) {
        const details = document.createElement("details"), summary = document.createElement("summary");
        const list = document.createElement("ul");
        summary.textContent = "why";
        list.append(...lines.map((line) => {
          const item = document.createElement("li");
          item.textContent = data.texts[line];
          return item;
        }));
        details.append(summary, list);
        cell.append(details);
      }
      return row;
    }));
    const shown = Math.min(inside.length, MOST_ACTIONS);
    page.querySelector("#shown").textContent =
      `${shown} of ${data.count} scaling actions${shown < inside.length ? "; zoom in for others" : ""}.`;
  }

  const pan = (share) => show(range[0] + share * (range[1] - range[0]), range[1] + share * (range[1] - range[0]));
  const commands = {
    in: () => zoom(0.5), out: () => zoom(2), earlier: () => pan(-0.5), later: () => pan(0.5), all: () => show(0, data.end),
  };
  for (const button of page.querySelectorAll("button[data-command]")) {
    button.addEventListener("click", commands[button.dataset.command]);
  }
  const redraw = () => { for (const chart of charts) chart.draw(); };
  const content = page.body ?? page;
  let width = content.clientWidth;
  const observer = new ResizeObserver(() => {
    if (content.clientWidth === width) return;
    width = content.clientWidth;
    redraw();
  });
  observer.observe(content);
  addEventListener("beforeprint", redraw);
  show(...visible);
  document.documentElement.dataset.drawn = "true";
  return {
    visible: () => range,
    remove() {
      observer.disconnect();
      removeEventListener("beforeprint", redraw);
    },
  };
}
