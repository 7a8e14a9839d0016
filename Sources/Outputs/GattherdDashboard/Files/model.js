// The state of the gateway and its devices, updated by the event stream.

import { Spark } from "./sparkline.js";

/** Events that are kept. */
const eventCount = 200;

const time = (text) => (text ? Date.parse(text) : null);

class Device {
  constructor(name) {
    this.name = name;
    this.values = {};
    this.sparks = new Map();
    this.streams = [];
    this.controls = [];
    /** The downloads of stored records. */
    this.records = [];
    this.readings = 0;
    this.rejects = 0;
    this.rate = 0;
    /** The time of the last advertisement or value; 0 before the first. */
    this.lastHeard = 0;
  }

  /** The name for people. */
  get label() { return this.title ?? this.name; }

  /** The battery level in percent, if the device reports one. */
  get battery() {
    const name = Object.keys(this.values).find((metric) => metric === "battery_level" || metric === "battery");
    return typeof this.values[name] === "number" ? this.values[name] : null;
  }

  /** Applies the members that all messages about a link share. */
  applyLink(link) {
    this.state = link.state;
    this.since = time(link.since);
    this.reason = link.reason ?? null;
    this.detail = link.detail ?? null;
    this.attempt = link.attempt;
    this.nextRetry = time(link.next_retry);
    this.adapter = link.adapter ?? null;
    this.rssi = link.rssi ?? null;
  }

  /** Applies a full description. */
  apply(device) {
    this.applyLink(device);
    this.address = device.address;
    this.title = device.title ?? null;
    this.area = device.area ?? null;
    this.note = device.note ?? null;
    this.lastHeard = Math.max(time(device.last_heard) ?? 0, time(device.last_reading) ?? 0);
    this.profiles = device.profiles;
    /** True for a sensor, which is never connected. */
    this.onlyAdvertises = device.only_advertises === true;
    this.modelName = device.model ?? null;
    this.suggestedProfile = device.suggested_profile ?? null;
    this.readings = device.readings;
    this.rejects = device.rejects;
    this.streams = device.streams;
    this.controls = device.controls;
    this.records = device.records ?? [];
    this.metrics = new Map(device.streams.flatMap(({ stream, metrics }) =>
      metrics.flatMap((metric) => [[metric.metric, metric], [`${stream}/${metric.metric}`, metric]])));
    this.values = device.values;
  }

  applyValues(values, now) {
    for (const [metric, value] of Object.entries(values)) {
      this.values[metric] = value;
      if (typeof value === "number") this.spark(metric).add(value, now);
    }
  }

  /** The sparkline of a metric; made when it is first needed. */
  spark(metric) {
    if (!this.sparks.has(metric)) this.sparks.set(metric, new Spark());
    return this.sparks.get(metric);
  }

  /** The unit of a metric, if it is known. */
  unit(metric) { return this.metrics?.get(metric)?.unit ?? null; }
}

/** Merges two lists of events: oldest first, each event once. */
export function mergeEvents(older, newer) {
  const all = new Map([...older, ...newer].map((event) => [JSON.stringify([event.ts, event.device, event.kind, event.detail]), event]));
  return [...all.values()].sort((one, other) => Date.parse(one.ts) - Date.parse(other.ts)).slice(-eventCount);
}

/** Emits `devices`, `device`, `description`, `values`, `change` (of a link state), `gateway`, `events` and `event`. */
export class Model extends EventTarget {
  constructor() {
    super();
    this.devices = new Map();
    this.events = [];
    this.status = null;
    this.offset = 0;
    this.countedAt = null;
  }

  /** The time of the gateway's clock, in milliseconds. */
  now() { return Date.now() + this.offset; }

  /** Applies a message of the stream. */
  receive(name, data) {
    this[`receive_${name}`]?.(data);
  }

  receive_snapshot(data) {
    this.applyGateway(data);
    const devices = new Map();
    for (const each of data.devices) {
      const device = this.devices.get(each.device) ?? new Device(each.device);
      device.apply(each);
      devices.set(each.device, device);
    }
    this.devices = devices;
    this.events = mergeEvents(this.events, data.events);
    this.countedAt = null;
    this.emit("devices");
    this.emit("gateway");
    this.emit("events");
  }

  receive_gateway(data) {
    this.applyGateway(data);
    const at = Date.parse(data.now);
    for (const [name, [readings, rejects, rssi, heard]] of Object.entries(data.counts)) {
      const device = this.devices.get(name);
      if (!device) continue;
      if (this.countedAt !== null && at > this.countedAt) {
        const rate = (readings - device.readings) * 1000 / (at - this.countedAt);
        device.rate = device.rate * 0.7 + rate * 0.3;
      }
      if (device.rejects !== rejects || (rssi != null && rssi !== device.rssi)) this.emit("device", name);
      // Whole seconds: the snapshot may have a later time of the same advertisement.
      if (heard) device.lastHeard = Math.max(device.lastHeard, heard * 1000);
      if (device.readings !== readings) device.lastHeard = at;
      device.records = data.records[name] ?? [];
      device.rssi = rssi ?? device.rssi;
      device.readings = readings;
      device.rejects = rejects;
    }
    this.countedAt = at;
    this.emit("gateway");
  }

  applyGateway(data) {
    this.status = data.status;
    this.offset = Date.parse(data.now) - Date.now();
  }

  receive_values(data) {
    const now = this.now();
    for (const [name, values] of Object.entries(data)) {
      const device = this.devices.get(name);
      if (!device) continue;
      device.applyValues(values, now);
      this.emit("values", name);
    }
  }

  receive_link(data) {
    const device = this.devices.get(data.device);
    if (!device) return;
    const before = device.state;
    device.applyLink(data);
    this.emit("device", data.device);
    if (before !== data.state) this.emit("change", data.device);
  }

  receive_device(data) {
    const device = this.devices.get(data.device);
    if (!device) return;
    device.apply(data);
    this.emit("device", data.device);
    this.emit("description", data.device);
  }

  receive_event(data) {
    this.events = mergeEvents(this.events, [data]);
    this.emit("event", data);
  }

  /** Adds events of history, which go back before the daemon's start. */
  addOlderEvents(events) {
    this.events = mergeEvents(events, this.events);
    this.emit("events");
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
