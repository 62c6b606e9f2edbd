// The files of a scenario, as `ocf simulate` takes them, and the parts that the page edits.

export const PARTS = ["load", "hpa", "scenario"];
const HPA_LINE = "hpa: hpa.yaml\n";
const LOAD_LINE = "load:\n";

const ended = (text) => (text === "" || text.endsWith("\n") ? text : `${text}\n`);

// The files of the texts of the parts.
export function filesOf(texts) {
  const load = ended(texts.load).replace(/^(?=.)/gm, "  ");
  return {"hpa.yaml": ended(texts.hpa), "scenario.yaml": HPA_LINE + ended(texts.scenario) + LOAD_LINE + load};
}

// The part and the line in it of a line of a file; what has no line belongs to the part of its file.
export function placeOf(texts, file, line) {
  if (file === "hpa.yaml") return {part: "hpa", line};
  if (line === null) return {part: "scenario", line};
  const above = ended(texts.scenario).split("\n").length;
  if (line <= above) return {part: "scenario", line: Math.max(1, line - 1)};
  return {part: "load", line: Math.max(1, line - above - 1)};
}

const MINUTE = 60, HOUR = 3600;

// A duration, such as 1h5m.
export function durationText(seconds) {
  const rounded = Number(seconds.toFixed(6));
  if (!Number.isInteger(rounded) || rounded === 0) return `${rounded}s`;
  const hours = Math.floor(rounded / HOUR), minutes = Math.floor(rounded % HOUR / MINUTE), rest = rounded % MINUTE;
  return (hours ? `${hours}h` : "") + (minutes ? `${minutes}m` : "") + (rest ? `${rest}s` : "");
}

// The load of a curve, as YAML.
export function loadOfCurve({rates, end, fixed}) {
  const lines = ["- type: Steps"];
  if (!fixed) lines.push(`  duration: ${durationText(end)}`);
  lines.push("  steps:");
  rates.forEach((rate, part) => {
    if (rate === rates[part - 1]) return;
    lines.push(`  - {at: ${durationText(end * part / rates.length)}, rate: ${rate}}`);
  });
  return `${lines.join("\n")}\n`;
}

// What the menu adds to the load.
export const GENERATORS = {
  Steady: "- {type: Steady, rate: 20}",
  Ramp: "- {type: Ramp, at: 10m, fromRate: 0, toRate: 60, over: 20m}",
  Spike: "- {type: Spike, at: 20m, peak: 60, rise: 2m, hold: 10m, fall: 5m}",
  Sine: "- {type: Sine, mean: 30, amplitude: 20, period: 30m}",
  Steps: "- {type: Steps, steps: [{at: 0s, rate: 10}, {at: 30m, rate: 40}]}",
  Noise: "- {type: Noise, share: 0.1}",
  Daily: '- {type: Daily, rates: {"00:00": 10, "12:00": 60}}',
  Weekly: '- {type: Weekly, rates: {"00:00": 10, "12:00": 60}, days: {sunday: 0.5}}',
};
