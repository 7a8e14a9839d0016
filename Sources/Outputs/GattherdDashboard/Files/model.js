// What the page knows of the gateway, kept by the stream of events.

/** How long a sparkline of something lively reaches back, and how many values it has at most. */
export const sparkTime = 60000;
const sparkLength = 300;

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
    this.readings = 0;
    this.rejects = 0;
    this.rate = 0;
  }

  /** The link, as each message about it has it. */
  takeLink(link) {
    this.state = link.state;
    this.since = time(link.since);
    this.reason = link.reason ?? null;
    this.detail = link.detail ?? null;
    this.attempt = link.attempt;
    this.nextRetry = time(link.next_retry);
    this.adapter = link.adapter ?? null;
    this.rssi = link.rssi ?? null;
  }

  take(device) {
    this.takeLink(device);
    this.address = device.address;
    this.profiles = device.profiles;
    this.readings = device.readings;
    this.rejects = device.rejects;
    this.streams = device.streams;
    this.controls = device.controls;
    this.metrics = new Map(device.streams.flatMap((stream) => stream.metrics.map((metric) => [metric.metric, metric])));
    this.values = device.values;
  }

  takeValues(values, now) {
    for (const [metric, value] of Object.entries(values)) {
      this.values[metric] = value;
      if (typeof value === "number") this.spark(metric, value, now);
    }
    this.lastValue = now;
  }

  spark(metric, value, now) {
    let spark = this.sparks.get(metric);
    if (!spark) this.sparks.set(metric, spark = { times: [], values: [], span: sparkTime });
    spark.times.push(now);
    spark.values.push(value);
    if (spark.times.length > sparkLength) {
      spark.times.shift();
      spark.values.shift();
    }
  }

  /** Puts what history has before what came since the page was opened. */
  seed(metric, times, values, span) {
    const spark = this.sparks.get(metric) ?? { times: [], values: [] };
    const first = spark.times[0] ?? Infinity;
    const count = times.filter((each) => each < first).length;
    this.sparks.set(metric, {
      times: [...times.slice(0, count), ...spark.times].slice(-sparkLength),
      values: [...values.slice(0, count), ...spark.values].slice(-sparkLength),
      span,
    });
  }

  /** The unit of a metric, if it is known. */
  unit(metric) { return this.metrics?.get(metric)?.unit ?? null; }
}

/** Two lists of events as one, oldest first, each event once. */
export function joined(older, newer) {
  const all = new Map([...older, ...newer].map((event) => [JSON.stringify([event.ts, event.device, event.kind, event.detail]), event]));
  return [...all.values()].sort((one, other) => Date.parse(one.ts) - Date.parse(other.ts)).slice(-eventCount);
}

/** Tells listeners `device`, `devices`, `gateway` and `event`. */
export class Model extends EventTarget {
  constructor() {
    super();
    this.devices = new Map();
    this.events = [];
    this.status = null;
    this.offset = 0;
    this.countedAt = null;
  }

  /** The gateway's clock. */
  now() { return Date.now() + this.offset; }

  take(name, data) {
    this[`take_${name}`]?.(data);
  }

  take_snapshot(data) {
    this.takeGateway(data);
    const devices = new Map();
    for (const each of data.devices) {
      const device = this.devices.get(each.device) ?? new Device(each.device);
      device.take(each);
      devices.set(each.device, device);
    }
    this.devices = devices;
    this.events = joined(this.events, data.events);
    this.countedAt = null;
    this.tell("devices");
    this.tell("gateway");
    this.tell("events");
  }

  take_gateway(data) {
    this.takeGateway(data);
    const at = Date.parse(data.now);
    for (const [name, [readings, rejects]] of Object.entries(data.counts)) {
      const device = this.devices.get(name);
      if (!device) continue;
      if (this.countedAt !== null && at > this.countedAt) {
        const rate = (readings - device.readings) * 1000 / (at - this.countedAt);
        device.rate = device.rate * 0.7 + rate * 0.3;
      }
      if (device.rejects !== rejects) this.tell("device", name);
      device.readings = readings;
      device.rejects = rejects;
    }
    this.countedAt = at;
    this.tell("gateway");
  }

  takeGateway(data) {
    this.status = data.status;
    this.offset = Date.parse(data.now) - Date.now();
  }

  take_values(data) {
    const now = this.now();
    for (const [name, values] of Object.entries(data)) {
      const device = this.devices.get(name);
      if (!device) continue;
      device.takeValues(values, now);
      this.tell("values", name);
    }
  }

  take_link(data) {
    const device = this.devices.get(data.device);
    if (!device) return;
    const before = device.state;
    device.takeLink(data);
    this.tell("device", data.device);
    if (before !== data.state) this.tell("change", data.device);
  }

  take_device(data) {
    const device = this.devices.get(data.device);
    if (!device) return;
    device.take(data);
    this.tell("device", data.device);
    this.tell("description", data.device);
  }

  take_event(data) {
    this.events = joined(this.events, [data]);
    this.tell("event", data);
  }

  /** Events of history, among them those from before the daemon's start. */
  takeOlderEvents(events) {
    this.events = joined(events, this.events);
    this.tell("events");
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
