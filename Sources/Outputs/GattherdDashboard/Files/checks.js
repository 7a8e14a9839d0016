// The checks of the host, as `gattherd doctor` does them: findings with remedies, the gravest first.

import { read } from "./api.js";
import { find, make, setText } from "./dom.js";
import { counted } from "./words.js";

/** Severities, the gravest first: kind for colours, and name. */
const severities = { error: ["bad", "Error"], warning: ["warn", "Warning"], note: ["idle", "Note"], good: ["good", "Good"] };

export class ChecksPage {
  /** `attempt(action)` runs a request and reports its failure. */
  constructor(attempt) {
    Object.assign(this, { attempt, isRunning: false });
  }

  open() {
    if (this.list) return;
    this.list = make("ul", { class: "findings" });
    this.status = make("p", { role: "status", class: "hint" });
    this.button = make("button", { type: "button", onclick: () => this.run() }, "Check again");
    find("checks").replaceChildren(make("div", { class: "sheet" },
      make("header", {}, make("h2", {}, "Checks"), this.button),
      make("p", { class: "hint" }, "The same as gattherd doctor, with the rights of the daemon."), this.status, this.list));
    this.run();
  }

  async run() {
    if (this.isRunning) return;
    this.isRunning = true;
    this.button.disabled = true;
    setText(this.status, "Checking …");
    const findings = await this.attempt(() => read("doctor"));
    this.isRunning = false;
    this.button.disabled = false;
    if (!findings) return setText(this.status, "Not checked.");
    this.show(findings);
  }

  show(findings) {
    const order = Object.keys(severities);
    const rank = (finding) => order.indexOf(finding.severity);
    const count = (severity) => findings.filter((finding) => finding.severity === severity).length;
    setText(this.status, `${counted(count("error"), "error")}, ${counted(count("warning"), "warning")}`);
    this.list.replaceChildren(...[...findings].sort((one, other) => rank(one) - rank(other)).map((finding) => {
      const [kind, name] = severities[finding.severity] ?? ["idle", finding.severity];
      return make("li", { "data-kind": kind }, make("b", {}, `${name}: ${finding.check}`), " ", finding.finding,
        finding.remedy ? make("p", { class: "remedy" }, make("span", { class: "unseen" }, "Remedy: "), make("code", {}, finding.remedy)) : null);
    }));
  }
}
