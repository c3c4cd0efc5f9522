"use strict";
// Helpers to build the page. Data of a run become text nodes, never markup.
function el(tag, about, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(about || {})) {
    if (key === "class") node.className = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") node[key] = value;
    else node.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) node.append(typeof child === "object" ? child : String(child));
  }
  return node;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function color(index) {
  return css(`--c${index % 8}`);
}

function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}

function seconds(value) {
  if (value === 0) return "0 s";
  if (value >= 3600) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  if (value >= 60) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  const short = (scaled) => String(Number(scaled.toPrecision(4))); // without zeros at the end, to fit beside an axis
  if (value >= 1) return `${short(value)} s`;
  return value >= 1e-3 ? `${short(value * 1e3)} ms` : `${short(value * 1e6)} µs`;
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

function clock(moment) {
  return new Date(moment * 1000).toLocaleString();
}

function table(headers, rows) {
  const cell = (tag, value, index) => {
    const numeric = headers[index] && headers[index].endsWith(" ");
    return el(tag, numeric ? { class: "number" } : {}, value);
  };
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, headers.map((text, index) => cell("th", text.trim(), index)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, index) => cell("td", value, index)))))));
}
