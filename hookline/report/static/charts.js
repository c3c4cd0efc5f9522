"use strict";
// Charts of curves: grouping, drawing, smoothing, hovering and updating.
// With several runs, the color identifies the run and the dash one of its curves.
const DASHES = [undefined, [7, 4], [2, 3], [10, 3, 2, 3]];
const GROUPS = ["Curves", "Learning rate", "Phase times", "Speed", "System", "Others"];

function placeOf(tag) {
  const parts = tag.split("/"), mode = ["train", "val", "test"].includes(parts[0]) ? parts[0] : "";
  const name = mode ? parts.slice(1).join("/") : tag;
  if (/^(lr|momentum)(_|\b)/.test(name)) { // lr_NAME is the rate of one of several optimizers.
    return { group: "Learning rate", chart: name.startsWith("lr") ? "learning rate" : "momentum", label: name };
  }
  if (/^time\/(data|forward|backward|optimizer|hooks)$/.test(tag)) {
    return { group: "Phase times", chart: "time per iteration", label: tag.slice(5), unit: seconds };
  }
  if (/^(time\/|throughput\/)/.test(tag) || ["time", "data_time", "eta"].includes(name)) {
    const isTime = ["time", "data_time", "eta"].includes(name);
    return { group: "Speed", chart: name, label: name, unit: isTime ? seconds : number };
  }
  if (/^(system|memory)\//.test(tag)) return { group: "System", chart: tag, label: tag };
  if (mode) return { group: "Curves", chart: name, label: tag };
  return { group: "Others", chart: tag, label: tag };
}

// Return the background of a curve's mark in the legend: its color, interrupted like its line.
function legendMark(code, dash) {
  const stroke = `var(--c${code % 8})`;
  if (!dash) return stroke;
  let at = 0;
  const stops = dash.map((length, index) => {
    const from = at;
    at += length;
    return `${index % 2 ? "transparent" : stroke} ${from}px ${at}px`;
  });
  return `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
}

// Return {group: {chart: [{run, index, tag, label, curve}]}} in the order of the page.
function arrange(runs) {
  const groups = new Map(GROUPS.map((name) => [name, new Map()]));
  runs.forEach((run, index) => {
    for (const [tag, curve] of Object.entries(run.curves)) {
      if (!curve.x.length) continue;
      const place = placeOf(tag), charts = groups.get(place.group);
      if (!charts.has(place.chart)) charts.set(place.chart, []);
      charts.get(place.chart).push({ run, index, tag, label: place.label, curve, unit: place.unit || number });
    }
  });
  const rank = (name) => (/loss/.test(name) ? 0 : /acc/.test(name) ? 1 : 2);
  const order = (a, b) => rank(a[0]) - rank(b[0]) || a[0].localeCompare(b[0]);
  groups.set("Curves", new Map([...groups.get("Curves")].sort(order)));
  return groups;
}

// Return the exponential moving average, corrected for the bias of its start.
function smooth(values, weight) {
  let mean = 0, total = 0;
  return values.map((value) => {
    mean = mean * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return mean / total;
  });
}

function nearest(values, index) {
  for (let distance = 0; distance < values.length; distance++) {
    if (values[index - distance] !== null && values[index - distance] !== undefined) return index - distance;
    if (values[index + distance] !== null && values[index + distance] !== undefined) return index + distance;
  }
  return index;
}

// Return the position of an iteration in epochs, between the ends of epochs of a run.
function epochOf(ends, iteration) {
  let before = [0, 0], after = [0, 0];
  for (const end of ends) {
    if (end[0] > after[0]) [before, after] = [after, end];
    if (after[0] >= iteration) break;
  }
  if (after[0] === before[0]) return after[1];
  return after[1] + ((iteration - after[0]) * (after[1] - before[1])) / (after[0] - before[0]);
}

// Return the iterations of the ticks: ends of epochs, at most as many as fit.
function epochTicks(ends, min, max, most) {
  const shown = ends.filter((end) => end[0] >= min && end[0] <= max);
  if (shown.length < 2) return [min, (min + max) / 2, max]; // inside of an epoch
  let stride = 1;
  for (const factor of [2, 5, 10, 20, 50, 100, 200, 500, 1000]) if (shown.length / stride > most) stride = factor;
  const spread = shown.filter((end) => end[1] % stride === 0);
  return (spread.length > 1 ? spread : [shown[0], shown[shown.length - 1]]).map((end) => end[0]);
}

// Metrics are drawn over epochs if all runs of their chart count validations by epoch.
function epochEnds(curves) {
  const isMetric = curves.some(({ tag }) => /^(val|test)\//.test(tag));
  const runs = curves.map(({ run }) => run.epoch_ends || []);
  const isSame = runs.every((ends) => ends.length && JSON.stringify(ends) === JSON.stringify(runs[0]));
  return isMetric && isSame ? runs[0] : null;
}

class Chart {
  constructor(title) {
    this.title = title;
    this.place = el("div", { class: "plot" });
    this.node = el("div", { class: "card chart" }, el("h3", {}, title), this.place);
    this.node.dataset.chart = title;
    this.shape = "";
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  show(curves, runCount, weight) {
    this.ends = epochEnds(curves);
    this.unit = curves[0].unit;
    const position = (value) => (this.ends ? number(epochOf(this.ends, value)) : String(value));
    const axis = this.ends ? "epoch" : "iteration";
    const series = [{ label: axis, value: (u, value) => (value === null ? "" : position(value)) }], tables = [];
    this.marks = ["transparent"]; // in the legend, for each series; the first is the x axis
    const seen = {}; // the number of curves of each run in this chart so far
    curves.forEach(({ run, index, label, curve }, order) => {
      const several = runCount > 1, code = several ? index : order;
      seen[index] = (seen[index] ?? -1) + 1;
      const name = several ? `${label} · ${run.name}` : label;
      const line = { label: name, spanGaps: true, dash: several ? DASHES[seen[index] % DASHES.length] : undefined };
      const few = curve.x.length < 60;
      tables.push([curve.x, curve.y]);
      const raw = weight ? { alpha: 0.3, width: 1 } : { alpha: 1, width: 1.6 };
      line.stroke = () => color(code);
      line.value = (u, value) => (value === null || value === undefined ? "–" : this.unit(value));
      series.push({ ...line, ...raw, points: { show: few, size: 5 } });
      this.marks.push(legendMark(code, line.dash));
      if (weight) {
        const xs = curve.mean_x || curve.x, ys = curve.mean_y || curve.y;
        tables.push([xs, smooth(ys, weight)]);
        series.push({ ...line, label: `${name}, smoothed`, width: 2, points: { show: false } });
        this.marks.push(legendMark(code, line.dash));
      }
    });
    const data = tables.length ? uPlot.join(tables) : [[]];
    const shape = JSON.stringify([series.map((each) => each.label), weight, curves.map((each) => each.curve.x.length < 60)]);
    if (this.plot && shape === this.shape) {
      const zoomed = this.zoomed();
      this.plot.setData(data, !zoomed);
      if (zoomed) this.plot.redraw();
      this.showLast(this.plot);
    } else {
      this.build(series, data);
      this.shape = shape;
    }
  }

  zoomed() {
    const { min, max } = this.plot.scales.x, xs = this.plot.data[0];
    return xs.length > 1 && (min > xs[0] || max < xs[xs.length - 1]);
  }

  build(series, data) {
    const kept = this.plot && this.zoomed() ? { min: this.plot.scales.x.min, max: this.plot.scales.x.max } : null;
    if (this.plot) this.plot.destroy();
    const line = { stroke: () => css("--line"), width: 1 };
    const axis = { stroke: () => css("--faint"), grid: { ...line }, ticks: { ...line } };
    const dataIdx = (u, index, hovered) => (index === 0 || hovered === null ? hovered : nearest(u.data[index], hovered));
    this.plot = new uPlot({
      width: this.width(), height: 230, series,
      scales: { x: { time: false } },
      axes: [
        { ...axis, label: series[0].label, labelSize: 16, labelFont: "11px sans-serif",
          ...(this.ends ? { splits: (u, index, min, max) => epochTicks(this.ends, min, max, u.width / 50) } : {}),
          values: (u, values) => values.map((value) => (this.ends ? number(epochOf(this.ends, value)) : number(value))) },
        { ...axis, size: 82, values: (u, values) => values.map((value) => this.unit(value)) },
      ],
      cursor: { sync: { key: "hookline" }, dataIdx },
      legend: { live: true, markers: { width: 0, fill: (u, index) => this.marks[index] } },
      hooks: { setCursor: [(u) => { if (u.cursor.idx === null || u.cursor.left < 0) this.showLast(u); }] },
    }, data, this.place);
    this.showLast(this.plot);
    if (kept) this.plot.setScale("x", kept);
  }

  // Show the last values in the legend while the cursor is not over the chart.
  showLast(u) {
    const last = u.data[0].length - 1;
    if (last >= 0) u.setLegend({ idxs: u.data.map((values) => nearest(values, last)) }, false);
  }

  width() {
    return Math.max(this.place.clientWidth || 440, 200);
  }

  resize() {
    if (this.plot && Math.abs(this.plot.width - this.width()) > 1) this.plot.setSize({ width: this.width(), height: 230 });
  }

  redraw() {
    if (this.plot) this.plot.redraw(false, true);
  }

  reset() {
    const xs = this.plot.data[0];
    if (xs.length) this.plot.setData(this.plot.data, true);
  }
}
