// One device in detail: link, values, controls, history, events and rejects.

import { read } from "./api.js";
import { linkSummary } from "./cards.js";
import { Chart, rowWords } from "./chart.js";
import { controlField } from "./controls.js";
import { find, make, setText } from "./dom.js";
import { mergeEvents } from "./model.js";
import { fillEvents, fillFailed, fillRejects } from "./records.js";
import { counted, plain, states, withUnit } from "./words.js";

const minute = 60000;
const day = 1440 * minute;
/** Ranges of the chart: name, length, and the interval of its summaries as text and in milliseconds. */
const ranges = [
  ["5 min", 5 * minute, "1s", 1000], ["1 h", 60 * minute, "15s", 15000], ["6 h", 360 * minute, "2m", 2 * minute],
  ["1 day", day, "5m", 5 * minute], ["1 week", 7 * day, "30m", 30 * minute], ["1 month", 30 * day, "3h", 180 * minute],
  ["3 months", 91 * day, "8h", 480 * minute], ["1 year", 365 * day, "1d", day],
];

export class Detail {
  /** `attempt` runs requests of the user, `attemptRead` those of the page; both report failures. */
  constructor(model, onCommand, attempt, attemptRead) {
    Object.assign(this, { model, onCommand, attempt, attemptRead, name: null, range: ranges[1] });
    this.dialog = find("detail");
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    for (const event of ["device", "values"]) {
      model.addEventListener(event, ({ detail }) => { if (detail === this.name) this.invalidate(); });
    }
    model.addEventListener("description", ({ detail }) => { if (detail === this.name) this.build(); });
    model.addEventListener("devices", () => { if (this.name) this.open(this.name); });
    model.addEventListener("event", ({ detail }) => { if (this.name && detail.device === this.name) this.showEvents(); });
    setInterval(() => this.invalidate(), 1000);
  }

  /** Shows a device; closes the dialog if there is no such device. */
  open(name) {
    if (!this.model.devices.has(name)) return this.dialog.open && this.dialog.close();
    const isOther = name !== this.name;
    this.name = name;
    if (isOther) this.metric = null;
    this.build();
    if (!this.dialog.open) this.dialog.showModal();
  }

  closed() {
    this.name = null;
    this.reading?.abort();
    clearTimeout(this.timer);
    this.dialog.replaceChildren();
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  }

  get device() { return this.model.devices.get(this.name); }

  build() {
    const { device } = this;
    this.state = make("span", { class: "state" });
    this.summaryLine = make("p", { class: "summary" });
    this.button = make("button", { type: "button", onclick: () => this.press() });
    this.values = make("dl", { class: "values wide" });
    this.facts = make("p", { class: "facts" });
    this.controls = device.controls.map((control) => controlField(device, control, this.attempt));
    this.events = make("ol", { class: "list" });
    this.rejects = make("ol", { class: "list" });
    const close = make("button", { type: "button", class: "quiet", autofocus: true, onclick: () => this.dialog.close(), "aria-label": "Close" }, "✕");
    this.body = make("div", { class: "sheet" },
      make("header", {}, make("h2", { id: "detail-title" }, this.name), this.state, this.button, close),
      this.summaryLine, this.facts,
      this.controls.length ? make("section", { "aria-label": "Controls" }, make("h3", {}, "Controls"), ...this.controls.map((each) => each.element)) : null,
      this.measured = make("section", { "aria-label": "Values" }, make("h3", {}, "Values"), this.values),
      this.charted = this.history(),
      make("section", {}, make("h3", {}, "Events"), this.events),
      make("section", {}, make("h3", {}, "Rejects"), this.rejects));
    this.dialog.replaceChildren(this.body);
    this.rows = new Map();
    this.update();
    this.showRecords();
    this.load();
  }

  async press() {
    const { command } = states[this.device.state] ?? {};
    if (!command) return;
    this.button.disabled = true;
    await this.onCommand(this.name, command);
    this.button.disabled = false;
  }

  invalidate() {
    if (!this.name) return;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.name) this.update();
    });
  }

  update() {
    const { device } = this;
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    this.body.dataset.kind = state.kind;
    setText(this.state, state.name);
    setText(this.button, state.button ?? "");
    this.button.classList.toggle("primary", state.command === "connect");
    this.button.disabled = !state.command;
    setText(this.summaryLine, linkSummary(device, this.model.now()));
    const advice = device.suggestedProfile && `add "profiles: [${device.suggestedProfile}]" to its configuration`;
    const facts = [device.modelName, advice, device.address, device.profiles.join(", "), device.adapter && `adapter ${device.adapter}`,
      device.rssi != null && `${device.rssi} dBm`, counted(device.readings, "reading"), counted(device.rejects, "reject")];
    setText(this.facts, facts.filter(Boolean).join(" · "));
    for (const control of this.controls) control.update(device);
    this.updateValues(device);
  }

  updateValues(device) {
    for (const metric of new Set([...(device.metrics?.keys() ?? []), ...Object.keys(device.values)])) {
      if (!this.rows.has(metric)) {
        const body = make("dd", {});
        this.rows.set(metric, body);
        this.values.append(make("dt", {}, plain(metric)), body);
        if (typeof device.values[metric] === "number") this.addChoice(metric);
      }
      setText(this.rows.get(metric), withUnit(device.values[metric], device.unit(metric)));
    }
    this.values.classList.toggle("stale", device.state !== "ready");
    this.measured.hidden = !this.rows.size;
    this.charted.hidden = !this.choice.options.length;
  }

  /** Shows recent events at once, then the older ones and the rejects of history. */
  async showRecords() {
    const { name, events, rejects } = this;
    this.older = null;
    this.showEvents();
    await this.attemptRead(async () => {
      const older = await read("events", { device: name, limit: 200 });
      if (this.events !== events) return;
      this.older = older;
      this.showEvents();
    });
    await this.attemptRead(() => fillRejects(rejects, name));
    for (const list of [events, rejects]) if (!list.children.length) fillFailed(list);
  }

  /** An empty list is not called empty before history was read. */
  showEvents() {
    const known = mergeEvents(this.older ?? [], this.model.events.filter((event) => event.device === this.name));
    if (known.length || this.older) fillEvents(this.events, known, { hasDevice: false });
  }

  // History

  history() {
    this.choice = make("select", { id: "metric", onchange: () => { this.metric = this.choice.value; this.load(); } });
    const buttons = ranges.map((range) => make("button", {
      type: "button",
      "aria-pressed": range === this.range,
      onclick: (event) => this.chooseRange(range, event.target),
    }, range[0]));
    this.readout = make("p", { class: "readout", "aria-live": "polite" });
    this.chart = new Chart((text) => setText(this.readout, text ?? this.summary ?? ""));
    this.table = make("tbody", {});
    return make("section", { "aria-label": "History" },
      make("h3", {}, "History"),
      make("div", { class: "bar" }, make("label", { for: "metric", class: "unseen" }, "Metric"), this.choice,
        make("div", { class: "filters ranges", role: "group", "aria-label": "Range" }, ...buttons)),
      this.chart.canvas, this.readout,
      make("details", {}, make("summary", {}, "As a table"), make("div", { class: "scroll" },
        make("table", {}, make("thead", {}, make("tr", {},
          ...["Time", "Mean, minimum and maximum"].map((title) => make("th", { scope: "col" }, title)))), this.table))));
  }

  /** Adds a metric to the menu of the chart. */
  addChoice(metric) {
    this.choice.append(make("option", { value: metric }, plain(metric)));
    if (this.metric === metric) this.choice.value = metric;
    if (this.metric) return;
    this.metric = metric;
    this.load();
  }

  chooseRange(range, button) {
    this.range = range;
    for (const each of button.parentElement.children) each.setAttribute("aria-pressed", each === button);
    this.load();
  }

  async load() {
    clearTimeout(this.timer);
    this.reading?.abort();
    if (!this.metric || !this.name) return;
    const [title, length, every, step] = this.range;
    const { chart, name, metric } = this;
    this.reading = new AbortController();
    const { signal } = this.reading;
    const to = this.model.now();
    const query = { device: name, metric, since: new Date(to - length).toISOString(), every, limit: 10000 };
    await this.attemptRead(async () => {
      const { rows } = await read("history", query, signal);
      this.show(chart, rows.map((row) => ({ ...row, time: Date.parse(row.ts) })), to - length, to, step, title);
    });
    if (!signal.aborted) this.timer = setTimeout(() => this.load(), Math.min(60000, Math.max(3000, step / 3)));
  }

  show(chart, rows, from, to, step, title) {
    const unit = this.device.unit(this.metric);
    chart.show(rows, from, to, step, unit);
    this.summary = summary(rows, unit, title);
    if (chart.cursor === null) setText(this.readout, this.summary);
    chart.canvas.setAttribute("aria-label", `${plain(this.metric)} of ${this.name}: ${this.summary}. Arrow keys move through the values.`);
    if (!this.table.closest("details").open) return;
    this.table.replaceChildren(...rows.slice(-500).reverse().map((row) => {
      const [time, ...rest] = rowWords(row, unit).split(": ");
      return make("tr", {}, make("td", {}, time), make("td", {}, rest.join(": ")));
    }));
  }
}

function summary(rows, unit, title) {
  if (!rows.length) return `no values in ${title}`;
  const n = rows.reduce((sum, row) => sum + row.n, 0);
  const mean = rows.reduce((sum, row) => sum + row.mean * row.n, 0) / n;
  const [low, high] = [Math.min(...rows.map((row) => row.min)), Math.max(...rows.map((row) => row.max))];
  return `${title}: mean ${withUnit(mean, unit)}, from ${withUnit(low, unit)} to ${withUnit(high, unit)}, ${counted(n, "sample")}`;
}
