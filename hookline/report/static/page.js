"use strict";
// Build the page from its data, and update the live page.
const given = JSON.parse(document.getElementById("data").textContent);
const charts = new Map();
let shown = given, weight = 0;

const SECTIONS = [
  ["Timeline", timelineSection],
  ["Checkpoints", checkpointsSection],
  ["Pictures", (data) => picturesSection(data, (series) => !isGradient(series))],
  ["Records", recordsSection],
  ["Gradient flow", (data) => picturesSection(data, isGradient)],
  ["Hook cost by site", costsSection],
  ["Config", configSection],
  ["Warnings", warningsSection],
];

const slots = {};
function slot(name) {
  if (!slots[name]) slots[name] = { node: el("section", {}), text: "" };
  return slots[name];
}

function put(name, text, make) {
  const place = slot(name);
  if (place.text === text) return;
  place.text = text;
  const body = make();
  place.node.replaceChildren(...(body ? [el("h2", {}, name), ...[body].flat()] : []));
}

function drawCurves(data) {
  for (const [group, found] of arrange(data.runs)) {
    const place = slot(group), names = [...found.keys()];
    if (place.text !== names.join("\n")) {
      place.text = names.join("\n");
      for (const name of names) {
        const key = `${group}\n${name}`;
        if (!charts.has(key)) charts.set(key, new Chart(name));
      }
      const grid = el("div", { class: "grid" }, names.map((name) => charts.get(`${group}\n${name}`).node));
      place.node.replaceChildren(...(names.length ? [el("h2", {}, group), grid] : []));
    }
    for (const [name, curves] of found) charts.get(`${group}\n${name}`).show(curves, data.runs.length, weight);
  }
}

function draw(data) {
  shown = data;
  const first = slot("summary"), text = JSON.stringify(data.runs.map((run) => [run.name, run.state, run.summary]));
  if (first.text !== text) {
    first.text = text;
    first.node.replaceChildren(summarySection(data));
  }
  drawCurves(data);
  for (const [name, make] of SECTIONS) {
    const key = JSON.stringify([data.runs.map((run) => partOf(name, run)), data.differences]);
    put(name, key, () => make(data));
  }
}

function partOf(name, run) {
  const keys = { Timeline: ["sessions"], Checkpoints: ["checkpoints"], Pictures: ["pictures"], Records: ["records"], "Gradient flow": ["pictures"],
    "Hook cost by site": ["costs"], Config: ["config"], Warnings: ["warnings"] };
  return [run.name, ...keys[name].map((key) => run[key])];
}

function controls() {
  const label = el("span", { class: "faint" }, "off");
  const slider = el("input", { type: "range", id: "smoothing", min: 0, max: 0.99, step: 0.01, value: 0 });
  slider.addEventListener("input", () => {
    weight = Number(slider.value);
    label.textContent = weight ? weight.toFixed(2) : "off";
    drawCurves(shown);
  });
  return el("div", { class: "controls" }, el("label", {}, "smoothing", slider, label),
    el("button", { id: "reset", onclick: () => charts.forEach((chart) => chart.plot && chart.reset()) }, "reset zoom"),
    el("span", { class: "faint" }, "drag over a chart to zoom, double-click to reset"));
}

function redrawAll() {
  charts.forEach((chart) => chart.redraw());
}

function begin() {
  const page = document.getElementById("page");
  const title = given.live ? "Runs" : given.runs.map((run) => run.name).join(", ");
  page.replaceChildren(el("h1", {}, title),
    el("div", { class: "faint" }, given.live ? given.live.folder : `Hookline ${given.version}, ${clock(given.made)}`));
  if (given.live) page.append(el("ul", { class: "runs", id: "runs" }), el("div", { class: "faint", id: "connection" }));
  const names = [...GROUPS, ...SECTIONS.map(([name]) => name)];
  page.append(slot("summary").node, controls(), ...names.map((name) => slot(name).node));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    document.querySelectorAll("details").forEach((each) => { each.open = true; });
    redrawAll();
  });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); redrawAll(); });
  if (given.live) follow();
  else draw(given);
  document.documentElement.dataset.ready = "yes";
}

// The live page.
const chosen = new Set();
let known = "", versions = "", touched = false;

async function fetchJson(address, options) {
  const answer = await fetch(address, { cache: "no-store", ...options });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

async function follow() {
  const line = document.getElementById("connection");
  try {
    const { runs } = await fetchJson("api/runs");
    if (!touched && !chosen.size && runs.length) chosen.add(runs[0].id);
    listRuns(runs);
    const wanted = runs.filter((run) => chosen.has(run.id));
    const state = JSON.stringify(wanted.map((run) => [run.id, run.version]));
    if (state !== versions) {
      const query = new URLSearchParams(wanted.map((run) => ["run", run.id]));
      draw(await fetchJson(`api/data?${query}`));
      versions = state;
    }
    line.textContent = "";
  } catch (error) {
    line.textContent = `no connection: ${error.message}`;
  }
  setTimeout(follow, 700);
}

function listRuns(runs) {
  const text = JSON.stringify([runs, [...chosen]]);
  if (text === known) return;
  known = text;
  document.getElementById("runs").replaceChildren(...runs.map((run) => {
    const box = el("input", { type: "checkbox", checked: chosen.has(run.id), onchange: () => {
      touched = true;
      if (box.checked) chosen.add(run.id); else chosen.delete(run.id);
      known = "";
    } });
    const buttons = run.state === "running" && !given.live.read_only
      ? ["save", "stop"].map((action) => el("button", {
        class: action, onclick: (event) => sendRequest(run, action, event.target),
      }, action === "save" ? "save now" : "stop"))
      : [];
    return el("li", {}, el("label", {}, box, el("span", {}, run.name)), el("span", { class: `badge ${run.state}` }, run.state),
      el("span", { class: "faint" }, run.text), el("span", { class: "buttons" }, buttons));
  }));
}

async function sendRequest(run, action, button) {
  if (action === "stop" && !confirm(`Stop ${run.name} at its next seam, with a checkpoint?`)) return;
  button.disabled = true;
  try {
    await fetchJson("api/control", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ run: run.id, action }),
    });
    button.textContent = "requested";
  } catch (error) {
    button.textContent = error.message;
  }
}

begin();
