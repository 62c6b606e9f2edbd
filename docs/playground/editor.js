// A text field with line numbers, and the problems of its text.

export class Editor {
  constructor(textarea, onChange) {
    this.field = textarea;
    this.gutter = textarea.parentElement.querySelector(".gutter");
    this.list = document.getElementById(`${textarea.id}-problems`);
    this.problems = [];
    textarea.addEventListener("input", () => {
      this.drawGutter();
      onChange();
    });
    textarea.addEventListener("scroll", () => { this.gutter.scrollTop = textarea.scrollTop; });
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    if (text === this.field.value) return;
    this.field.value = text;
    this.drawGutter();
  }

  // Show problems, each with `line` (from 1, or null) and `text`.
  show(problems) {
    this.problems = problems;
    this.field.setAttribute("aria-invalid", String(problems.length > 0));
    this.list.replaceChildren(...problems.map(({line, text}) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.textContent = line === null ? text : `Line ${line}: ${text}`;
      button.addEventListener("click", () => this.select(line ?? 1));
      item.append(button);
      return item;
    }));
    this.drawGutter();
  }

  select(line) {
    const lines = this.text.split("\n");
    const begin = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.field.focus();
    this.field.setSelectionRange(begin, begin + (lines[line - 1] ?? "").length);
    this.field.scrollTop = this.field.scrollHeight * Math.max(0, line - 4) / lines.length;
  }

  drawGutter() {
    const wrong = new Set(this.problems.map(({line}) => line));
    this.gutter.replaceChildren(...this.text.split("\n").map((_, at) => {
      const row = document.createElement("span");
      row.textContent = String(at + 1);
      if (wrong.has(at + 1)) row.className = "wrong";
      const line = document.createElement("div");
      line.append(row);
      return line;
    }));
    this.gutter.scrollTop = this.field.scrollTop;
  }
}
