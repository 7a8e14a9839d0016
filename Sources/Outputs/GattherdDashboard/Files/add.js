// Adds a device: the peripherals in radio range, a proposal for the chosen one, and its first value.

import { addDevice, read } from "./api.js";
import { find, make, setText } from "./dom.js";
import { address } from "./router.js";
import { metricWords, sortedMetrics, states, withUnit } from "./words.js";

/** Pause between two requests for the peripherals in range, in milliseconds; the gateway listens for longer. */
const pause = 2000;

export class AddPage {
  /** `attempt(action)` runs a request and reports its failure. */
  constructor(model, attempt) {
    Object.assign(this, { model, attempt, isOpen: false, chosen: null, rows: new Map() });
    model.addEventListener("values", ({ detail }) => { if (detail === this.added) this.showFirst(); });
    for (const event of ["device", "devices"]) model.addEventListener(event, () => { if (this.added) this.showFirst(); });
  }

  open() {
    this.isOpen = true;
    this.rows.clear();
    this.list = make("tbody", {});
    this.count = make("p", { class: "hint", role: "status" }, "Listening …");
    this.only = make("input", { type: "checkbox", checked: true, onchange: () => this.show(this.peripherals ?? []) });
    this.form = make("div", { class: "proposal" });
    const heads = ["Signal", "Peripheral", "Device"].map((title) => make("th", { scope: "col" }, title));
    find("add").replaceChildren(make("div", { class: "sheet" },
      make("header", {}, make("h2", {}, "Add a device")),
      make("p", { class: "hint" }, "Wake the device and bring it near. The strongest signal comes first."),
      make("label", { class: "check" }, this.only, " Only those that a profile knows"),
      this.count, this.form,
      make("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Peripherals in reach" },
        make("table", { class: "device-list" }, make("caption", { class: "unseen" }, "Peripherals in reach"),
          make("thead", {}, make("tr", {}, ...heads)), this.list))));
    this.listen();
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.timer);
    this.added = null;
  }

  async listen() {
    clearTimeout(this.timer);
    const found = await this.attempt(() => read("peripherals"));
    if (!this.isOpen) return;
    if (!found) return this.offerRetry();
    this.show(found.peripherals);
    this.timer = setTimeout(() => this.listen(), pause);
  }

  /** Offers a button: after a failure, or without the token, the list is requested again only on the user's wish. */
  offerRetry() {
    this.count.replaceChildren("Not listening. ", make("button", { type: "button", onclick: () => this.listen() }, "Listen"));
  }

  show(peripherals) {
    this.peripherals = peripherals;
    const shown = peripherals.filter((each) => !this.only.checked || each.profiles.length || each.device);
    const hidden = peripherals.length - shown.length;
    setText(this.count, `${shown.length} in reach${hidden ? `, ${hidden} that no profile knows` : ""}`);
    for (const [key, row] of this.rows) if (!shown.some((each) => each.address === key)) this.drop(key, row);
    shown.forEach((each, index) => {
      if (!this.rows.has(each.address)) this.rows.set(each.address, this.row(each));
      const row = this.rows.get(each.address);
      this.update(row, each);
      // A row that has the focus or the pointer stays where it is.
      const isHeld = row.item.matches(":hover, :focus-within");
      if (this.list.children[index] !== row.item && !isHeld) this.list.insertBefore(row.item, this.list.children[index] ?? null);
    });
  }

  drop(key, row) {
    if (row.item.matches(":focus-within")) return;
    row.item.remove();
    this.rows.delete(key);
  }

  row(peripheral) {
    const [signal, name, model, action] = [make("td", { class: "strength" }), make("span"), make("b"), make("td")];
    const item = make("tr", { "data-address": peripheral.address }, signal,
      make("th", { scope: "row" }, model, " ", name, make("small", { class: "hint" }, peripheral.address)), action);
    return { cells: [signal, name, model, action], item };
  }

  update(row, each) {
    const [signal, name, model] = row.cells;
    row.each = each;
    setText(signal, each.rssi == null ? "connected" : `${each.rssi}\u00A0dBm`);
    setText(name, each.name ?? "no name");
    setText(model, each.model ?? each.profiles[0]?.name ?? "");
    const kind = each.device ? `device ${each.device}` : each.private ? "private" : "free";
    if (row.kind !== kind) this.offer(row, kind);
    row.button?.setAttribute("aria-label", `Add ${each.model ?? each.name ?? each.address}`);
  }

  /** Offers the device's page or a proposal. Name and profiles may follow the row, so the click uses the newest. */
  offer(row, kind) {
    const { each, cells: [, , , action] } = row;
    Object.assign(row, { kind, button: null });
    if (each.device) action.replaceChildren(make("a", { href: address("device", each.device) }, each.device));
    else if (each.private) action.replaceChildren(make("span", { class: "hint" }, "changes its address"));
    else action.replaceChildren(row.button = make("button", { type: "button", onclick: () => this.propose(row.each) }, "Add"));
  }

  // The proposal

  propose(each) {
    this.chosen = each;
    this.added = null;
    const input = (value, attributes = {}) => make("input", { type: "text", autocomplete: "off", spellcheck: "false", value, ...attributes });
    this.fields = {
      name: input(each.proposal, { required: true, pattern: "[a-z0-9_\\-]{1,64}", title: "a-z, 0-9, - and _" }),
      title: input("", { maxlength: 100, placeholder: "Kitchen window" }), area: input("", { maxlength: 100, placeholder: "Kitchen" }),
      profile: make("select", {}, ...each.profiles.map((profile) => make("option", { value: profile.profile }, `${profile.profile}: ${profile.name}`)),
        ...(each.profiles.length ? [] : [make("option", { value: "" }, "every profile that matches its services")])),
      key: each.key ? input("", { required: true, maxlength: 80, placeholder: "32 hexadecimal digits" }) : null,
    };
    this.preview = make("pre", { class: "yaml", tabindex: "0", "aria-label": "What is written" });
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    const { name, title, area, profile, key } = this.fields;
    const labelled = (words, field) => make("label", {}, words, field);
    const form = make("form", { class: "form", onsubmit: (event) => this.add(event), oninput: () => this.showPreview() },
      labelled("Name, for topics and commands", name), labelled("Name for people", title), labelled("Area", area),
      labelled("Profile", profile), key ? labelled(`Key. ${each.key}`, key) : null, this.preview, this.problem,
      make("p", { class: "buttons" }, make("button", { type: "button", onclick: () => this.form.replaceChildren() }, "Cancel"),
        this.button = make("button", { class: "primary" }, "Add")));
    this.form.replaceChildren(make("h3", {}, each.model ?? each.name ?? each.address), form);
    name.focus();
    name.select();
    this.showPreview();
  }

  get request() {
    const { name, title, area, profile, key } = this.fields;
    const chosen = this.chosen.profiles.find((each) => each.profile === profile.value);
    return {
      address: this.chosen.address, name: name.value.trim(), title: title.value.trim(), area: area.value.trim(),
      profiles: chosen?.named ? [chosen.profile] : [], ...(key ? { key: key.value.trim() } : {}),
    };
  }

  /** Shows the text that would be written, or what is wrong with it; only the newest answer counts. */
  showPreview() {
    clearTimeout(this.previewTimer);
    this.previewTimer = setTimeout(async () => {
      const { request } = this;
      if (!request.name || (this.fields.key && !request.key)) return;
      const sent = this.sent = JSON.stringify(request);
      try {
        const { file, text } = await addDevice({ ...request, preview: true });
        if (sent === this.sent) this.explain(`# ${file}\n${text}`, null);
      } catch (error) {
        if (sent === this.sent) this.explain("", error.message);
      }
    }, 250);
  }

  explain(text, problem) {
    setText(this.preview, text);
    setText(this.problem, problem ?? "");
    this.problem.hidden = !problem;
    this.preview.hidden = !text;
  }

  async add(event) {
    event.preventDefault();
    this.button.disabled = true;
    const { request } = this;
    const done = await this.attempt(() => addDevice(request));
    this.button.disabled = false;
    if (!done) return;
    this.added = done.device;
    this.news = make("p", { role: "status" });
    this.form.replaceChildren(make("h3", {}, `${request.title || done.device} is added`), this.news,
      make("p", {}, make("a", { href: address("device", done.device) }, "Open its page")));
    this.showFirst();
  }

  /** Shows the state of the new device until its first values are there. */
  showFirst() {
    const device = this.model.devices.get(this.added);
    const metrics = device ? sortedMetrics(device) : [];
    const values = metrics.slice(0, 4).map((metric) => `${metricWords(metric)} ${withUnit(device.values[metric], device.unit(metric))}`);
    const state = device ? states[device.state]?.name ?? device.state : "not yet known";
    setText(this.news, values.length ? `First values: ${values.join(", ")}` : `Waiting for its first value: ${state}`);
  }
}
