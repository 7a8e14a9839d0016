// The form for what people call a device: name, area, note. Topics and history keep the device's own name.

import { setLabel } from "./api.js";
import { make, toast } from "./dom.js";

/** Fields: key, heading, longest text. */
const fields = [["title", "Name for people", 100], ["area", "Area", 100], ["note", "Note", 500]];

export class LabelForm {
  /** `attempt(action)` runs a request and reports its failure. */
  constructor(device, attempt) {
    Object.assign(this, { device, attempt, edited: new Set() });
    this.inputs = new Map(fields.map(([key, , maxlength]) =>
      [key, make("input", { type: "text", maxlength, autocomplete: "off", oninput: () => { this.edited.add(key); } })]));
    this.button = make("button", { class: "primary" }, "Save");
    const form = make("form", { class: "form", onsubmit: (event) => this.save(event) },
      ...fields.map(([key, title]) => make("label", {}, title, this.inputs.get(key))),
      make("p", { class: "hint" }, `Topics, history and commands keep the name ${device.name}.`),
      make("p", { class: "buttons" }, this.button));
    this.element = make("details", { class: "edit" }, make("summary", {}, "Change name, area and note"), form);
    this.update(device);
  }

  /** Shows the texts as they are, except those that the user is changing: all are saved. */
  update(device) {
    this.device = device;
    for (const [key, input] of this.inputs) {
      if (!this.edited.has(key) && input.value !== (device[key] ?? "")) input.value = device[key] ?? "";
    }
  }

  async save(event) {
    event.preventDefault();
    this.button.disabled = true;
    await this.attempt(async () => {
      const texts = [...this.inputs].map(([key, input]) => [key, input.value.trim() || null]);
      await setLabel(this.device.name, Object.fromEntries(texts));
      this.edited.clear();
      this.element.open = false;
      toast("Saved.");
    });
    this.button.disabled = false;
  }
}
