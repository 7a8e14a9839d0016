// The configuration: its files, changed with a check in place, a comparison, and a reload.

import { applyFile, checkFile, read, restartGateway } from "./api.js";
import { diff } from "./diff.js";
import { find, make, setText, toast } from "./dom.js";
import { folder, nameProblem, NewFileDialog } from "./newfile.js";
import { address, parsed } from "./router.js";
import { counted } from "./words.js";

/** Pause after the last key before a text is checked, in milliseconds. */
const checkPause = 500;

export class ConfigurationPage {
  /** `attempt(action, onFailure)` runs a request and reports its failure. */
  constructor(model, attempt) {
    Object.assign(this, { model, attempt, files: [], file: null, saved: "", version: null, findings: [], retry: null });
    model.addEventListener("devices", () => this.retry?.());
    model.addEventListener("gateway", () => { if (this.state) this.showState(); });
    window.addEventListener("beforeunload", (event) => { if (this.isChanged) event.preventDefault(); });
  }

  get isChanged() { return Boolean(this.editor) && this.editor.value !== this.saved; }

  /** Shows a file; without a name the main one. A text that is being changed stays. */
  async open(name) {
    if (this.isChanged && (name === null || name === this.file)) return;
    if (this.isChanged && !window.confirm(`Discard the changes of ${this.file}?`)) {
      location.hash = address("configuration", this.file);
      return;
    }
    this.build();
    const opened = this.newest = {};
    let failure = null;
    const list = await this.attempt(() => read("configuration"), (error) => { failure = error; });
    if (opened !== this.newest) return;
    if (!list) {
      const words = failure?.wantsToken ? "The configuration is shown with the token." : "The configuration cannot be read now.";
      return this.say(words, failure, () => this.open(name));
    }
    this.files = list.files;
    this.canRestart = list.can_restart;
    this.showState();
    this.offerNewFile(list.obstacle);
    this.showFiles(name ?? list.files[0]);
    await this.load(name ?? list.files[0]);
  }

  /** Ends reading, and closes the dialog: while it is open, a page that hides it could not be used. */
  close() {
    Object.assign(this, { newest: {}, retry: null });
    this.newFile.element.close();
  }

  /** Builds the page without a file: its editor is disabled until one is loaded. */
  build() {
    clearTimeout(this.timer);
    this.choice = make("ul", { class: "files" });
    this.editor = make("textarea", {
      id: "configuration-text", class: "editor", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", rows: 24, disabled: true,
      "aria-describedby": "configuration-findings", oninput: () => this.edited(),
    });
    this.stateText = make("span", {});
    this.restart = make("button", { type: "button", hidden: true, onclick: () => this.restartGateway() }, "Restart");
    this.state = make("p", { class: "notice state-line", role: "status", hidden: true }, this.stateText, " ", this.restart);
    this.message = make("p", { class: "hint", role: "status" });
    this.newFile = new NewFileDialog(() => this.files, (file) => { location.hash = address("configuration", file); });
    this.add = make("button", {
      type: "button", disabled: true, "aria-haspopup": "dialog", "aria-describedby": "configuration-add", onclick: () => this.newFile.open(),
    }, "New file…");
    this.addReason = make("p", { class: "hint", id: "configuration-add", hidden: true });
    this.list = make("ul", { class: "findings", id: "configuration-findings", "aria-label": "Findings", "aria-live": "polite" });
    this.changes = make("div", { class: "diff" });
    this.apply = make("button", { type: "button", class: "primary", disabled: true, onclick: () => this.save() }, "Apply");
    this.undo = make("button", { type: "button", disabled: true, onclick: () => this.restore() }, "Undo changes");
    find("configuration").replaceChildren(make("div", { class: "sheet configuration" },
      make("header", {}, make("h2", {}, "Configuration"), this.add), this.addReason, this.state, this.message,
      make("div", { class: "halves" },
        make("nav", { "aria-label": "Files" }, this.choice),
        make("div", { class: "half" },
          make("label", { for: "configuration-text", class: "unseen" }, "Text of the file"), this.editor,
          make("div", { class: "buttons" }, this.undo, this.apply), this.list, this.changes))), this.newFile.element);
    Object.assign(this, { file: null, saved: this.editor.value, version: null, findings: [], retry: null });
    this.showState();
  }

  /** Says why there is no text. Unless the token is missing, `retry` is called after the next snapshot. */
  say(words, failure, retry) {
    this.editor.disabled = true;
    this.retry = failure?.wantsToken ? null : retry;
    this.message.replaceChildren(words, " ", make("button", { type: "button", onclick: retry }, "Try again"));
  }

  showFiles(chosen) {
    this.choice.replaceChildren(...this.files.map((file) => make("li", {},
      make("a", { href: address("configuration", file), "aria-current": file === chosen ? "page" : null }, file))));
  }

  /** Enables the button for new files, or says what prevents them. */
  offerNewFile(obstacle) {
    this.add.disabled = Boolean(obstacle);
    setText(this.addReason, obstacle ? `No new files: ${obstacle}` : "");
    this.addReason.hidden = !obstacle;
  }

  /** Shows what waits for a restart, and the error of the last reload. */
  showState() {
    const { configuration } = this.model.status ?? {};
    const waiting = configuration?.restart_needed ?? [];
    this.state.hidden = !configuration;
    const parts = [configuration?.error && `Not reloaded: ${configuration.error}`,
      waiting.length && `Restart needed for ${waiting.join(", ")}.${this.canRestart ? "" : " On the host: systemctl restart gattherd"}`];
    setText(this.stateText, parts.filter(Boolean).join(" "));
    this.restart.hidden = !(waiting.length && this.canRestart);
  }

  async restartGateway() {
    if (!window.confirm("Restart the gateway? Devices are without a link for some seconds.")) return;
    this.restart.disabled = true;
    if (await this.attempt(() => restartGateway())) toast("The gateway restarts.");
    this.restart.disabled = false;
  }

  /** True for the name of a file that can be added and is not there. */
  isNew(file) {
    return !this.add.disabled && Boolean(file?.startsWith(folder)) && nameProblem(file.slice(folder.length), this.files) === null;
  }

  /** Reads a file into the editor; only the newest answer counts. A new file begins empty. */
  async load(file) {
    const loaded = this.newest = {};
    this.retry = null;
    const isNew = this.isNew(file);
    let failure = null;
    const content = isNew ? { text: "", version: null }
      : await this.attempt(() => read("configuration/file", { file }), (error) => { failure = error; });
    if (loaded !== this.newest) return;
    if (!content) return this.say(`${file} cannot be shown.`, failure, () => this.load(file));
    this.editor.value = content.text;
    // The editor has its own line breaks; those of the file are written.
    const lineBreak = content.text.includes("\r\n") && !/(^|[^\r])\n/.test(content.text) ? "\r\n" : "\n";
    Object.assign(this, { file, saved: this.editor.value, lineBreak, version: content.version, findings: [] });
    this.editor.disabled = false;
    this.editor.readOnly = Boolean(content.obstacle);
    setText(this.message, content.obstacle ? `Read only: ${content.obstacle}` : isNew ? `New file ${file}: it is written when you apply it.` : "");
    this.showFindings();
    this.edited();
    if (isNew) this.editor.focus();
  }

  /** Returns a text of the editor with the line breaks of the file. */
  written(text) { return text.replaceAll("\n", this.lineBreak); }

  restore() {
    this.editor.value = this.saved;
    this.edited();
    this.editor.focus();
  }

  edited() {
    this.apply.disabled = true;
    this.undo.disabled = !this.isChanged;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), checkPause);
  }

  /** Checks the text; only the newest answer counts. */
  async check() {
    const { editor, file } = this;
    const text = editor.value;
    const answer = await this.attempt(() => checkFile(file, this.written(text)));
    if (!answer || editor !== this.editor || text !== editor.value) return;
    this.findings = answer.findings;
    this.showFindings();
    this.showChanges(answer.restart_needed);
    this.apply.disabled = !this.isChanged || this.findings.some((finding) => finding.severity === "error");
  }

  showFindings() {
    this.list.replaceChildren(...this.findings.map((finding) => this.finding(finding)));
    if (!this.findings.length) this.list.append(make("li", { "data-kind": "good" }, "No mistakes."));
    this.editor.setAttribute("aria-invalid", this.findings.some((finding) => finding.severity === "error"));
  }

  finding(finding) {
    const place = finding.line ? `${finding.file}:${finding.line}:${finding.column}` : finding.file;
    const isHere = finding.line && finding.file === this.file;
    const show = isHere ? make("button", { type: "button", class: "link", onclick: () => this.select(finding) }, place) : make("b", {}, place);
    return make("li", { "data-kind": finding.severity === "error" ? "bad" : "warn" }, show, " ", finding.message);
  }

  /** Selects the characters of a finding; columns count code points. */
  select({ line, column, width }) {
    const all = this.editor.value.split("\n");
    const start = all.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const points = [...(all[line - 1] ?? "")];
    const before = points.slice(0, column - 1).join("").length;
    const marked = points.slice(column - 1, column - 1 + (width ?? 1)).join("").length;
    this.editor.focus();
    this.editor.setSelectionRange(start + before, start + before + marked);
    this.editor.scrollTop = this.editor.scrollHeight * (line - 4) / all.length;
  }

  /** True if the text deletes the file, which is not the main one. */
  get deletes() { return this.version !== null && this.file !== this.files[0] && !this.editor.value.trim(); }

  showChanges(waiting) {
    const rows = this.isChanged ? diff(this.saved, this.editor.value) : [];
    const kinds = { "+": "added", "-": "removed", " ": "", "…": "left-out" };
    const words = { "+": "added", "-": "removed" };
    this.changes.replaceChildren(...(rows.length ? [
      make("h3", {}, "Changes"),
      make("pre", { tabindex: "0", "aria-label": "Changes" }, ...rows.map(([sign, line]) => make("span", { class: kinds[sign] },
        words[sign] ? make("span", { class: "unseen" }, `${words[sign]}: `) : null, `${sign} ${line}\n`))),
      waiting.length ? make("p", { class: "problem" }, `Restart needed for ${waiting.join(", ")}.`) : make("p", { class: "hint" }, "Takes effect at once."),
      ...(this.deletes ? [make("p", { class: "hint" }, "Without text, the file is deleted.")] : []),
    ] : []));
  }

  async save() {
    this.apply.disabled = true;
    const { editor, file } = this;
    const text = editor.value;
    const done = await this.attempt(() => applyFile(file, this.written(text), this.version));
    const isOpen = editor === this.editor;
    if (!done) return isOpen && this.edited();
    // A file without text is deleted, and has no version.
    const version = done.version ?? null;
    if (isOpen) this.recordSaved(file, text, version);
    const waiting = done.restart_needed;
    if (version === null) toast("Saved: the file is deleted.");
    else toast(waiting.length ? `Saved. ${counted(waiting.length, "section")} of it will be used after a restart.` : "Saved, and in use.");
    if (isOpen) this.edited();
  }

  /** Records what was saved, and lists the file if it is new. Opens the main file if the other one is deleted. */
  recordSaved(file, text, version) {
    Object.assign(this, { saved: text, version });
    if (version === null) {
      // A page that was opened meanwhile stays.
      if (parsed(location.hash).page === "configuration") location.hash = address("configuration", this.files[0]);
      return;
    }
    if (this.files.includes(file)) return;
    const [main, ...others] = this.files;
    this.files = [main, ...[...others, file].sort()];
    this.showFiles(file);
    setText(this.message, "");
  }
}
