// Lists of events and of rejects: payloads that could not be decoded.

import { read } from "./api.js";
import { find, make } from "./dom.js";
import { address } from "./router.js";
import { eventWords, moment, states } from "./words.js";

/** Entries of a list, newest first. */
const entryLimit = 200;
/** Characters of a payload in hexadecimal digits. */
const payloadLimit = 64;
/** Pause before older events are requested again, in milliseconds. */
const retryPause = 5000;

/** The text of an empty list of events, by the progress of reading older ones. */
const emptyTexts = {
  reading: "Reading older events …",
  failed: "Older events cannot be read now. Trying again …",
  read: "No events yet.",
};

const device = (name) => make("a", { href: address("device", name) }, name);

function eventItem(event, hasDevice) {
  const kind = event.kind === "link" ? states[event.detail.to]?.kind : "";
  return make("li", { "data-kind": kind },
    make("time", { datetime: event.ts }, moment(Date.parse(event.ts))),
    make("span", { class: "what" }, hasDevice && event.device ? device(event.device) : null,
      event.kind === "link" ? null : make("b", {}, event.kind), make("span", {}, eventWords(event))));
}

function rejectItem(reject, hasDevice) {
  const { bytes } = reject;
  const payload = bytes.length > payloadLimit ? `${bytes.slice(0, payloadLimit)}…` : bytes || "no bytes";
  return make("li", { "data-kind": "bad" },
    make("time", { datetime: reject.ts }, moment(Date.parse(reject.ts))),
    make("span", { class: "what" }, hasDevice ? device(reject.device) : null, make("b", {}, reject.characteristic),
      make("span", {}, reject.reason), make("code", {}, payload)));
}

/** Fills a list, newest first; an empty one shows a text. */
function fill(list, entries, item, emptyText, hasDevice) {
  list.replaceChildren(...entries.slice(-entryLimit).reverse().map((entry) => item(entry, hasDevice)));
  if (!entries.length) list.append(make("li", { class: "none" }, emptyText));
}

/** Shows that a list could not be read. */
export const fillFailed = (list) => fill(list, [], null, "This list cannot be read now.", false);

/** Shows events; `older` is the progress of reading older ones. */
export function fillEvents(list, events, { hasDevice = true, older = "read" } = {}) {
  fill(list, events, eventItem, emptyTexts[older], hasDevice);
}

/** Reads and shows the rejects of a device, or of all devices. */
export async function fillRejects(list, name = undefined) {
  fill(list, await read("rejects", { device: name, limit: entryLimit }), rejectItem, "No rejects: all payloads were decoded.", name === undefined);
}

/** The two lists of the page. */
export class Records {
  constructor(model, onError) {
    Object.assign(this, { model, onError, older: "reading", timer: null });
    this.tabs = ["events", "rejects"].map((name) => ({ name, tab: find(`tab-${name}`), list: find(name) }));
    for (const { name, tab } of this.tabs) {
      tab.addEventListener("click", () => this.choose(name));
      tab.addEventListener("keydown", (event) => {
        if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.choose(name === "events" ? "rejects" : "events", true);
      });
    }
    model.addEventListener("events", () => this.showEvents());
    model.addEventListener("devices", () => this.readOlder());
    model.addEventListener("event", (event) => this.add(event.detail));
  }

  showEvents() {
    fillEvents(find("events"), this.model.events, { older: this.older });
  }

  /** Reads older events from history once: the stream begins with those since the daemon's start. */
  async readOlder() {
    if (this.isReading || this.older === "read") return;
    this.isReading = true;
    clearTimeout(this.timer);
    try {
      const events = await read("events", { limit: entryLimit });
      this.older = "read";
      this.model.addOlderEvents(events);
    } catch (error) {
      this.older = "failed";
      this.showEvents();
      // With a new token comes a new snapshot.
      if (!error.wantsToken) this.timer = setTimeout(() => this.readOlder(), retryPause);
    }
    this.isReading = false;
  }

  add(event) {
    const list = find("events");
    list.querySelector(".none")?.remove();
    list.prepend(eventItem(event, true));
    if (list.children.length > entryLimit) list.lastElementChild.remove();
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
      fillFailed(find("rejects"));
      this.onError(error);
    }
  }
}
