// The explanation of a device's state, as `gattherd why` gives it: state, next step, advice.

import { read } from "./api.js";
import { make, setText } from "./dom.js";
import { moment } from "./words.js";

/** Entries of the past that are shown, the newest. */
const limit = 12;

export class Explanation {
  /** `attempt(action)` runs a request and reports its failure. */
  constructor(name, attempt) {
    Object.assign(this, { name, attempt });
    this.status = make("p", { role: "status" });
    this.content = make("div", { class: "why" });
    this.element = make("details", { class: "edit" }, make("summary", {}, "Why, and what comes next"), this.status, this.content);
    this.element.addEventListener("toggle", () => { if (this.element.open) this.load(); });
  }

  async load() {
    setText(this.status, "Reading \u2026");
    const answer = await this.attempt(() => read(`devices/${encodeURIComponent(this.name)}/why`));
    setText(this.status, answer ? answer.headline : "No explanation now.");
    if (answer) this.show(answer);
  }

  show({ next, advice, story }) {
    this.content.replaceChildren(
      make("p", {}, next), ...advice.map((line) => make("p", { class: "remedy" }, line)),
      make("ol", { class: "list", tabindex: "0", "aria-label": "How it came to this" }, ...story.slice(-limit).reverse().map((entry) => make("li", {},
        make("time", { datetime: entry.time }, moment(Date.parse(entry.time))),
        make("span", { class: "what" }, entry.text + (entry.count > 1 ? ` (${entry.count} times)` : ""))))));
  }
}
