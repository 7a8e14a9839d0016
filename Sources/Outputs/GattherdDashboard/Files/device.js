// The page of one device: link, values, controls, history, name and note, events and rejects.

import { read } from "./api.js";
import { controlField, controlShape } from "./controls.js";
import { find, make, setText } from "./dom.js";
import { Downloads } from "./downloads.js";
import { History } from "./history.js";
import { LabelForm } from "./label.js";
import { mergeEvents } from "./model.js";
import { fillEvents, fillFailed, fillRejects } from "./records.js";
import { address } from "./router.js";
import { Explanation } from "./why.js";
import { counted, linkSummary, metricWords, sortedMetrics, states, withUnit } from "./words.js";

/** The shortest pause between two readings of the rejects, in milliseconds. */
const rejectPause = 5000;

export class DevicePage {
  /** `attempt` runs requests of the user, `attemptRead` those of the page; both report failures. */
  constructor(model, onCommand, attempt, attemptRead) {
    Object.assign(this, { model, onCommand, attempt, attemptRead, name: null });
    for (const event of ["device", "values"]) {
      model.addEventListener(event, ({ detail }) => { if (detail === this.name) this.invalidate(); });
    }
    model.addEventListener("description", ({ detail }) => { if (detail === this.name) this.renew(); });
    model.addEventListener("devices", () => { if (this.name) this.renew(); });
    model.addEventListener("event", ({ detail }) => { if (this.name && detail.device === this.name) this.showEvents(); });
    // A snapshot has the events since the stream was lost.
    model.addEventListener("events", () => { if (this.name && this.shape) this.showEvents(); });
    setInterval(() => this.invalidate(), 1000);
  }

  get device() { return this.model.devices.get(this.name); }

  /** Shows a device; one that is not known may come with the first snapshot. */
  open(name) {
    this.name = name;
    this.build();
  }

  close() {
    this.name = null;
    this.history?.stop();
    find("detail").replaceChildren();
  }

  /** Builds the page again if the device came, left, is missing, or has other controls or profiles; else updates it. */
  renew() {
    if (!this.device || this.shape !== this.shapeOf(this.device)) this.build();
    else this.invalidate();
  }

  shapeOf(device) {
    return device ? JSON.stringify([device.name, device.profiles, controlShape(device)]) : "";
  }

  build() {
    this.history?.stop();
    const { device, name } = this;
    this.shape = this.shapeOf(device);
    if (!device) return find("detail").replaceChildren(this.missing());
    this.heading = make("h2", { id: "detail-title" });
    this.state = make("span", { class: "state" });
    this.summaryLine = make("p", { class: "summary" });
    this.note = make("p", { class: "note" });
    this.button = make("button", { type: "button", onclick: () => this.press() });
    this.values = make("dl", { class: "values wide" });
    this.facts = make("dl", { class: "facts" });
    this.controls = device.controls.map((control) => controlField(device, control, this.attempt));
    this.events = make("ol", { class: "list", tabindex: "0", "aria-label": "Events" });
    // The rejects are first read after the events.
    Object.assign(this, { rejectCount: null, rejectsDue: Infinity });
    this.rejects = make("ol", { class: "list", tabindex: "0", "aria-label": "Rejects" });
    this.history = new History(this.model, name, this.attemptRead);
    this.label = new LabelForm(device, this.attempt);
    this.downloads = new Downloads();
    this.body = make("div", { class: "sheet" },
      make("nav", { class: "trail", "aria-label": "Trail" }, make("a", { href: "#" }, "Devices")),
      make("header", {}, this.heading, this.state, this.button), this.summaryLine, this.note,
      new Explanation(name, this.attempt).element, this.measured = section("Values", this.values),
      this.controls.length ? section("Controls", ...this.controls.map((each) => each.element)) : null,
      this.downloads.element, this.history.element, section("About", this.facts, this.label.element), section("Events", this.events),
      section("Rejects", this.rejects),
      make("p", {}, make("a", { href: address("log", name) }, "Log of this device")));
    find("detail").replaceChildren(this.body);
    this.rows = new Map();
    this.update();
    this.showRecords();
  }

  missing() {
    const words = this.model.status ? `There is no device ${this.name}.` : "Reading …";
    return make("div", { class: "sheet" }, make("p", { class: "notice" }, words), make("a", { href: "#" }, "Devices"));
  }

  async press() {
    const { command } = states[this.device?.state] ?? {};
    if (!command) return;
    this.button.disabled = true;
    await this.onCommand(this.name, command);
    this.button.disabled = false;
  }

  invalidate() {
    if (!this.name) return;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.device && this.shape) this.update();
    });
  }

  update() {
    const { device } = this;
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    this.body.dataset.kind = state.kind;
    setText(this.heading, device.label);
    document.title = `${device.label} · ${this.model.status?.gateway ?? "gattherd"}`;
    setText(this.state, state.name);
    setText(this.button, state.button ?? "");
    this.button.hidden = device.onlyAdvertises;
    this.button.classList.toggle("primary", state.command === "connect");
    this.button.disabled = !state.command;
    setText(this.summaryLine, linkSummary(device, this.model.now()));
    setText(this.note, device.note ?? "");
    this.note.hidden = !device.note;
    this.updateFacts(device);
    this.label.update(device);
    for (const control of this.controls) control.update(device);
    this.updateValues(device);
    this.downloads.update(device.records);
    this.history.update();
    this.renewRejects();
  }

  updateFacts(device) {
    const advice = device.suggestedProfile && `add "profiles: [${device.suggestedProfile}]" to its configuration`;
    const text = (name) => (typeof device.values[name] === "string" ? device.values[name] : null);
    const facts = [
      ["Name", device.name], ["Area", device.area], ["Model", device.modelName ?? text("model_number")],
      ["Manufacturer", text("manufacturer_name")], ["Firmware", text("firmware_revision")], ["Address", device.address],
      ["Profiles", device.profiles.join(", ")], ["Advice", advice], ["Adapter", device.adapter],
      ["Signal", device.rssi != null ? `${device.rssi} dBm` : null],
      ["Since the start", `${counted(device.readings, "reading")}, ${counted(device.rejects, "reject")}`],
    ].filter(([, words]) => words);
    const known = JSON.stringify(facts.map(([name]) => name));
    if (this.knownFacts !== known || !this.facts.children.length) {
      this.knownFacts = known;
      this.facts.replaceChildren(...facts.flatMap(([name]) => [make("dt", {}, name), make("dd", {})]));
    }
    const bodies = this.facts.querySelectorAll("dd");
    facts.forEach(([, words], index) => setText(bodies[index], words));
  }

  updateValues(device) {
    const metrics = sortedMetrics(device);
    for (const [metric, body] of this.rows) {
      if (metrics.includes(metric)) continue;
      body.parentElement.remove();
      this.rows.delete(metric);
    }
    for (const metric of metrics) {
      if (!this.rows.has(metric)) {
        const body = make("dd", {});
        this.rows.set(metric, body);
        this.values.append(make("div", {}, make("dt", {}, metricWords(metric)), body));
      }
      setText(this.rows.get(metric), withUnit(device.values[metric], device.unit(metric)));
    }
    this.values.classList.toggle("stale", device.state !== "ready");
    this.measured.hidden = !this.rows.size;
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
    if (this.events !== events) return;
    if (!events.children.length) fillFailed(events);
    this.rejectsDue = 0;
    await this.renewRejects();
  }

  /** Reads the rejects if their number changed since they were read, or if that failed; not more often than the pause. */
  async renewRejects() {
    const { device, name, rejects } = this;
    if (!device || device.rejects === this.rejectCount || performance.now() < this.rejectsDue) return;
    this.rejectsDue = Infinity;
    const count = device.rejects;
    const isRead = await this.attemptRead(() => fillRejects(rejects, name).then(() => true));
    if (this.rejects !== rejects) return;
    if (isRead) this.rejectCount = count;
    else if (!rejects.children.length) fillFailed(rejects);
    this.rejectsDue = performance.now() + rejectPause;
  }

  /** Shows the events. While history has not been read, a list without events is not yet called empty. */
  showEvents() {
    const known = mergeEvents(this.older ?? [], this.model.events.filter((event) => event.device === this.name));
    if (known.length || this.older) fillEvents(this.events, known, { hasDevice: false });
  }
}

const section = (title, ...content) => make("section", { "aria-label": title }, make("h3", {}, title), ...content);
