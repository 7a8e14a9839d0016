// The order and the groups of the devices, as the user has chosen them.

import { make } from "./dom.js";

const byText = new Intl.Collator(undefined, { numeric: true }).compare;
const byName = (one, other) => byText(one.label, other.label) || byText(one.name, other.name);
/** Compares numbers, the largest first; devices without one come last. */
const byNumber = (number) => (one, other) => (number(other) ?? -Infinity) - (number(one) ?? -Infinity) || byName(one, other);

/** Orders: name for people, and the comparison. Batteries begin with the emptiest. */
const orders = {
  name: ["Name", byName],
  signal: ["Signal", byNumber((device) => device.rssi)],
  heard: ["Last heard", byNumber((device) => device.lastHeard || null)],
  battery: ["Battery", byNumber((device) => (device.battery === null ? null : -device.battery))],
};

/** The heading of devices without an area. */
const noArea = "No area";
const key = "gattherd-arrangement";

/** The choice of view, order and groups, kept in this browser. */
export class Arrangement {
  /** `onChange` is called after each choice. */
  constructor(element, onChange) {
    this.onChange = onChange;
    this.choices = { view: "cards", order: "name", isGrouped: false, ...this.stored() };
    if (!orders[this.choices.order]) this.choices.order = "name";
    this.order = make("select", { onchange: () => this.choose({ order: this.order.value }) },
      ...Object.entries(orders).map(([value, [name]]) => make("option", { value }, name)));
    this.order.value = this.choices.order;
    this.group = make("input", { type: "checkbox", onchange: () => this.choose({ isGrouped: this.group.checked }) });
    this.group.checked = this.choices.isGrouped;
    this.views = [["cards", "Cards"], ["list", "List"]].map(([view, name]) =>
      make("button", { type: "button", "data-view": view, onclick: () => this.choose({ view }) }, name));
    element.append(
      make("label", {}, make("span", {}, "Sort by "), this.order),
      this.groupLabel = make("label", { class: "check" }, this.group, " By area"),
      make("div", { class: "filters", role: "group", "aria-label": "View" }, ...this.views));
    this.show();
  }

  stored() {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? {};
    } catch {
      return {};
    }
  }

  choose(choice) {
    Object.assign(this.choices, choice);
    localStorage.setItem(key, JSON.stringify(this.choices));
    this.show();
    this.onChange();
  }

  show() {
    for (const button of this.views) button.setAttribute("aria-pressed", button.dataset.view === this.choices.view);
  }

  get isList() { return this.choices.view === "list"; }

  /** True if the order depends on values, which change. */
  get isMoving() { return this.choices.order !== "name"; }

  /** Returns the devices in groups: pairs of a heading, which is null without groups, and its devices. */
  groups(devices) {
    const sorted = [...devices].sort(orders[this.choices.order][1]);
    const areas = [...new Set(sorted.map((device) => device.area))];
    this.groupLabel.hidden = !areas.some((area) => area !== null);
    if (!this.choices.isGrouped || this.groupLabel.hidden) return [[null, sorted]];
    areas.sort((one, other) => (one === null) - (other === null) || byText(one ?? "", other ?? ""));
    return areas.map((area) => [area ?? noArea, sorted.filter((device) => device.area === area)]);
  }
}
