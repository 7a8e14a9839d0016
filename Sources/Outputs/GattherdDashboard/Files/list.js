// The devices as a list: one row each, with the values that people compare.

import { make, setText } from "./dom.js";
import { address } from "./router.js";
import { metricWords, nameParts, sortedMetrics, span, states, withUnit } from "./words.js";

/** Columns: class, heading, and the text of a device. */
const columns = [
  ["heard", "Last heard", (device, now) => (device.lastHeard ? ago(now - device.lastHeard) : "–")],
  ["signal", "Signal", (device) => (device.rssi == null ? "–" : `${device.rssi}\u00A0dBm`)],
  ["battery", "Battery", (device) => (device.battery === null ? "–" : `${device.battery}\u00A0%`)],
  ["area", "Area", (device) => device.area ?? ""],
];

const ago = (milliseconds) => (milliseconds < 5000 ? "now" : `${span(milliseconds / 1000)} ago`);

export class ListView {
  /** `context` has the model, and `invalidate(device)`. */
  constructor(context) {
    Object.assign(this, context);
    this.bodies = [];
    const heads = [["name", "Name"], ["state-cell", "State"], ["newest", "Newest values"], ...columns];
    this.table = make("table", { class: "device-list" },
      make("caption", { class: "unseen" }, "Devices"),
      make("thead", {}, make("tr", {}, ...heads.map(([name, title]) => make("th", { scope: "col", class: name }, title)))));
    this.element = make("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Devices as a list" }, this.table);
  }

  arrange(groups, itemOf) {
    for (const body of this.bodies) body.remove();
    const heading = (area) => make("tr", { class: "group" }, make("th", { scope: "rowgroup", colspan: columns.length + 3 }, area));
    this.bodies = groups.map(([area, devices]) =>
      make("tbody", {}, ...(area === null ? [] : [heading(area)]), ...devices.map(itemOf)));
    this.table.append(...this.bodies);
  }

  /** Hides groups without a visible row. */
  hideEmptyGroups() {
    for (const body of this.bodies) body.hidden = ![...body.querySelectorAll("[data-device]")].some((row) => !row.hidden);
  }

  build(device) {
    const row = { open: make("a", { class: "open", href: address("device", device.name) }), state: make("span", { class: "state" }) };
    row.newest = make("td", { class: "newest" });
    row.cells = columns.map(([name, , words]) => [make("td", { class: name }), words]);
    row.item = make("tr", { class: "row", "data-device": device.name },
      make("th", { scope: "row", class: "name" }, row.open), make("td", { class: "state-cell" }, row.state), row.newest,
      ...row.cells.map(([cell]) => cell));
    return row;
  }

  update(row, device) {
    const state = states[device.state] ?? { name: device.state, kind: "idle" };
    row.item.dataset.kind = state.kind;
    setText(row.open, device.label);
    if (row.open.title !== device.name) row.open.title = device.name;
    setText(row.state, state.name);
    const all = sortedMetrics(device).filter((metric) => !nameParts(metric).metric.startsWith("battery"));
    const numbers = all.filter((metric) => typeof device.values[metric] === "number");
    const metrics = (numbers.length ? numbers : all).slice(0, 3);
    setText(row.newest, metrics.map((metric) => `${metricWords(metric)} ${withUnit(device.values[metric], device.unit(metric))}`).join(" · "));
    row.newest.classList.toggle("stale", device.state !== "ready");
    for (const [cell, words] of row.cells) setText(cell, words(device, this.model.now()));
  }
}
