// The curve of the load: parts of the time of the same length, each with a rate, that are dragged or changed with keys.
import { durationText } from "./files.js";

const HEIGHT = 150, LEFT = 46, RIGHT = 6, TOP = 8, BOTTOM = 20, LINES = 4;
const SMALL = 0.02, LARGE = 0.1;

const short = (value) => Number(value.toPrecision(3));
const niceTop = (value) => {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((each) => each * power).find((each) => each >= value * 0.999999);
};

export class Curve {
  // `onChange` is called with the curve while it is changed.
  constructor(svg, onChange) {
    this.svg = svg;
    this.onChange = onChange;
    this.curve = null;
    this.chosen = 0;
    this.dragging = false;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(svg);
  }

  // Show a curve: `rates`, the `end` in seconds, and whether that is `fixed`.
  set(curve) {
    if (this.dragging) return;
    this.curve = {...curve, rates: curve.rates.map((rate) => Number(rate.toPrecision(4)))};
    this.chosen = Math.min(this.chosen, curve.rates.length - 1);
    this.fit();
    this.draw();
  }

  fit() {
    this.top = niceTop(Math.max(...this.curve.rates) * 1.25 || 10);
  }

  x(part) {
    return LEFT + part / this.curve.rates.length * (this.width - LEFT - RIGHT);
  }

  y(rate) {
    return HEIGHT - BOTTOM - rate / this.top * (HEIGHT - TOP - BOTTOM);
  }

  draw() {
    if (!this.curve) return;
    const {rates, end} = this.curve;
    this.width = Math.max(240, Math.round(this.svg.clientWidth));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.replaceChildren();
    for (let line = 0; line <= LINES; line++) {
      const value = this.top * line / LINES, y = this.y(value);
      this.add("line", {class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y});
      this.add("text", {x: LEFT - 6, y: y + 4, "text-anchor": "end"}).textContent = String(short(value));
    }
    const texts = this.width < 420 ? 2 : 4;
    for (let text = 0; text <= texts; text++) {
      const anchor = text === 0 ? "start" : text === texts ? "end" : "middle";
      const x = this.x(rates.length * text / texts);
      this.add("text", {x, y: HEIGHT - 5, "text-anchor": anchor}).textContent = durationText(end * text / texts);
    }
    let path = "";
    rates.forEach((rate, part) => {
      const x = this.x(part), y = this.y(rate);
      this.add("rect", {class: "part", x, y, width: this.x(part + 1) - x, height: HEIGHT - BOTTOM - y});
      path += `${part ? "L" : "M"}${x} ${y}H${this.x(part + 1)}`;
    });
    this.add("path", {class: "top", d: path});
    const x = this.x(this.chosen);
    this.add("rect", {class: "chosen", x, y: TOP, width: this.x(this.chosen + 1) - x, height: HEIGHT - TOP - BOTTOM});
    this.describe();
  }

  add(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    this.svg.append(made);
    return made;
  }

  describe() {
    const {rates, end} = this.curve, rate = rates[this.chosen];
    const times = [this.chosen, this.chosen + 1].map((part) => durationText(end * part / rates.length));
    this.svg.setAttribute("aria-valuemax", String(this.top));
    this.svg.setAttribute("aria-valuenow", String(rate));
    this.svg.setAttribute("aria-valuetext", `${rate} load units per second from ${times[0]} to ${times[1]}`);
  }

  placeAt(event) {
    const box = this.svg.getBoundingClientRect(), {rates} = this.curve;
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    const height = (HEIGHT - BOTTOM - (event.clientY - box.top)) / (HEIGHT - TOP - BOTTOM);
    const part = Math.min(rates.length - 1, Math.max(0, Math.floor(share * rates.length)));
    return {part, rate: short(Math.min(1, Math.max(0, height)) * this.top)};
  }

  // Change the parts from one place to another, evenly.
  paint(from, to) {
    const steps = Math.abs(to.part - from.part);
    for (let step = 0; step <= steps; step++) {
      const share = steps ? step / steps : 1;
      const part = from.part + Math.sign(to.part - from.part) * step;
      this.curve.rates[part] = short(from.rate + (to.rate - from.rate) * share);
    }
    this.chosen = to.part;
    this.draw();
    this.onChange(this.curve);
  }

  listen() {
    let last = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (!this.curve || event.button !== 0) return;
      this.svg.setPointerCapture(event.pointerId);
      this.dragging = true;
      last = this.placeAt(event);
      this.onChange(this.curve, true);
      this.paint(last, last);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!this.dragging) return;
      const place = this.placeAt(event);
      this.paint(last, place);
      last = place;
    });
    const finish = () => {
      if (!this.dragging) return;
      this.dragging = false;
      this.fit();
      this.draw();
    };
    this.svg.addEventListener("pointerup", finish);
    this.svg.addEventListener("pointercancel", finish);
    this.svg.addEventListener("keydown", (event) => {
      if (!this.curve) return;
      const move = {ArrowLeft: -1, ArrowRight: 1, Home: -this.chosen, End: this.curve.rates.length}[event.key];
      const change = {ArrowUp: SMALL, ArrowDown: -SMALL, PageUp: LARGE, PageDown: -LARGE}[event.key];
      if (move === undefined && change === undefined) return;
      event.preventDefault();
      if (move !== undefined) {
        this.chosen = Math.min(this.curve.rates.length - 1, Math.max(0, this.chosen + move));
        this.draw();
        return;
      }
      const rate = this.curve.rates[this.chosen] + change * (event.shiftKey ? LARGE / SMALL : 1) * this.top;
      this.onChange(this.curve, true);
      const place = {part: this.chosen, rate: short(Math.max(0, rate))};
      this.paint(place, place);
      this.fit();
      this.draw();
    });
  }
}
