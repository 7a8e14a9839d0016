// Tiles with the state of the whole gateway: devices, adapters, outputs, history.

import { find, make, setText } from "./dom.js";
import { count, counted, plain, size, span, states } from "./words.js";

/** The age in seconds of the oldest waiting entry from which an output is behind; the gateway has the same limit. */
const longestLag = 120;

/** States of outputs: name, and kind for colours. */
const outputStates = {
  idle: { name: "Idle", kind: "good", isUp: true },
  connecting: { name: "Connecting", kind: "warn", isUp: false },
  connected: { name: "Connected", kind: "good", isUp: true },
  waiting: { name: "Failing", kind: "bad", isUp: false },
  stopping: { name: "Stopping", kind: "idle", isUp: false },
  stopped: { name: "Stopped", kind: "idle", isUp: false },
};

function tile(name) {
  const state = make("b", {});
  const more = make("span", {});
  return { item: make("li", { class: "tile", "data-tile": name }, make("h2", {}, name), state, more), state, more };
}

export class Gateway {
  constructor(model) {
    this.model = model;
    this.tiles = new Map();
    model.addEventListener("gateway", () => this.show());
    model.addEventListener("change", () => this.show());
  }

  show() {
    const { status } = this.model;
    if (!status) return;
    setText(find("title"), status.gateway);
    if (find("detail")?.hidden !== false) document.title = `${status.gateway} · gattherd`;
    const tiles = [this.devices(), ...status.adapters.map(adapter), ...this.outputs(status.outputs), this.history(status)];
    tiles.unshift(...(status.alerts ?? []).map((each) => alert(each, this.model.now())));
    if (!status.adapters.length) tiles.push(["Bluetooth", "bad", "No adapter", "or no bluetoothd"]);
    if (status.dropped) tiles.push(["Dropped", "bad", count(status.dropped), "values: history is too slow"]);
    const names = tiles.map(([name]) => name);
    for (const [name, { item }] of this.tiles) {
      if (names.includes(name)) continue;
      item.remove();
      this.tiles.delete(name);
    }
    const list = find("gateway");
    tiles.forEach(([name, kind, state, more], index) => {
      if (!this.tiles.has(name)) this.tiles.set(name, tile(name));
      const parts = this.tiles.get(name);
      parts.item.dataset.kind = kind;
      setText(parts.state, state);
      setText(parts.more, more);
      // A new alert comes first.
      if (list.children[index] !== parts.item) list.insertBefore(parts.item, list.children[index] ?? null);
    });
  }

  devices() {
    const all = [...this.model.devices.values()];
    const of = (kind) => all.filter((device) => states[device.state]?.kind === kind).length;
    const rate = all.reduce((sum, device) => sum + device.rate, 0);
    const parts = [[of("bad"), "failed"], [of("warn"), "backing off"], [of("held"), "held"]]
      .filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
    const kind = of("bad") ? "bad" : of("warn") ? "warn" : of("good") ? "good" : "idle";
    return ["Devices", kind, `${of("good")} of ${all.length} ready`, [...parts, rate && `${rate.toFixed(rate < 10 ? 1 : 0)} readings/s`].filter(Boolean).join(" · ")];
  }

  outputs(outputs) {
    if (!outputs.length) return [["Outputs", "idle", "None", "no output in the configuration"]];
    return outputs.map((output) => this.output(output));
  }

  output(output) {
    const { kind, name, isUp } = outputStates[output.state] ?? { kind: "warn", name: plain(output.state), isUp: true };
    const isBehind = isUp && output.lag > longestLag;
    const next = output.next_try ? `again in ${span(Math.ceil((Date.parse(output.next_try) - this.model.now()) / 1000))}` : null;
    const backlog = output.backlog ? `${count(output.backlog)} waiting` : "nothing waits";
    const lag = output.lag >= 1 ? `${span(output.lag)} behind` : null;
    const skipped = output.skipped ? `${count(output.skipped)} skipped` : null;
    const parts = [output.error, next, backlog, lag, skipped, `${count(output.delivered)} delivered`];
    const hasProblem = isBehind || output.error || output.skipped;
    return [`Output ${output.name}`, kind === "good" && hasProblem ? "warn" : kind, isBehind ? "Behind" : name, parts.filter(Boolean).join(" · ")];
  }

  history(status) {
    const { history } = status;
    const lost = [[history.unstored, "not stored"], [history.undelivered, "not delivered"]]
      .filter(([number]) => number).map(([number, word]) => `${count(number)} ${word}`);
    const running = span((this.model.now() - Date.parse(status.started)) / 1000);
    const more = [history.error, `reading ${count(history.seq)}`, size(history.size), ...lost, `running for ${running}`].filter(Boolean).join(" · ");
    return ["History", history.error ? "bad" : lost.length ? "warn" : "good", history.error ? "Write error" : lost.length ? "Has gaps" : "Good", more];
  }
}

function alert(each, now) {
  const since = span(Math.max(0, (now - Date.parse(each.since)) / 1000));
  return [`Alert ${each.alert} of ${each.device}`, "bad", each.device, `${each.detail} · for ${since}`];
}

function adapter(each) {
  const slots = each.slots == null ? "" : ` of ${each.slots}`;
  const more = [slots ? `${each.links}${slots} links` : counted(each.links, "link"), each.connecting ? `${each.connecting} connecting` : null,
    each.discovering ? "scanning" : null, each.last_recovery ? `last recovery: ${each.last_recovery}` : null];
  return [`Adapter ${each.name}`, each.powered ? "good" : "bad", each.powered ? "On" : "Off", more.filter(Boolean).join(" · ")];
}
