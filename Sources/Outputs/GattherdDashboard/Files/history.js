// The history of a device: ranges, metrics, a chart of them, a table, files.

import { read } from "./api.js";
import { intervalFor } from "./axes.js";
import { Chart, rowWords, seriesLimit } from "./chart.js";
import { make, setText } from "./dom.js";
import { saveCSV, savePNG } from "./export.js";
import { readSeries } from "./series.js";
import { counted, metricWords, moment, pairNames, sortedMetrics, withUnit } from "./words.js";

const minute = 60000;
const day = 1440 * minute;
/** Ranges of the chart: name and length. */
const ranges = [
  ["5 min", 5 * minute], ["1 h", 60 * minute], ["6 h", 360 * minute], ["1 day", day], ["1 week", 7 * day],
  ["1 month", 30 * day], ["3 months", 91 * day], ["1 year", 365 * day],
];
/** Rows of the table. */
const tableLimit = 500;
/** The shortest range that a zoom shows, in milliseconds. */
const shortest = 5000;
/** The range in which stored metrics are looked for. */
const longestRange = "365d";
/** Rows in which they are looked for: one or two for each metric. */
const storedLimit = 10000;
/** Pause before stored metrics are looked for again after a failure, in milliseconds. */
const retryPause = 5000;
/** Kinds of metrics that are numbers, unless they are texts. */
const quantities = ["gauge", "counter"];

export class History {
  /** `attemptRead` runs a request and reports its failure. */
  constructor(model, name, attemptRead) {
    Object.assign(this, { model, name, attemptRead, range: ranges[1], zoomed: null, chosen: [], metrics: [], readout: "" });
    /** The names of metrics that had a number, and the units of those that only history has. */
    Object.assign(this, { known: new Set(), units: new Map(), isAsked: false, closing: new AbortController() });
    this.chart = new Chart((text) => this.say(text ?? this.summary ?? ""), (from, to) => this.zoom(from, to));
    this.line = make("p", { class: "readout", "aria-live": "polite" });
    this.choices = make("div", { class: "filters metrics", role: "group", "aria-label": "Metrics" });
    this.rangeButtons = ranges.map((range) =>
      make("button", { type: "button", onclick: () => this.chooseRange(range) }, range[0]));
    this.reset = make("button", { type: "button", hidden: true, onclick: () => this.zoom(null, null) }, "Whole range");
    this.table = make("tbody", {});
    this.element = make("section", { "aria-label": "History" }, make("h3", {}, "History"),
      make("div", { class: "bar" }, this.choices,
        make("div", { class: "filters ranges", role: "group", "aria-label": "Range" }, ...this.rangeButtons)),
      this.chart.canvas, this.line, this.tools(), this.details());
    this.showRange();
  }

  tools() {
    const { device } = this;
    return make("div", { class: "bar tools-line" }, this.reset,
      make("button", { type: "button", class: "quiet", onclick: () => saveCSV(this.name, this.chart.series) }, "Save CSV"),
      make("button", { type: "button", class: "quiet", onclick: () => savePNG(`${device.label}, ${this.title}`, this.name, this.chart) }, "Save PNG"),
      make("span", { class: "hint" }, "Drag over the chart to zoom in; + and - zoom at the cursor."));
  }

  details() {
    const head = ["Time", "Metric", "Mean, minimum and maximum"].map((title) => make("th", { scope: "col" }, title));
    this.asTable = make("details", {}, make("summary", {}, "As a table"),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values as a table" },
        make("table", {}, make("thead", {}, make("tr", {}, ...head)), this.table)));
    this.asTable.addEventListener("toggle", () => this.fillTable());
    return this.asTable;
  }

  get device() { return this.model.devices.get(this.name); }

  /** The range in words. */
  get title() { return this.zoomed ? `${moment(this.zoomed.from)} to ${moment(this.zoomed.to)}` : this.range[0]; }

  /** Offers the metrics that have had a number, or may have one in history. */
  update() {
    const { device } = this;
    if (!device) return;
    for (const [name, value] of Object.entries(device.values)) if (typeof value === "number") this.known.add(name);
    const metrics = this.offered(device);
    this.element.hidden = !metrics.length;
    if (!metrics.length) this.findStored();
    if (metrics.join() === this.metrics.join()) return;
    this.metrics = metrics;
    this.choices.replaceChildren(...metrics.map((metric) => make("button", {
      type: "button", "data-metric": metric, onclick: () => this.toggle(metric),
    }, make("i", { class: "swatch", "aria-hidden": "true" }), metricWords(metric))));
    this.keepChosen();
  }

  /** Returns the names of the metrics to choose from, those that had a number first. */
  offered(device) {
    const names = [...expected(device).map((name) => [name, null]), ...[...this.known].map((name) => [name, 0])];
    return sortedMetrics({ metrics: device.metrics, values: Object.fromEntries(names) });
  }

  /** Keeps the chosen metrics that are still offered by this name, or chooses the first one. */
  keepChosen() {
    const before = this.chosen.join();
    this.chosen = this.chosen.filter((metric) => this.metrics.includes(metric));
    if (!this.chosen.length) this.chosen = this.metrics.slice(0, 1);
    this.showChosen();
    if (this.chosen.join() !== before) this.load();
  }

  /** Finds the metrics of the last year in history, once: the newest values are those since the daemon's start. */
  async findStored() {
    if (this.isAsked) return;
    this.isAsked = true;
    const { signal } = this.closing;
    const query = { device: this.name, since: longestRange, every: longestRange, limit: storedLimit };
    const page = await this.attemptRead(() => read("history", query, signal));
    if (signal.aborted) return;
    if (!page) {
      setTimeout(() => { this.isAsked = false; }, retryPause);
      return;
    }
    pairNames(page.rows).forEach((name, index) => {
      this.known.add(name);
      this.units.set(name, page.rows[index].unit);
    });
    this.update();
  }

  /** Adds a metric to the chart or removes it; the last one cannot be removed, and of too many the oldest is. */
  toggle(metric) {
    this.chosen = this.chosen.filter((each) => this.metrics.includes(each));
    if (!this.chosen.includes(metric)) this.chosen = [...this.fitting(metric), metric].slice(-seriesLimit);
    else if (this.chosen.length > 1) this.chosen = this.chosen.filter((each) => each !== metric);
    this.showChosen();
    this.load();
  }

  /** Returns the chosen metrics that fit beside another one: a chart has two axes, and so two units. */
  fitting(metric) {
    const unit = (each) => this.device.unit(each) ?? this.units.get(each) ?? null;
    const others = [...new Set(this.chosen.map(unit))].filter((each) => each !== unit(metric));
    return this.chosen.filter((each) => unit(each) === unit(metric) || unit(each) === others[0]);
  }

  showChosen() {
    for (const button of this.choices.children) {
      const index = this.chosen.indexOf(button.dataset.metric);
      button.setAttribute("aria-pressed", index >= 0);
      button.dataset.series = index + 1;
    }
  }

  chooseRange(range) {
    Object.assign(this, { range, zoomed: null });
    this.showRange();
    this.load();
  }

  zoom(from, to) {
    const isWhole = from === null;
    if (isWhole && !this.zoomed) return;
    const middle = (from + to) / 2;
    const half = Math.max(shortest, to - from) / 2;
    this.zoomed = isWhole ? null : { from: middle - half, to: Math.min(middle + half, this.model.now()) };
    this.chart.cursor = null;
    this.showRange();
    this.load();
  }

  showRange() {
    this.reset.hidden = !this.zoomed;
    this.rangeButtons.forEach((button, index) => button.setAttribute("aria-pressed", !this.zoomed && ranges[index] === this.range));
  }

  /** Shows text below the chart. Screen readers announce it, unless it only renews the summary. */
  say(words, isRenewal = false) {
    this.line.setAttribute("aria-live", isRenewal ? "off" : "polite");
    setText(this.line, words);
  }

  /** Reads and shows the chosen metrics; repeats it while the range ends now. */
  async load(isRenewal = false) {
    this.cancel();
    if (!this.chosen.length || !this.device) return;
    this.reading = new AbortController();
    const { signal } = this.reading;
    const now = this.model.now();
    const [from, to] = this.zoomed ? [this.zoomed.from, this.zoomed.to] : [now - this.range[1], now];
    const [every, step] = intervalFor(to - from);
    await this.attemptRead(async () => {
      const series = [];
      // One after the other: the gateway reads little history at once.
      for (const metric of this.chosen) series.push(await readSeries(this.device, metric, { from, to, every, step }, signal));
      if (!signal.aborted) this.show(series, from, to, step, isRenewal);
    });
    if (!signal.aborted && !this.zoomed) this.timer = setTimeout(() => this.load(true), Math.min(60000, Math.max(3000, step / 3)));
  }

  /** Ends the requests of the chart. */
  cancel() {
    clearTimeout(this.timer);
    this.reading?.abort();
  }

  /** Ends all requests, because the page is left. */
  stop() {
    this.cancel();
    this.closing.abort();
  }

  show(series, from, to, step, isRenewal) {
    this.chart.show(series, from, to, step);
    this.summary = `${this.title}: ${series.map((each) => summary(each, series.length > 1)).join("; ")}`;
    if (this.chart.cursor === null) this.say(this.summary, isRenewal);
    const names = series.map((each) => metricWords(each.metric)).join(", ");
    this.chart.canvas.setAttribute("aria-label", `${names} of ${this.device.label}: ${this.summary}. Arrow keys move through the values.`);
    this.fillTable();
  }

  fillTable() {
    if (!this.asTable.open) return;
    const rows = this.chart.series.flatMap(({ metric, unit, rows: own }) => own.map((row) => [row, metric, unit]));
    rows.sort(([one], [other]) => other.time - one.time);
    this.table.replaceChildren(...rows.slice(0, tableLimit).map(([row, metric, unit]) =>
      make("tr", {}, make("td", {}, moment(row.time)), make("td", {}, metricWords(metric)), make("td", {}, rowWords(row, unit)))));
  }
}

/** Returns the names of quantities that may have numbers in history: of silent streams, and those unknown by now. */
function expected({ streams, values }) {
  const pairs = streams.flatMap(({ stream, metrics }) => metrics.map((metric) => ({ ...metric, stream })));
  const names = pairNames(pairs);
  const heard = new Set(pairs.filter((_, index) => names[index] in values).map(({ stream }) => stream));
  return names.filter((name, index) =>
    quantities.includes(pairs[index].kind) && (values[name] === null || !heard.has(pairs[index].stream)));
}

function summary({ metric, unit, rows }, isNamed) {
  const name = isNamed ? `${metricWords(metric)} ` : "";
  if (!rows.length) return `${name}no values`;
  const n = rows.reduce((sum, row) => sum + row.n, 0);
  const mean = rows.reduce((sum, row) => sum + row.mean * row.n, 0) / n;
  const [low, high] = [Math.min(...rows.map((row) => row.min)), Math.max(...rows.map((row) => row.max))];
  return `${name}mean ${withUnit(mean, unit)}, from ${withUnit(low, unit)} to ${withUnit(high, unit)}, ${counted(n, "sample")}`;
}
