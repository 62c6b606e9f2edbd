// The page: texts in, result out, at each change.
import { Curve } from "./curve.js";
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { GENERATORS, PARTS, filesOf, loadOfCurve, placeOf } from "./files.js";
import { Result } from "./result.js";
import { decoded, encoded } from "./share.js";

const DEBOUNCE = 150, SLOW = 700, LINK_DEBOUNCE = 500;
const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const result = new Result($("result"));
const editors = Object.fromEntries(PARTS.map((part) => [part, new Editor($(part), () => changed(DEBOUNCE))]));
const curve = new Curve($("curve"), dragged);
const engine = new Engine({loading, starting, ready, running, view, failed, broken});
const undone = [];
let timer = null, linkTimer = 0, since = 0, recorded = false;

const texts = () => Object.fromEntries(PARTS.map((part) => [part, editors[part].text]));

// What the page does: `data-state` is loading, running, done, invalid, stopped or failed.
function state(name, text, share = null) {
  root.dataset.state = name;
  $("status").textContent = text;
  document.querySelector(".state").classList.toggle("quiet", share === null);
  if (share !== null) $("progress").value = share;
  if (name !== "running") $("stop").hidden = true;
}

function loading(share) {
  state("loading", recorded ? "Loading Python; the result is recorded" : "Loading Python", share * 0.8);
}

function starting() {
  state("loading", recorded ? "Starting Python; the result is recorded" : "Starting Python", 0.9);
}

// Python is loaded again after a stop, and nothing waits for it.
function ready() {
  state("stopped", "Stopped: change the input to simulate again");
}

function running(share) {
  if (performance.now() - since < SLOW) return;
  $("stop").hidden = false;
  state("running", "Simulating", share);
}

// A text has changed: simulate after a delay in milliseconds.
function changed(delay) {
  clearTimeout(timer);
  if (root.dataset.state !== "loading") root.dataset.state = "running";
  recorded = false;
  result.current(false);
  timer = setTimeout(() => {
    timer = null;
    since = performance.now();
    engine.view(filesOf(texts()));
  }, delay);
  // Browsers limit how often an address may change.
  clearTimeout(linkTimer);
  linkTimer = setTimeout(writeLink, LINK_DEBOUNCE);
}

async function writeLink() {
  history.replaceState(null, "", `#${await encoded(texts())}`);
}

function view({problems, ...found}, superseded) {
  if (!problems.length) {
    result.show(found);
    curve.set(found.curve);
  }
  if (superseded || timer !== null) {
    result.current(false);
    return;
  }
  showProblems(problems);
  if (problems.length) state("invalid", `${problems.length} ${problems.length === 1 ? "problem" : "problems"}`);
  else state("done", `${found.title}: ${found.summary}`);
}

function showProblems(problems) {
  const current = texts(), found = Object.fromEntries(PARTS.map((part) => [part, []]));
  for (const {file, line, field, detail} of problems) {
    const place = placeOf(current, file, line);
    found[place.part].push({line: place.line, text: field ? `${field}: ${detail}` : detail});
  }
  for (const part of PARTS) editors[part].show(found[part]);
}

function failed(text) {
  state("failed", `The simulation failed, please report it: ${text}`);
}

function broken(text) {
  state("failed", `The playground could not be loaded: ${text}`);
}

// The curve is changed; `first` says that it is about to be.
function dragged(current, first = false) {
  if (first) {
    undone.push(editors.load.text);
    $("undo").disabled = false;
    return;
  }
  editors.load.text = loadOfCurve(current);
  changed(0);
}

function set(current) {
  for (const part of PARTS) {
    editors[part].text = current[part];
    editors[part].show([]);
  }
  changed(0);
}

async function copied(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    $("status").textContent = `Copied ${name}`;
  } catch {
    $("status").textContent = `The browser does not allow the page to copy ${name}`;
  }
}

async function save(output, name) {
  const {text} = await engine.text(filesOf(texts()), output);
  if (text === undefined) {
    $("status").textContent = "There is nothing to save: the input has problems";
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: name.endsWith("csv") ? "text/csv" : "text/html"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// The texts of an address; null if it has none.
async function shared(address) {
  const fragment = new URL(address).hash.slice(1);
  if (!fragment) return null;
  try {
    return await decoded(fragment, PARTS);
  } catch (error) {
    $("status").textContent = `The link cannot be read: ${error.message}`;
    return null;
  }
}

function listen(examples) {
  examples.forEach(({title}, at) => $("examples").append(new Option(title, String(at))));
  $("examples").addEventListener("change", ({target}) => {
    if (target.value) set(examples[Number(target.value)]);
    target.value = "";
  });
  for (const name of Object.keys(GENERATORS)) $("generators").append(new Option(name, name));
  $("generators").addEventListener("change", ({target}) => {
    const before = editors.load.text;
    editors.load.text = `${before}${before && !before.endsWith("\n") ? "\n" : ""}${GENERATORS[target.value]}\n`;
    target.value = "";
    changed(0);
  });
  $("undo").addEventListener("click", () => {
    editors.load.text = undone.pop();
    $("undo").disabled = !undone.length;
    changed(0);
  });
  $("stop").addEventListener("click", () => {
    engine.stop();
    state("loading", "Stopped; loading Python again", 0);
  });
  $("copy-link").addEventListener("click", async () => {
    await writeLink();
    await copied(location.href, "the link");
  });
  for (const file of ["hpa", "scenario"]) {
    $(`copy-${file}`).addEventListener("click", () => copied(filesOf(texts())[`${file}.yaml`], `${file}.yaml`));
  }
  $("save-csv").addEventListener("click", () => save("csv", "simulation.csv"));
  $("save-report").addEventListener("click", () => save("report", "report.html"));
  addEventListener("hashchange", async ({newURL}) => {
    // A pending link of the current texts may have replaced the address already, so the event is read.
    clearTimeout(linkTimer);
    const found = await shared(newURL);
    if (found) set(found);
  });
}

// The result of an example, recorded when the page was built, until Python has the same.
async function showRecorded(example) {
  const found = await (await fetch("recorded.json")).json();
  if (root.dataset.state !== "loading" || PARTS.some((part) => editors[part].text !== example[part])) return;
  result.show(found);
  curve.set(found.curve);
  recorded = true;
  loading(0);
}

state("loading", "Loading Python", 0);
const examples = await (await fetch("examples.json")).json();
listen(examples);
const given = await shared(location.href);
set(given ?? examples[0]);
if (!given) await showRecorded(examples[0]);
