// Lists of events and of payloads that did not decode.

import { read } from "./api.js";
import { find, make } from "./dom.js";
import { eventWords, moment, states } from "./words.js";

/** Entries that a list shows. */
const room = 200;

const device = (name) => make("a", { href: `#device/${encodeURIComponent(name)}` }, name);

function eventItem(event, hasDevice) {
  const kind = event.kind === "link" ? states[event.detail.to]?.kind : "";
  return make("li", { "data-kind": kind },
    make("time", { datetime: event.ts }, moment(Date.parse(event.ts))),
    make("span", { class: "what" }, hasDevice && event.device ? device(event.device) : null,
      event.kind === "link" ? null : make("b", {}, event.kind), make("span", {}, eventWords(event))));
}

function rejectItem(reject, hasDevice) {
  return make("li", { "data-kind": "bad" },
    make("time", { datetime: reject.ts }, moment(Date.parse(reject.ts))),
    make("span", { class: "what" }, hasDevice ? device(reject.device) : null, make("b", {}, reject.characteristic),
      make("span", {}, reject.reason), make("code", {}, reject.bytes.length > 64 ? `${reject.bytes.slice(0, 64)}…` : reject.bytes || "no bytes")));
}

/** Fills a list, newest first. */
export function fill(list, entries, item, none, hasDevice) {
  list.replaceChildren(...entries.slice(-room).reverse().map((entry) => item(entry, hasDevice)));
  if (!entries.length) list.append(make("li", { class: "none" }, none));
}

/** Says that a list could not be filled. */
export const fillNothing = (list) => fill(list, [], null, "It could not be read.", false);

export const fillEvents = (list, events, hasDevice = true) => fill(list, events, eventItem, "Nothing has happened yet.", hasDevice);

/** Reads and shows rejects of a device, or of all. */
export async function fillRejects(list, name = undefined) {
  fill(list, await read("rejects", { device: name, limit: room }), rejectItem, "Everything was decoded.", name === undefined);
}

/** The two lists of the page. */
export class Records {
  constructor(model, onError) {
    this.model = model;
    this.onError = onError;
    this.tabs = ["events", "rejects"].map((name) => ({ name, tab: find(`tab-${name}`), list: find(name) }));
    for (const { name, tab } of this.tabs) {
      tab.addEventListener("click", () => this.choose(name));
      tab.addEventListener("keydown", (event) => {
        if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.choose(name === "events" ? "rejects" : "events", true);
      });
    }
    model.addEventListener("events", () => fillEvents(find("events"), model.events));
    model.addEventListener("devices", () => this.readOlder());
    model.addEventListener("event", (event) => this.add(event.detail));
  }

  /** The gateway tells of what happened since its start; history has more. */
  async readOlder() {
    if (this.hasOlder) return;
    this.hasOlder = true;
    try {
      this.model.takeOlderEvents(await read("events", { limit: room }));
    } catch {
      this.hasOlder = false;
    }
  }

  add(event) {
    const list = find("events");
    list.querySelector(".none")?.remove();
    list.prepend(eventItem(event, true));
    if (list.children.length > room) list.lastElementChild.remove();
  }

  async choose(name, takesFocus = false) {
    for (const each of this.tabs) {
      const isChosen = each.name === name;
      each.tab.setAttribute("aria-selected", isChosen);
      each.tab.tabIndex = isChosen ? 0 : -1;
      each.list.hidden = !isChosen;
      if (isChosen && takesFocus) each.tab.focus();
    }
    if (name !== "rejects") return;
    try {
      await fillRejects(find("rejects"));
    } catch (error) {
      this.onError(error);
    }
  }
}
