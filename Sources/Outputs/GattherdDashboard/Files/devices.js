// The devices as cards or as a list: search, filters, order. Only visible devices are updated.

import { CardView } from "./cards.js";
import { controlShape } from "./controls.js";
import { find, make, setText } from "./dom.js";
import { ListView } from "./list.js";
import { Arrangement } from "./order.js";
import { kinds, states } from "./words.js";

/** The shortest time between two drawings, in milliseconds: many devices send more often than people read. */
const drawPause = 480;
/** Pause between two changes of an order that depends on values, in milliseconds. */
const orderPause = 5000;

export class Devices {
  /**
   * `onCommand(device, command)` connects or disconnects, `onUpdate(device)` follows each update, and
   * `attempt(action)` runs a request and reports its failure.
   */
  constructor(model, onCommand, onUpdate, attempt) {
    Object.assign(this, { model, onUpdate, timer: null, drawn: 0, filter: "all", search: "", order: "" });
    this.items = new Map();
    this.outdated = new Set();
    this.visible = new Set();
    const context = { model, onCommand, attempt, invalidate: (name) => this.invalidate(name) };
    this.views = { cards: new CardView(context), list: new ListView(context) };
    this.observer = new IntersectionObserver((entries) => this.updateVisibility(entries), { rootMargin: "200px" });
    this.makeFilters();
    this.arrangement = new Arrangement(find("arrangement"), () => this.reset());
    model.addEventListener("devices", () => this.rebuild());
    for (const name of ["device", "values", "description"]) {
      model.addEventListener(name, (event) => this.invalidate(event.detail));
    }
    model.addEventListener("description", ({ detail }) => this.renew(detail));
    model.addEventListener("change", () => this.applyFilter());
    find("search").addEventListener("input", (event) => {
      this.search = event.target.value.trim().toLowerCase();
      this.applyFilter();
    });
    // Durations and countdowns.
    setInterval(() => { for (const name of this.visible) this.invalidate(name); }, 1000);
    setInterval(() => { if (this.arrangement.isMoving) this.arrange(); }, orderPause);
    this.reset();
  }

  get view() { return this.arrangement.isList ? this.views.list : this.views.cards; }

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

  /** Begins anew with the chosen view. */
  reset() {
    for (const name of [...this.items.keys()]) this.remove(name);
    this.order = "";
    find("cards").replaceChildren(this.view.element);
    this.rebuild();
  }

  remove(name) {
    const { item } = this.items.get(name);
    this.observer.unobserve(item);
    item.remove();
    this.items.delete(name);
    this.visible.delete(name);
  }

  rebuild() {
    for (const name of [...this.items.keys()]) if (!this.model.devices.has(name)) this.remove(name);
    for (const device of this.model.devices.values()) this.add(device);
    this.arrange();
    this.applyFilter();
  }

  add(device) {
    const known = this.items.get(device.name);
    const controls = controlShape(device);
    if (known && known.controls === controls) return;
    if (known) this.remove(device.name);
    const item = { ...this.view.build(device), controls };
    this.items.set(device.name, item);
    this.observer.observe(item.item);
    this.order = "";
  }

  /** Makes the element of a device again if its description, for example its controls, changed. */
  renew(name) {
    this.add(this.model.devices.get(name));
    this.arrange();
  }

  /** Brings the elements into the chosen order, and the headings of groups before them. */
  arrange() {
    const groups = this.arrangement.groups(this.model.devices.values());
    const order = JSON.stringify(groups.map(([area, devices]) => [area, devices.map((device) => device.name)]));
    if (order === this.order) return;
    this.order = order;
    const focused = document.activeElement;
    this.view.arrange(groups, (device) => this.items.get(device.name).item);
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
    for (const name of this.items.keys()) this.invalidate(name);
    this.applyFilter();
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
    const numbers = { all: this.items.size };
    let shown = 0;
    for (const [name, { item }] of this.items) {
      const device = this.model.devices.get(name);
      const own = states[device.state]?.kind ?? "idle";
      numbers[own] = (numbers[own] ?? 0) + 1;
      const matches = (kind === "all" || own === kind) && searched(device).includes(this.search);
      if (item.hidden === matches) item.hidden = !matches;
      if (matches) shown += 1;
    }
    this.view.hideEmptyGroups();
    for (const filter of this.filters) {
      setText(filter.number, String(numbers[filter.kind] ?? 0));
      filter.button.setAttribute("aria-pressed", filter.kind === kind);
      filter.button.hidden = !numbers[filter.kind] && filter.kind !== kind;
    }
    // Before the first snapshot the devices are unknown.
    find("empty").hidden = shown > 0 || !this.model.status;
    if (find("empty").hidden) return;
    find("empty").replaceChildren(...(this.items.size ? ["No device matches."]
      : ["No devices yet. ", make("a", { href: "#add" }, "Add one that is in reach"), "."]));
  }

  invalidate(name) {
    this.outdated.add(name);
    const wait = Math.max(0, this.drawn + drawPause - performance.now());
    this.timer ??= setTimeout(() => requestAnimationFrame(() => this.draw()), wait);
  }

  draw() {
    this.timer = null;
    this.drawn = performance.now();
    for (const name of this.outdated) {
      const device = this.model.devices.get(name);
      if (!device || !this.visible.has(name)) continue;
      this.view.update(this.items.get(name), device);
      this.onUpdate(name);
    }
    this.outdated.clear();
  }
}

/** The text of a device that a search looks into. */
function searched(device) {
  return [device.name, device.title, device.area, device.note, device.address, device.modelName, ...device.profiles]
    .filter(Boolean).join(" ").toLowerCase();
}
