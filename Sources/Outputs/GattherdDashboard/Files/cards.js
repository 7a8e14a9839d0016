// The card of a device: state, newest values with sparklines, controls.

import { controlField } from "./controls.js";
import { canvas, make, setText } from "./dom.js";
import { address } from "./router.js";
import { drawSpark } from "./sparkline.js";
import { counted, linkSummary, metricWords, sortedMetrics, states, withUnit } from "./words.js";

/** Lines for metrics on a card. */
const rowLimit = 5;
/** The shortest time between two drawings of a sparkline, in milliseconds; a pixel of it stands for a longer time. */
const sparkPause = 950;
/** Controls on a card; a device's page has all. */
const controlLimit = 2;

export class CardView {
  /** `context` has the model, `onCommand`, `attempt` and `invalidate(device)`. */
  constructor(context) {
    Object.assign(this, context);
    this.element = make("ul", { class: "cards" });
  }

  arrange(groups, itemOf) {
    const heading = (area) => make("li", { class: "group" }, make("h3", {}, area));
    this.element.replaceChildren(...groups.flatMap(([area, devices]) =>
      [...(area === null ? [] : [heading(area)]), ...devices.map(itemOf)]));
  }

  /** Hides headings without a visible card. */
  hideEmptyGroups() {
    let heading = null;
    for (const item of this.element.children) {
      if (item.classList.contains("group")) {
        heading = item;
        heading.hidden = true;
      } else if (heading && !item.hidden) {
        heading.hidden = false;
      }
    }
  }

  build(device) {
    const { name } = device;
    const card = { state: make("span", { class: "state" }), summary: make("p", { class: "summary" }), rows: new Map() };
    card.values = make("dl", { class: "values" });
    card.more = make("p", { class: "more" });
    card.foot = make("span", { class: "foot" });
    card.open = make("a", { class: "open", href: address("device", name) });
    card.button = make("button", { type: "button", onclick: () => this.press(card, name) });
    card.fields = device.controls.slice(0, controlLimit).map((control) => controlField(device, control, this.attempt, "card"));
    const controls = make("div", { class: "card-controls", role: "group", "aria-label": `Controls of ${device.label}` },
      ...card.fields.map((field) => field.element));
    card.item = make("li", { class: "card", "data-device": name },
      make("h3", {}, card.open), card.state, card.summary, make("div", { class: "measured" }, card.values, card.more),
      card.fields.length ? controls : null, make("div", { class: "actions" }, card.foot, card.button));
    return card;
  }

  async press(card, name) {
    const { command } = states[this.model.devices.get(name).state] ?? {};
    if (!command) return;
    card.button.disabled = true;
    await this.onCommand(name, command);
    card.button.disabled = false;
    this.invalidate(name);
  }

  update(card, device) {
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    card.item.dataset.kind = state.kind;
    setText(card.open, device.label);
    if (card.open.title !== device.name) card.open.title = device.name;
    setText(card.state, state.name);
    setText(card.summary, linkSummary(device, this.model.now()));
    setText(card.button, state.button ?? "");
    if (card.button.hidden !== device.onlyAdvertises) card.button.hidden = device.onlyAdvertises;
    card.button.setAttribute("aria-label", `${state.button} ${device.label}`);
    card.button.classList.toggle("primary", state.command === "connect");
    if (!state.command) card.button.disabled = true;
    else if (device.state !== card.buttonState) card.button.disabled = false;
    card.buttonState = device.state;
    setText(card.foot, footer(device));
    for (const field of card.fields) field.update(device);
    this.updateValues(card, device);
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
    for (const metric of metrics) this.updateValue(card, device, metric);
    this.sortRows(card, metrics);
    card.values.classList.toggle("stale", device.state !== "ready");
  }

  updateValue(card, device, metric) {
    if (!card.rows.has(metric)) card.rows.set(metric, this.row(card, device.name, metric));
    const row = card.rows.get(metric);
    const value = device.values[metric];
    const words = withUnit(value, device.unit(metric));
    setText(row.text, words);
    if (row.text.title !== words) row.text.title = words;
    const isNumber = typeof value === "number";
    if (row.spark.hidden === isNumber) row.spark.hidden = !isNumber;
    row.text.classList.toggle("words", !isNumber);
    const now = this.model.now();
    if (!isNumber || now - row.drawn < sparkPause) return;
    row.drawn = now;
    drawSpark(row.spark, device.spark(metric), now);
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
    const redraw = () => {
      row.drawn = 0;
      this.invalidate(name);
    };
    const spark = canvas({ class: "spark", "aria-hidden": "true" }, redraw);
    const row = { text, spark, drawn: 0, title: make("dt", { title: metricWords(metric) }, metricWords(metric)), body: make("dd", {}, text, spark) };
    card.values.append(row.title, row.body);
    return row;
  }
}

function footer(device) {
  const parts = [];
  if (device.area) parts.push(device.area);
  if (device.rssi != null) parts.push(`${device.rssi} dBm`);
  if (device.state === "ready" && device.rate >= 0.05) parts.push(`${device.rate.toFixed(1)}/s`);
  if (device.rejects) parts.push(counted(device.rejects, "reject"));
  return parts.join(" · ");
}
