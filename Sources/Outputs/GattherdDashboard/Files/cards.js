// The cards of all devices: only those that can be seen are brought up to date.

import { canvas, find, make, say } from "./dom.js";
import { drawSpark } from "./sparkline.js";
import { counted, kinds, plain, reasonWords, span, states, withUnit } from "./words.js";

/** Lines that a card has for metrics. */
const room = 5;
const byName = new Intl.Collator(undefined, { numeric: true }).compare;

export class Cards {
  /** `onOrder(device, verb)` connects or disconnects, `onOpen(device)` shows the details, `onSee(device)` wants its past. */
  constructor(model, onOrder, onOpen, onSee) {
    Object.assign(this, { model, onOrder, onOpen, onSee });
    this.cards = new Map();
    this.dirty = new Set();
    this.visible = new Set();
    this.filter = "all";
    this.search = "";
    this.frame = 0;
    this.sight = new IntersectionObserver((entries) => this.see(entries), { rootMargin: "200px" });
    this.makeFilters();
    model.addEventListener("devices", () => this.rebuild());
    for (const name of ["device", "values", "description"]) {
      model.addEventListener(name, (event) => this.touch(event.detail));
    }
    model.addEventListener("change", () => this.choose());
    find("search").addEventListener("input", (event) => {
      this.search = event.target.value.trim().toLowerCase();
      this.choose();
    });
    // What counts up and down.
    setInterval(() => { for (const name of this.visible) this.touch(name); }, 1000);
  }

  makeFilters() {
    this.filters = kinds.map(([kind, name]) => {
      const number = make("span", { class: "number" });
      const button = make("button", {
        type: "button",
        "data-kind": kind,
        "aria-pressed": kind === "all",
        onclick: () => this.choose(kind),
      }, name, number);
      find("filters").append(button);
      return { kind, button, number };
    });
  }

  rebuild() {
    const names = [...this.model.devices.keys()].sort(byName);
    for (const [name, card] of this.cards) {
      if (this.model.devices.has(name)) continue;
      this.sight.unobserve(card.item);
      card.item.remove();
      this.cards.delete(name);
      this.visible.delete(name);
    }
    for (const name of names) {
      if (!this.cards.has(name)) this.cards.set(name, this.build(name));
      find("cards").append(this.cards.get(name).item);
      this.touch(name);
    }
    this.choose();
  }

  build(name) {
    const card = { state: make("span", { class: "state" }), story: make("p", { class: "story" }), rows: new Map() };
    card.values = make("dl", { class: "values" });
    card.more = make("p", { class: "more" });
    card.foot = make("span", { class: "foot" });
    card.button = make("button", { type: "button", onclick: () => this.press(name) });
    const open = make("button", { type: "button", class: "open", onclick: () => this.onOpen(name) }, name);
    card.item = make("li", { class: "card", "data-device": name },
      make("h3", {}, open), card.state, card.story, make("div", { class: "measured" }, card.values, card.more),
      make("div", { class: "actions" }, card.foot, card.button));
    this.sight.observe(card.item);
    return card;
  }

  async press(name) {
    const { order } = states[this.model.devices.get(name).state] ?? {};
    const { button } = this.cards.get(name);
    if (!order) return;
    button.disabled = true;
    await this.onOrder(name, order);
    button.disabled = false;
    this.touch(name);
  }

  see(entries) {
    for (const entry of entries) {
      const name = entry.target.dataset.device;
      if (entry.isIntersecting) this.visible.add(name);
      else this.visible.delete(name);
      if (entry.isIntersecting) this.onSee(name);
      this.touch(name);
    }
  }

  /** Shows only what fits the filter and the search. */
  choose(kind = this.filter) {
    this.filter = kind;
    const numbers = {};
    let shown = 0;
    for (const [name, card] of this.cards) {
      const device = this.model.devices.get(name);
      const own = states[device.state]?.kind ?? "idle";
      numbers[own] = (numbers[own] ?? 0) + 1;
      const text = `${name} ${device.address} ${device.profiles.join(" ")}`.toLowerCase();
      const fits = (kind === "all" || own === kind) && text.includes(this.search);
      if (card.item.hidden === fits) card.item.hidden = !fits;
      if (fits) shown += 1;
    }
    numbers.all = this.cards.size;
    for (const filter of this.filters) {
      say(filter.number, String(numbers[filter.kind] ?? 0));
      filter.button.setAttribute("aria-pressed", filter.kind === kind);
      filter.button.hidden = !numbers[filter.kind] && filter.kind !== kind;
    }
    find("empty").hidden = shown > 0;
    say(find("empty"), this.cards.size ? "No device fits." : "The configuration names no devices: find them with gattherd scan, name them, then run gattherd reload.");
  }

  touch(name) {
    this.dirty.add(name);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    for (const name of this.dirty) {
      const device = this.model.devices.get(name);
      if (device && this.visible.has(name)) this.update(this.cards.get(name), device);
    }
    this.dirty.clear();
  }

  update(card, device) {
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    card.item.dataset.kind = state.kind;
    say(card.state, state.name);
    say(card.story, story(device, this.model.now()));
    say(card.button, state.button ?? "");
    card.button.setAttribute("aria-label", `${state.button} ${device.name}`);
    card.button.classList.toggle("primary", state.order === "connect");
    if (!state.order) card.button.disabled = true;
    else if (device.state !== card.buttonState) card.button.disabled = false;
    card.buttonState = device.state;
    say(card.foot, footer(device));
    this.updateValues(card, device);
  }

  updateValues(card, device) {
    const all = sortedMetrics(device);
    // One line is for what there is no room for, unless that is one metric.
    const metrics = all.length > room ? all.slice(0, room - 1) : all;
    say(card.more, all.length > metrics.length ? `and ${all.length - metrics.length} more` : "");
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
      say(row.text, words);
      if (row.text.title !== words) row.text.title = words;
      const isNumber = typeof value === "number";
      if (row.spark.hidden === isNumber) row.spark.hidden = !isNumber;
      row.text.classList.toggle("words", !isNumber);
      if (isNumber) drawSpark(row.spark, device.sparks.get(metric), this.model.now());
    }
    this.order(card, metrics);
    card.values.classList.toggle("stale", device.state !== "ready");
  }

  /** A metric that came late may belong before the others. */
  order(card, metrics) {
    const order = metrics.join();
    if (card.order === order) return;
    card.order = order;
    for (const metric of metrics) card.values.append(card.rows.get(metric).title, card.rows.get(metric).body);
  }

  row(card, name, metric) {
    const text = make("span", { class: "value" });
    const spark = canvas({ class: "spark", "aria-hidden": "true" }, () => this.touch(name));
    const row = { text, spark, title: make("dt", { title: plain(metric) }, plain(metric)), body: make("dd", {}, text, spark) };
    card.values.append(row.title, row.body);
    return row;
  }
}

/** The metrics of a card, the most important first: measurements before states, those before what hardly changes; else as the profiles have them. */
function sortedMetrics(device) {
  const rank = (metric) => {
    if (typeof device.values[metric] === "string") return 2;
    return typeof device.values[metric] === "number" && metric !== "battery_level" ? 0 : 1;
  };
  const known = device.metrics ? [...device.metrics.keys()] : [];
  const all = [...known, ...Object.keys(device.values).filter((metric) => !known.includes(metric))];
  return all.filter((metric) => metric in device.values).sort((one, other) => rank(one) - rank(other));
}

/** Why a link is as it is, and what happens next. */
export function story(device, now) {
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
