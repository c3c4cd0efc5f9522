"use strict";
// The parts of the page besides the curves. Each returns a node, or null where there is nothing to show.
const sliders = {}; // where a series of pictures stands, so that news do not move it

function heading(run, index, count, ...more) {
  return el("h3", {}, count > 1 ? el("span", { class: "swatch", style: { background: `var(--c${index % 8})` } }) : null, run.name, more);
}

function perRun(runs, make) {
  const cards = runs.map((run, index) => {
    const body = make(run, index);
    return body ? el("div", { class: "card" }, runs.length > 1 ? heading(run, index, runs.length) : null, body) : null;
  }).filter(Boolean);
  return cards.length ? cards : null;
}

function summarySection(data) {
  return el("div", { class: "cards" }, data.runs.map((run, index) => el("div", { class: "card summary" },
    heading(run, index, data.runs.length, el("span", { class: `badge ${run.state.name}` }, run.state.name)),
    el("dl", {}, run.summary.map(([label, text]) => [el("dt", {}, label), el("dd", {}, text)])))));
}

const MEANING = {
  start: "start", epoch: "epoch", validate: "validation", save: "save", rollback: "rollback", asked: "request",
  stop: "stop", fail: "failure", killed: "interruption", running: "running",
};

function describe(event) {
  const name = event.what === "start" && event.resumed ? "resume" : MEANING[event.what] || event.what;
  const parts = [`${name} at iteration ${event.iter}, epoch ${event.epoch + (event.what === "epoch" ? 1 : 0)}`];
  if (event.seconds !== undefined) parts.push(seconds(event.seconds));
  if (event.from_iter !== undefined) parts.push(`back from iteration ${event.from_iter}`);
  for (const key of ["reason", "error", "action"]) if (event[key]) parts.push(event[key]);
  return parts.join(", ");
}

function timelineSection(data) {
  return perRun(data.runs, (run) => {
    const pieces = run.sessions;
    if (!pieces.length) return null;
    const gap = pieces.length > 1 ? Math.min(0.03, 0.3 / (pieces.length - 1)) : 0;
    const total = pieces.reduce((sum, piece) => sum + Math.max(piece.ended - piece.began, 0.001), 0), share = 1 - gap * (pieces.length - 1);
    const track = el("div", { class: "track" });
    const seen = new Set();
    let at = 0;
    for (const piece of pieces) {
      const length = Math.max(piece.ended - piece.began, 0.001), width = (length / total) * share, percent = (value) => `${(100 * value).toFixed(3)}%`;
      track.append(el("div", { class: "piece", title: `${clock(piece.began)} – ${clock(piece.ended)}`, style: { left: percent(at), width: percent(width) } }));
      for (const event of piece.events) {
        const where = at + width * Math.min(Math.max((event.time - piece.began) / length, 0), 1);
        seen.add(event.what);
        track.append(el("div", { class: `mark ${event.what in MEANING ? event.what : ""}`, title: `${clock(event.time)}: ${describe(event)}`, style: { left: percent(where) } }));
      }
      at += width + gap;
    }
    const keys = Object.keys(MEANING).filter((what) => seen.has(what)).map((what) => [el("span", { class: `key ${what}` }), MEANING[what]]);
    const rare = pieces.flatMap((piece) => piece.events).filter((event) => !["epoch", "validate", "save"].includes(event.what));
    return el("div", {}, track, el("div", { class: "faint" }, keys),
      table(["when", "what"], rare.map((event) => [clock(event.time), describe(event)])));
  });
}

const COSTS = ["hook", "site", "a call ", "longest ", "all ", "of the run ", ""];

function costsSection(data) {
  return perRun(data.runs, (run) => {
    const costs = run.costs;
    if (!costs) return null;
    const phases = Object.entries(costs.phases || {}), whole = phases.reduce((sum, [, value]) => sum + value, 0) || 1;
    const bar = el("div", { class: "bar" }, phases.map(([name, value], index) => el("span", {
      title: `${name}: ${seconds(value)}`, style: { width: `${(100 * value) / whole}%`, background: `var(--c${index})` } })));
    const words = phases.map(([name, value], index) => [el("span", { class: "key", style: { background: `var(--c${index})` } }), `${name} ${Math.round((100 * value) / whole)}%`]);
    const most = Math.max(...costs.hooks.map((row) => row.share), 1e-9);
    const rows = (wanted) => costs.hooks.filter(wanted).map((row) => [row.hook, row.site, seconds(row.seconds_per_call), seconds(row.longest), seconds(row.seconds),
      `${(100 * row.share).toFixed(2)}%`, el("span", { class: "meter", style: { width: `${Math.round((120 * row.share) / most)}px` } })]);
    const seams = Object.entries(costs.seams || {}).map(([name, cell]) => `${name}: ${cell.count} times ${seconds(cell.seconds / cell.count)}`);
    return el("div", {}, el("div", {}, `an iteration took ${seconds(costs.seconds_per_iteration || whole)}`, el("span", { class: "faint" }, words)), bar,
      el("p", { class: "faint" }, seams.join(" · ")), table(COSTS, rows((row) => row.share >= 0.001)),
      el("details", {}, el("summary", {}, "those that took less than a thousandth"), table(COSTS, rows((row) => row.share < 0.001))));
  });
}

function checkpointsSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.checkpoints.length) return null;
    const metrics = [...new Set(run.checkpoints.flatMap((each) => Object.keys(each.metrics)))];
    return table(["names", "epoch ", "iteration ", ...metrics.map((name) => `${name} `), "size ", "saved", ""], run.checkpoints.map((each) => [
      each.names.join(", "), each.epoch, each.iter, ...metrics.map((name) => number(each.metrics[name])), bytes(each.size), clock(each.time), each.note]));
  });
}

function isGradient(series) {
  return /^GradientFlow/.test(series.name);
}

function picturesSection(data, wanted) {
  const cards = data.runs.flatMap((run) => run.pictures.filter((series) => series.frames.length && wanted(series)).map((series) => {
    const key = `${run.folder}\n${series.name}`, last = series.frames.length - 1;
    const image = el("img", { alt: series.name }), label = el("span", { class: "faint" });
    const slider = el("input", { type: "range", min: 0, max: last, step: 1, "aria-label": `time of ${series.name}` });
    const show = (index) => {
      image.src = series.frames[index].src;
      label.textContent = ` iteration ${series.frames[index].step} (${index + 1} of ${last + 1})${series.left_out ? `, ${series.left_out} left out` : ""}`;
    };
    slider.addEventListener("input", () => { sliders[key] = Number(slider.value) === last ? null : Number(slider.value); show(Number(slider.value)); });
    const index = Math.min(sliders[key] ?? last, last);
    slider.value = index;
    show(index);
    return el("div", { class: "card picture" }, el("h3", {}, data.runs.length > 1 ? `${run.name} · ${series.name}` : series.name, label), image, last > 0 ? slider : null);
  }));
  return cards.length ? el("div", { class: "grid" }, cards) : null;
}

function configSection(data) {
  const parts = [];
  if (data.runs.length > 1) {
    parts.push(data.differences.length
      ? el("div", { class: "card differences" }, table(["setting", ...data.runs.map((run) => run.name)], data.differences.map((row) => [row.key, ...row.values.map((value) => value ?? "–")])))
      : el("p", { class: "faint" }, "The configs are the same."));
  }
  for (const run of data.runs) {
    if (run.config) parts.push(el("details", { class: "card" }, el("summary", {}, data.runs.length > 1 ? `config of ${run.name}` : "the whole config"), el("pre", {}, run.config)));
  }
  return parts.length ? parts : null;
}

function warningsSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.warnings.length) return null;
    const rows = run.warnings.map((each) => [each.time ? clock(each.time) : "", el("span", { class: each.level === "warning" ? "warning" : "error" }, each.level), el("pre", {}, each.text)]);
    if (run.warnings_left_out) rows.push(["", "", `and ${run.warnings_left_out} more in hookline.log`]);
    return table(["when", "", "what"], rows);
  });
}
