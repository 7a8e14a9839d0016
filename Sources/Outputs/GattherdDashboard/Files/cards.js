// The cards of all devices. Only visible cards are updated.

import { canvas, find, make, setText } from "./dom.js";
import { drawSpark } from "./sparkline.js";
import { counted, kinds, plain, reasonWords, span, states, withUnit } from "./words.js";

/** Lines for metrics on a card. */
const rowLimit = 5;
const byName = new Intl.Collator(undefined, { numeric: true }).compare;

export class Cards {
  /** `onCommand(device, command)` connects or disconnects, `onOpen(device)` shows the details, `onUpdate(device)` follows each update. */
  constructor(model, onCommand, onOpen, onUpdate) {
    Object.assign(this, { model, onCommand, onOpen, onUpdate });
    this.cards = new Map();
    this.outdated = new Set();
    this.visible = new Set();
    this.filter = "all";
    this.search = "";
    this.frame = 0;
    this.observer = new IntersectionObserver((entries) => this.updateVisibility(entries), { rootMargin: "200px" });
    this.makeFilters();
    model.addEventListener("devices", () => this.rebuild());
    for (const name of ["device", "values", "description"]) {
      model.addEventListener(name, (event) => this.invalidate(event.detail));
    }
    model.addEventListener("change", () => this.applyFilter());
    find("search").addEventListener("input", (event) => {
      this.search = event.target.value.trim().toLowerCase();
      this.applyFilter();
    });
    // Durations and countdowns.
    setInterval(() => { for (const name of this.visible) this.invalidate(name); }, 1000);
  }

  makeFilters() {
    this.filters = kinds.map(([kind, name]) => {
      const number = make("span", { class: "number" });
      const button = make("button", {
        type: "button",
        "data-kind": kind,
        "aria-pressed": kind === "all",
        onclick: () => this.applyFilter(kind),
      }, name, number);
      find("filters").append(button);
      return { kind, button, number };
    });
  }

  rebuild() {
    const names = [...this.model.devices.keys()].sort(byName);
    for (const [name, card] of this.cards) {
      if (this.model.devices.has(name)) continue;
      this.observer.unobserve(card.item);
      card.item.remove();
      this.cards.delete(name);
      this.visible.delete(name);
    }
    for (const name of names) {
      if (!this.cards.has(name)) this.cards.set(name, this.build(name));
      find("cards").append(this.cards.get(name).item);
      this.invalidate(name);
    }
    this.applyFilter();
  }

  build(name) {
    const card = { state: make("span", { class: "state" }), summary: make("p", { class: "summary" }), rows: new Map() };
    card.values = make("dl", { class: "values" });
    card.more = make("p", { class: "more" });
    card.foot = make("span", { class: "foot" });
    card.button = make("button", { type: "button", onclick: () => this.press(name) });
    const open = make("button", { type: "button", class: "open", onclick: () => this.onOpen(name) }, name);
    card.item = make("li", { class: "card", "data-device": name },
      make("h3", {}, open), card.state, card.summary, make("div", { class: "measured" }, card.values, card.more),
      make("div", { class: "actions" }, card.foot, card.button));
    this.observer.observe(card.item);
    return card;
  }

  async press(name) {
    const { command } = states[this.model.devices.get(name).state] ?? {};
    const { button } = this.cards.get(name);
    if (!command) return;
    button.disabled = true;
    await this.onCommand(name, command);
    button.disabled = false;
    this.invalidate(name);
  }

  updateVisibility(entries) {
    for (const entry of entries) {
      const name = entry.target.dataset.device;
      if (entry.isIntersecting) this.visible.add(name);
      else this.visible.delete(name);
      this.invalidate(name);
    }
  }

  /** Shows the devices that match the filter and the search. */
  applyFilter(kind = this.filter) {
    this.filter = kind;
    const numbers = {};
    let shown = 0;
    for (const [name, card] of this.cards) {
      const device = this.model.devices.get(name);
      const own = states[device.state]?.kind ?? "idle";
      numbers[own] = (numbers[own] ?? 0) + 1;
      const text = `${name} ${device.address} ${device.profiles.join(" ")} ${device.modelName ?? ""}`.toLowerCase();
      const matches = (kind === "all" || own === kind) && text.includes(this.search);
      if (card.item.hidden === matches) card.item.hidden = !matches;
      if (matches) shown += 1;
    }
    numbers.all = this.cards.size;
    for (const filter of this.filters) {
      setText(filter.number, String(numbers[filter.kind] ?? 0));
      filter.button.setAttribute("aria-pressed", filter.kind === kind);
      filter.button.hidden = !numbers[filter.kind] && filter.kind !== kind;
    }
    find("empty").hidden = shown > 0;
    setText(find("empty"), this.cards.size ? "No device matches." : "No devices yet. Find them with gattherd scan, add them to the configuration, then run gattherd reload.");
  }

  invalidate(name) {
    this.outdated.add(name);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    for (const name of this.outdated) {
      const device = this.model.devices.get(name);
      if (device && this.visible.has(name)) this.update(this.cards.get(name), device);
    }
    this.outdated.clear();
  }

  update(card, device) {
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    card.item.dataset.kind = state.kind;
    setText(card.state, state.name);
    setText(card.summary, linkSummary(device, this.model.now()));
    setText(card.button, state.button ?? "");
    card.button.setAttribute("aria-label", `${state.button} ${device.name}`);
    card.button.classList.toggle("primary", state.command === "connect");
    if (!state.command) card.button.disabled = true;
    else if (device.state !== card.buttonState) card.button.disabled = false;
    card.buttonState = device.state;
    setText(card.foot, footer(device));
    this.updateValues(card, device);
    this.onUpdate(device.name);
  }

  updateValues(card, device) {
    const all = sortedMetrics(device);
    // The last line counts the metrics that are left out, if there are two or more.
    const metrics = all.length > rowLimit ? all.slice(0, rowLimit - 1) : all;
    setText(card.more, all.length > metrics.length ? `and ${all.length - metrics.length} more` : "");
    for (const [metric, row] of card.rows) {
      if (metrics.includes(metric)) continue;
      row.title.remove();
      row.body.remove();
      card.rows.delete(metric);
    }
    for (const metric of metrics) {
      if (!card.rows.has(metric)) card.rows.set(metric, this.row(card, device.name, metric));
      const row = card.rows.get(metric);
      const value = device.values[metric];
      const words = withUnit(value, device.unit(metric));
      setText(row.text, words);
      if (row.text.title !== words) row.text.title = words;
      const isNumber = typeof value === "number";
      if (row.spark.hidden === isNumber) row.spark.hidden = !isNumber;
      row.text.classList.toggle("words", !isNumber);
      if (isNumber) drawSpark(row.spark, device.spark(metric), this.model.now());
    }
    this.sortRows(card, metrics);
    card.values.classList.toggle("stale", device.state !== "ready");
  }

  /** Sorts the rows: a new metric may belong before the others. */
  sortRows(card, metrics) {
    const order = metrics.join();
    if (card.order === order) return;
    card.order = order;
    for (const metric of metrics) card.values.append(card.rows.get(metric).title, card.rows.get(metric).body);
  }

  row(card, name, metric) {
    const text = make("span", { class: "value" });
    const spark = canvas({ class: "spark", "aria-hidden": "true" }, () => this.invalidate(name));
    const row = { text, spark, title: make("dt", { title: plain(metric) }, plain(metric)), body: make("dd", {}, text, spark) };
    card.values.append(row.title, row.body);
    return row;
  }
}

/** Sorts metrics for a card: numbers, then flags and the battery level, then texts; otherwise in the order of the profiles. */
function sortedMetrics(device) {
  const rank = (metric) => {
    if (typeof device.values[metric] === "string") return 2;
    return typeof device.values[metric] === "number" && metric !== "battery_level" ? 0 : 1;
  };
  const known = device.metrics ? [...device.metrics.keys()] : [];
  const all = [...known, ...Object.keys(device.values).filter((metric) => !known.includes(metric))];
  return all.filter((metric) => metric in device.values).sort((one, other) => rank(one) - rank(other));
}

/** Describes a link: duration or next attempt, failed attempts, reason. */
export function linkSummary(device, now) {
  const { hint } = states[device.state] ?? {};
  const since = span((now - device.since) / 1000);
  if (device.state === "ready" && device.reason !== "silent") return `for ${since}`;
  const why = [reasonWords(device.reason), device.detail].filter(Boolean).join(": ");
  const parts = [device.nextRetry ? nextTry(device.nextRetry - now) : `for ${since}`];
  if (device.attempt > 0) parts.push(counted(device.attempt, "failed attempt"));
  parts.push(hint || why);
  return parts.filter(Boolean).join(" · ");
}

const nextTry = (milliseconds) => (milliseconds > 0 ? `again in ${span(Math.ceil(milliseconds / 1000))}` : "trying again");

function footer(device) {
  const parts = [];
  if (device.rssi != null) parts.push(`${device.rssi} dBm`);
  if (device.state === "ready" && device.rate >= 0.05) parts.push(`${device.rate.toFixed(1)}/s`);
  if (device.rejects) parts.push(counted(device.rejects, "reject"));
  return parts.join(" · ");
}
