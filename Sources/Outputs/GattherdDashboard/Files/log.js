// The newest entries of the gateway's log, by level and device.

import { read } from "./api.js";
import { find, make, setText } from "./dom.js";
import { address } from "./router.js";
import { moment } from "./words.js";

const levels = ["trace", "debug", "info", "notice", "warning", "error"];
const kinds = { warning: "warn", error: "bad", notice: "good" };
/** Entries that are shown. */
const limit = 500;
/** Pause between two readings, in milliseconds. */
const pause = 3000;

export class LogPage {
  /** `attempt(action, onFailure)` runs a request and reports its failure. */
  constructor(model, attempt) {
    Object.assign(this, { model, attempt, isOpen: false, isUnread: false, minimum: "info" });
    model.addEventListener("devices", () => {
      if (!this.isOpen) return;
      this.offerDevices();
      if (this.isUnread) this.load();
    });
  }

  /** Shows the entries of one device, or all. */
  open(device) {
    Object.assign(this, { isOpen: true, device, newest: "" });
    this.list = make("ol", { class: "list log", tabindex: "0", "aria-label": "Log entries, newest first" });
    this.status = make("p", { class: "hint", role: "status" });
    this.level = make("select", { onchange: () => { this.minimum = this.level.value; this.renew(); } },
      ...levels.map((level) => make("option", { value: level, selected: level === this.minimum }, level)));
    this.devices = make("select", { onchange: () => { location.hash = address("log", this.devices.value || null); } });
    this.offerDevices();
    find("log").replaceChildren(make("div", { class: "sheet" },
      make("header", {}, make("h2", {}, "Log")),
      make("div", { class: "bar" }, make("label", {}, "From level ", this.level), make("label", {}, "Device ", this.devices)),
      make("p", { class: "hint" }, "Entries below the level in the configuration are not kept. The journal has older ones: journalctl -u gattherd"),
      this.status, this.list));
    this.load();
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.timer);
  }

  offerDevices() {
    const names = [...new Set([...this.model.devices.keys(), ...(this.device ? [this.device] : [])])].sort();
    this.devices.replaceChildren(make("option", { value: "" }, "all"), ...names.map((name) => make("option", { value: name }, name)));
    this.devices.value = this.device ?? "";
  }

  renew() {
    this.newest = "";
    this.load();
  }

  async load() {
    clearTimeout(this.timer);
    this.isUnread = false;
    const { minimum, device } = this;
    let failure = null;
    const entries = await this.attempt(() => read("log", { level: minimum, device, limit }), (error) => { failure = error; });
    if (!this.isOpen || minimum !== this.minimum || device !== this.device) return;
    if (!entries) return this.offerRetry(failure);
    this.show(entries);
    this.timer = setTimeout(() => this.load(), pause);
  }

  /** Says why the log is not shown. Unless the token is missing, it is read again after the next snapshot. */
  offerRetry(failure) {
    Object.assign(this, { isUnread: !failure?.wantsToken, newest: "" });
    const [words, name] = this.isUnread ? ["The log cannot be read now. ", "Try again"] : ["The log is shown with the token. ", "Show"];
    this.status.replaceChildren(words, make("button", { type: "button", onclick: () => this.load() }, name));
  }

  show(entries) {
    const newest = JSON.stringify([entries.length, entries.at(-1)]);
    if (newest === this.newest) return;
    this.newest = newest;
    setText(this.status, entries.length ? "" : "No entries.");
    this.list.replaceChildren(...entries.reverse().map((entry) => this.item(entry)));
  }

  item({ ts, level, message, fields }) {
    const { device, ...others } = fields;
    const words = Object.entries(others).map(([name, text]) => make("span", { class: "field" }, make("i", {}, name), ` ${text}`));
    return make("li", { "data-kind": kinds[level] ?? "" }, make("time", { datetime: ts }, moment(Date.parse(ts))),
      make("span", { class: "what" }, make("b", {}, level),
        device && this.model.devices.has(device) ? make("a", { href: address("device", device) }, device) : device ? make("span", {}, device) : null,
        make("span", {}, message), ...words));
  }
}
