// A new file of the configuration: the rule of its name, and the dialog that asks for it.

import { make, setText } from "./dom.js";

/** The folder of new files, beside the main file. */
export const folder = "gattherd.d/";

/** Returns the problem of a name for a new file, or null; `files` are taken. The gateway has the same rule. */
export function nameProblem(name, files) {
  if (!name.endsWith(".yaml")) return "The name must end in .yaml, for example alerts.yaml.";
  if (!/^[\w.-]+$/.test(name)) return "Use only the letters a-z and A-Z, digits, dots, hyphens and underscores.";
  if (name.startsWith(".")) return "The name must not begin with a dot.";
  if (name.length > 100) return "The name must have at most 100 characters.";
  return files.includes(folder + name) ? "There is a file of this name: open it from the list." : null;
}

export class NewFileDialog {
  /** `files()` returns the names that are taken; `chosen(file)` is called with the new one. */
  constructor(files, chosen) {
    Object.assign(this, { files, chosen });
    this.name = make("input", {
      id: "new-file-name", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "alerts.yaml",
      "aria-describedby": "new-file-problem", oninput: () => this.explain(null),
    });
    this.problem = make("p", { class: "problem", id: "new-file-problem", role: "alert", hidden: true });
    this.element = make("dialog", { "aria-labelledby": "new-file-title" },
      make("form", { method: "dialog", onsubmit: (event) => this.submit(event) },
        make("h2", { id: "new-file-title" }, "New file"),
        make("label", {}, `Name in ${folder}`, this.name), this.problem,
        make("p", { class: "buttons" }, make("button", { type: "button", onclick: () => this.element.close() }, "Cancel"),
          make("button", { class: "primary" }, "Edit"))));
  }

  open() {
    this.name.value = "";
    this.explain(null);
    this.element.showModal();
    this.name.focus();
  }

  explain(problem) {
    setText(this.problem, problem ?? "");
    this.problem.hidden = !problem;
    this.name.setAttribute("aria-invalid", problem !== null);
  }

  submit(event) {
    const name = this.name.value.trim();
    const problem = nameProblem(name, this.files());
    this.explain(problem);
    if (!problem) return this.chosen(folder + name);
    event.preventDefault();
    this.name.focus();
  }
}
