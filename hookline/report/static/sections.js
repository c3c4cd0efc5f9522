"use strict";
// The sections of the page other than curves. Each function returns a node, or null for an empty section.
const sliders = {}; // the position of each picture slider, kept across updates

function runColor(index) {
  return `var(--c${index % 8})`;
}

function percent(share, digits = 3) {
  return `${(100 * share).toFixed(digits)}%`;
}

function heading(run, index, count, ...more) {
  const swatch = count > 1 ? el("span", { class: "swatch", style: { background: runColor(index) } }) : null;
  return el("h3", {}, swatch, run.name, more);
}

function perRun(runs, make) {
  const cards = [];
  runs.forEach((run, index) => {
    const body = make(run, index);
    if (!body) return;
    const title = runs.length > 1 ? heading(run, index, runs.length) : null;
    cards.push(el("div", { class: "card" }, title, body));
  });
  return cards.length ? cards : null;
}

function summarySection(data) {
  return el("div", { class: "cards" }, data.runs.map((run, index) => {
    const badge = el("span", { class: `badge ${run.state.name}` }, run.state.name);
    const facts = run.summary.map(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]);
    return el("div", { class: "card summary" }, heading(run, index, data.runs.length, badge), el("dl", {}, facts));
  }));
}

const MEANING = {
  start: "start", epoch: "epoch", validate: "validation", save: "save", rollback: "rollback", requested: "request",
  stop: "stop", fail: "failure", killed: "interruption", running: "running",
};
const FREQUENT = ["epoch", "validate", "save"]; // marked on the track, but not listed below it
const MIN_LENGTH = 0.001; // seconds of a session on the track

function describe(event) {
  const name = event.what === "start" && event.resumed ? "resume" : MEANING[event.what] || event.what;
  const parts = [`${name} at iteration ${event.iter}, epoch ${event.epoch}`];
  if (event.seconds !== undefined) parts.push(seconds(event.seconds));
  if (event.from_iter !== undefined) parts.push(`from iteration ${event.from_iter}`);
  for (const key of ["reason", "error", "action"]) if (event[key]) parts.push(event[key]);
  return parts.join(", ");
}

function sessionLength(session) {
  return Math.max(session.ended - session.began, MIN_LENGTH);
}

// Draw the sessions of a run one after the other, as wide as they were long, with marks for events.
function timelineTrack(sessions) {
  const gap = sessions.length > 1 ? Math.min(0.03, 0.3 / (sessions.length - 1)) : 0;
  const total = sessions.reduce((sum, session) => sum + sessionLength(session), 0);
  const share = 1 - gap * (sessions.length - 1);
  const track = el("div", { class: "track" });
  let at = 0;
  for (const session of sessions) {
    const length = sessionLength(session);
    const width = (length / total) * share;
    const title = `${clock(session.began)} – ${clock(session.ended)}`;
    track.append(el("div", { class: "piece", title, style: { left: percent(at), width: percent(width) } }));
    for (const event of session.events) {
      const where = at + width * Math.min(Math.max((event.time - session.began) / length, 0), 1);
      const kind = event.what in MEANING ? event.what : "";
      track.append(el("div", {
        class: `mark ${kind}`, title: `${clock(event.time)}: ${describe(event)}`, style: { left: percent(where) },
      }));
    }
    at += width + gap;
  }
  return track;
}

function timelineSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.sessions.length) return null;
    const events = run.sessions.flatMap((session) => session.events);
    const kinds = new Set(events.map((event) => event.what));
    const keys = Object.keys(MEANING).filter((what) => kinds.has(what))
      .map((what) => el("span", { class: "pair" }, el("span", { class: `key ${what}` }), MEANING[what]));
    const listed = events.filter((event) => !FREQUENT.includes(event.what));
    const rows = listed.map((event) => [clock(event.time), describe(event)]);
    return el("div", {}, timelineTrack(run.sessions), el("div", { class: "faint" }, keys), table(["time", "event"], rows));
  });
}

const COSTS = ["hook", "site", "per call ", "longest ", "total ", "of the run ", ""]; // a space aligns numbers right
const MIN_SHARE = 0.001; // of the run; cheaper hooks are folded away

function costRow(row, most) {
  const meter = el("span", { class: "meter", style: { width: `${Math.round((120 * row.share) / most)}px` } });
  const times = [row.seconds_per_call, row.longest, row.seconds].map(seconds);
  return [row.hook, row.site, ...times, percent(row.share, 2), meter];
}

function costsSection(data) {
  return perRun(data.runs, (run) => {
    const costs = run.costs;
    if (!costs) return null;
    const phases = Object.entries(costs.phases || {});
    const whole = phases.reduce((sum, [, value]) => sum + value, 0) || 1;
    const bar = [];
    const words = [];
    phases.forEach(([name, value], index) => {
      const background = `var(--c${index})`;
      const title = `${name}: ${seconds(value)}`;
      bar.push(el("span", { title, style: { width: percent(value / whole), background } }));
      const key = el("span", { class: "key", style: { background } });
      words.push(el("span", { class: "pair" }, key, `${name} ${percent(value / whole, 0)}`));
    });
    const most = Math.max(...costs.hooks.map((row) => row.share), 1e-9);
    const rows = (wanted) => costs.hooks.filter(wanted).map((row) => costRow(row, most));
    const seams = Object.entries(costs.seams || {})
      .map(([name, cell]) => `${name}: ${cell.count} × ${seconds(cell.seconds / cell.count)}`);
    return el("div", {},
      el("div", {}, `${seconds(costs.seconds_per_iteration || whole)} per iteration`, el("span", { class: "faint" }, words)),
      el("div", { class: "bar" }, bar),
      el("p", { class: "faint" }, seams.join(" · ")),
      table(COSTS, rows((row) => row.share >= MIN_SHARE)),
      el("details", {}, el("summary", {}, "hooks below 0.1% of the run"),
        table(COSTS, rows((row) => row.share < MIN_SHARE))));
  });
}

function checkpointsSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.checkpoints.length) return null;
    const metrics = [...new Set(run.checkpoints.flatMap((each) => Object.keys(each.metrics)))];
    const headers = ["names", "epoch ", "iteration ", ...metrics.map((name) => `${name} `), "size ", "saved", ""];
    return table(headers, run.checkpoints.map((each) => {
      const values = metrics.map((name) => number(each.metrics[name]));
      return [each.names.join(", "), each.epoch, each.iter, ...values, bytes(each.size), clock(each.time), each.note];
    }));
  });
}

function isGradient(series) {
  return /^GradientFlow/.test(series.name);
}

const TINY = 200; // pixels of the width of a picture

// One series of pictures with a slider for the iteration.
function pictureCard(run, series, title) {
  const key = `${run.folder}\n${series.name}`;
  const last = series.frames.length - 1;
  const image = el("img", { alt: series.name });
  // An enlarged picture of few pixels keeps their edges.
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < TINY));
  const label = el("span", { class: "faint" });
  const slider = el("input", { type: "range", min: 0, max: last, step: 1, "aria-label": `iteration of ${series.name}` });
  const show = (index) => {
    const missing = series.left_out ? `, ${series.left_out} left out` : "";
    image.src = series.frames[index].src;
    label.textContent = ` iteration ${series.frames[index].step} (${index + 1} of ${last + 1})${missing}`;
  };
  slider.addEventListener("input", () => {
    const index = Number(slider.value);
    sliders[key] = index === last ? null : index; // at the end it follows new pictures
    show(index);
  });
  const index = Math.min(sliders[key] ?? last, last);
  slider.value = index;
  show(index);
  return el("div", { class: "card picture" }, el("h3", {}, title, label), image, last > 0 ? slider : null);
}

function picturesSection(data, wanted) {
  const cards = [];
  for (const run of data.runs) {
    for (const series of run.pictures) {
      if (!series.frames.length || !wanted(series)) continue;
      cards.push(pictureCard(run, series, data.runs.length > 1 ? `${run.name} · ${series.name}` : series.name));
    }
  }
  return cards.length ? el("div", { class: "pictures" }, cards) : null;
}

const BAR_WIDTH = 4, BAR_HEIGHT = 80; // pixels of a bar of a histogram

function histogramBars(record) {
  const most = Math.max(...record.counts, 1);
  const bars = record.counts.map((count, index) => el("span", {
    title: `${number(record.edges[index])} to ${number(record.edges[index + 1])}: ${count}`,
    style: { display: "inline-block", width: `${BAR_WIDTH}px`, height: `${(BAR_HEIGHT * count) / most}px`, background: runColor(0) },
  }));
  const ends = `${number(record.edges[0])} to ${number(record.edges[record.edges.length - 1])}, highest bar ${most}`;
  return [el("div", { class: "scroll" }, bars), el("div", { class: "faint" }, ends)];
}

function recordsSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.records.length) return null;
    return el("div", { class: "records" }, run.records.map((record) => el("div", { class: record.mode },
      el("h3", {}, record.name, el("span", { class: "faint" }, ` ${record.mode}, iteration ${record.step ?? record.iter}`)),
      record.mode === "text" ? el("pre", {}, record.text) : histogramBars(record))));
  });
}

function differencesTable(data) {
  if (!data.differences.length) return el("p", { class: "faint" }, "The configs are equal.");
  const headers = ["setting", ...data.runs.map((run) => run.name)];
  const rows = data.differences.map((row) => [row.key, ...row.values.map((value) => value ?? "–")]);
  return el("div", { class: "card differences" }, table(headers, rows));
}

function configSection(data) {
  const several = data.runs.length > 1;
  const parts = several ? [differencesTable(data)] : [];
  for (const run of data.runs) {
    if (!run.config) continue;
    const title = several ? `config of ${run.name}` : "full config";
    parts.push(el("details", { class: "card" }, el("summary", {}, title), el("pre", {}, run.config)));
  }
  return parts.length ? parts : null;
}

function warningsSection(data) {
  return perRun(data.runs, (run) => {
    if (!run.warnings.length) return null;
    const rows = run.warnings.map((each) => {
      const kind = each.level === "warning" ? "warning" : "error";
      return [each.time ? clock(each.time) : "", el("span", { class: kind }, each.level), el("pre", {}, each.text)];
    });
    if (run.warnings_left_out) rows.push(["", "", `and ${run.warnings_left_out} more in hookline.log`]);
    return table(["time", "", "message"], rows);
  });
}
