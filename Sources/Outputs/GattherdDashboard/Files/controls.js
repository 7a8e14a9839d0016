// Input fields for the controls of a device.

import { set } from "./api.js";
import { make } from "./dom.js";
import { plain, value, valueName, withUnit } from "./words.js";

/** The shortest pause between two requests of one control, in milliseconds. */
const shortestPause = 150;

/** The longest wait for the device's echo of a value that was set, in milliseconds. */
const echoTimeout = 2000;

/**
 * Sends values one at a time with a pause; of several that come meanwhile only the newest is sent.
 *
 * Afterwards it waits for the device's echo, so that a field does not jump back to an older value.
 */
class Sender {
  constructor(device, control, attempt) {
    Object.assign(this, { device, control, attempt, isBusy: false, hasValue: false, echoEnd: 0, onIdle() {} });
    this.pause = Math.max(shortestPause, (control.throttle ?? 0) * 1000);
  }

  request(value) {
    this.value = value;
    this.hasValue = true;
    if (!this.isBusy) this.send();
  }

  async send() {
    this.isBusy = true;
    while (this.hasValue) {
      this.hasValue = false;
      const { value: sent } = this;
      let isSet = false;
      await this.attempt(async () => {
        await set(this.device, this.control.control, sent);
        isSet = true;
      });
      this.echoEnd = isSet ? Date.now() + echoTimeout : 0;
      await new Promise((done) => { setTimeout(done, this.pause); });
    }
    this.isBusy = false;
    this.onIdle();
    if (this.echoEnd) setTimeout(() => this.onIdle(), Math.max(0, this.echoEnd - Date.now()));
  }

  /** True if the field shows a value that the device has not reported yet. */
  isAhead(sample) {
    if (this.isBusy) return true;
    if (sample === this.value || Date.now() >= this.echoEnd) this.echoEnd = 0;
    return this.echoEnd > 0;
  }
}

/**
 * Creates a field for a control; `attempt(action)` runs a request and reports its failure.
 * `place` tells apart the fields of one control on one page.
 */
export function controlField(device, control, attempt, place = "page") {
  const sender = new Sender(device.name, control, attempt);
  const id = `${place}-${device.name}-${control.control}`;
  const makers = { integer: numberField, real: numberField, boolean: switchField, choice: choiceField, trigger: triggerField };
  const field = makers[control.kind](id, control, sender);
  const metric = echoMetric(device, control);
  let current = device;
  field.update = (device) => {
    current = device;
    for (const input of field.inputs) input.disabled = device.state !== "ready";
    const echo = metric && device.values[valueName(device.values, control.echo, metric)];
    if (echo == null || sender.isAhead(echo)) return;
    // A slider that is held must not move under the finger.
    if (!field.inputs.some((input) => input.type === "range" && input.matches(":active"))) field.show(echo);
  };
  sender.onIdle = () => field.update(current);
  return field;
}

/** Returns a text that differs if the fields of a device's controls must be made again. */
export const controlShape = (device) => JSON.stringify(device.controls.map((control) => [control, echoMetric(device, control)]));

/** Returns the metric that echoes the control, if there is one: of its name, or else the first of the stream. */
function echoMetric(device, control) {
  const metrics = device.streams.find((each) => each.stream === control.echo)?.metrics ?? [];
  return (metrics.find((each) => each.metric === control.control) ?? metrics[0])?.metric ?? null;
}

function numberField(id, control, sender) {
  const isInteger = control.kind === "integer";
  const step = isInteger ? 1 : niceStep(control.max - control.min);
  const attributes = { min: control.min, max: control.max, step };
  const slider = make("input", { ...attributes, type: "range", id });
  const number = make("input", { ...attributes, type: "number", "aria-label": `${plain(control.control)}, as a number` });
  const unit = make("span", { class: "unit" }, control.unit ?? "");
  slider.addEventListener("input", () => {
    number.value = slider.value;
    sender.request(Number(slider.value));
  });
  number.addEventListener("change", () => {
    if (!number.checkValidity() || number.value === "") return number.reportValidity();
    slider.value = number.value;
    sender.request(Number(number.value));
  });
  const element = make("div", { class: "control" }, make("label", { for: id }, plain(control.control)), slider, number, unit);
  const show = (sample) => {
    if (document.activeElement !== number) number.value = sample;
    slider.value = sample;
    slider.setAttribute("aria-valuetext", withUnit(Number(sample), control.unit));
  };
  return { element, inputs: [slider, number], show };
}

const niceStep = (range) => 10 ** Math.floor(Math.log10((range || 1) / 200));

function switchField(id, control, sender) {
  const box = make("input", { type: "checkbox", role: "switch", id });
  box.addEventListener("change", () => sender.request(box.checked));
  const element = make("div", { class: "control" }, make("label", { for: id }, plain(control.control)), box);
  return { element, inputs: [box], show: (sample) => { box.checked = sample === true || sample === 1; } };
}

function choiceField(id, control, sender) {
  const options = control.choices.map((choice) => make("option", { value: choice }, value(choice)));
  const list = make("select", { id }, make("option", { value: "", disabled: true, selected: true }, "choose"), ...options);
  list.addEventListener("change", () => sender.request(list.value));
  const element = make("div", { class: "control" }, make("label", { for: id }, plain(control.control)), list);
  return { element, inputs: [list], show: (sample) => { list.value = String(sample); } };
}

function triggerField(id, control, sender) {
  const button = make("button", { type: "button", id, onclick: () => sender.request(null) }, plain(control.control));
  return { element: make("div", { class: "control" }, button), inputs: [button], show() {} };
}
