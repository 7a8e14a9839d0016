// Sparklines: small curves of the recent past, filled from history and from live values.

import { read } from "./api.js";
import { colour, sheet } from "./dom.js";
import { combined } from "./series.js";
import { nameParts, valueNames } from "./words.js";

/** The time ranges of a sparkline, shortest first: length in milliseconds, and the interval of its summaries. */
export const sparkRanges = [
  { span: 60000, every: "1s", step: 1000 },
  { span: 3600000, every: "1m", step: 60000 },
  { span: 86400000, every: "20m", step: 1200000 },
];
/** Points that a sparkline keeps: more would not be seen at its size. */
const pointLimit = 300;
/** Live points in a shorter range from which on that range is drawn. */
const lively = 12;
/** Pause after a failed request, in milliseconds. */
const retryPause = 2000;
/** The most rows that the gateway returns. */
const rowLimit = 10000;

/** The recent values of one metric. */
export class Spark {
  constructor() {
    this.times = [];
    this.values = [];
    /** The index of the range that is drawn. */
    this.range = 0;
    /** True once history was read. */
    this.isRead = false;
  }

  get span() { return sparkRanges[this.range].span; }

  /** True if no point lies in the range that is drawn. */
  isOutdated(now) { return !this.times.length || now - this.times.at(-1) > this.span; }

  /** True if history may have points that are missing here. */
  isIncomplete(now) {
    return !this.isRead || (this.isOutdated(now) && this.range < sparkRanges.length - 1);
  }

  /** Adds a live value. */
  add(value, now) {
    this.times.push(now);
    this.values.push(value);
    if (this.times.length > pointLimit) {
      this.times.shift();
      this.values.shift();
    }
    const begin = this.times.at(-lively);
    const shorter = sparkRanges.findIndex(({ span }) => now - begin < span);
    if (shorter >= 0 && shorter < this.range) this.range = shorter;
  }

  /** Replaces all points by the rows of history, except live values that are newer. */
  fill(rows, step, now) {
    const begin = (row) => Date.parse(row.ts);
    const end = rows.length ? begin(rows.at(-1)) + step : -Infinity;
    const first = this.times.findIndex((time) => time >= end);
    const live = first < 0 ? this.times.length : first;
    // A row stands for an interval: its point is in the middle.
    const times = rows.map((row) => Math.min(begin(row) + step / 2, now));
    this.times = [...times, ...this.times.slice(live)].slice(-pointLimit);
    this.values = [...rows.map((row) => row.mean), ...this.values.slice(live)].slice(-pointLimit);
    const shortest = sparkRanges.findIndex(({ span }) => now - this.times[0] <= span);
    this.range = shortest < 0 ? sparkRanges.length - 1 : shortest;
    this.isRead = true;
  }
}

/** Fills sparklines from history, one device at a time. */
export class SparkHistory {
  constructor(model) {
    Object.assign(this, { model, queue: new Set(), isRunning: false, isLocked: false });
    // Devices are announced after each new connection, also after one with a new token.
    model.addEventListener("devices", () => { this.isLocked = false; });
  }

  /** Queues a device if history may have points for one of its sparklines. */
  request(name) {
    if (this.isLocked || this.queue.has(name) || !this.incomplete(name).length) return;
    this.queue.add(name);
    if (!this.isRunning) this.run();
  }

  async run() {
    this.isRunning = true;
    for (const name of this.queue) {
      try {
        await this.fill(name);
        this.queue.delete(name);
      } catch (error) {
        // app.js reports missing tokens and lost connections.
        if (error.wantsToken) {
          this.isLocked = true;
          this.queue.clear();
        } else {
          // A set iterates over what is added meanwhile: this device comes last.
          this.queue.delete(name);
          this.queue.add(name);
          await new Promise((done) => { setTimeout(done, retryPause); });
        }
      }
    }
    this.isRunning = false;
  }

  /** The numeric metrics of a device that need history. */
  incomplete(name) {
    const device = this.model.devices.get(name);
    if (!device) return [];
    const now = this.model.now();
    return valueNames(device.values)
      .filter((metric) => typeof device.values[metric] === "number" && device.spark(metric).isIncomplete(now));
  }

  /** Reads longer and longer ranges until each metric has enough points for a curve. */
  async fill(name) {
    const wanted = new Set(this.incomplete(name));
    for (const [index, { span, every, step }] of sparkRanges.entries()) {
      const device = this.model.devices.get(name);
      const metrics = [...wanted].filter((metric) => !device?.spark(metric).isRead || device.spark(metric).range < index);
      if (!device || !metrics.length) continue;
      const since = new Date(this.model.now() - span).toISOString();
      const { rows } = await read("history", { device: name, since, every, limit: rowLimit });
      const isLast = index === sparkRanges.length - 1;
      for (const metric of metrics) {
        const { stream, metric: name } = nameParts(metric);
        const own = combined(rows.filter((row) => row.metric === name && (stream === null || row.stream === stream)));
        if (own.length < 3 && !isLast) continue;
        device.spark(metric).fill(own, step, this.model.now());
        wanted.delete(metric);
      }
      this.model.emit("values", name);
    }
  }
}

/** Draws a sparkline; a pause in the values is a gap in the curve. */
export function drawSpark(canvas, spark, now) {
  const page = sheet(canvas);
  if (!page || spark.isOutdated(now)) return;
  const { pen, width, height } = page;
  const { span } = spark;
  const begin = now - span;
  const first = Math.max(0, spark.times.findIndex((time) => time >= begin));
  const values = spark.values.slice(first);
  const times = spark.times.slice(first);
  const low = Math.min(...values);
  const range = Math.max(...values) - low;
  const x = (time) => (time - begin) / span * (width - 4);
  const y = (value) => (range ? height - 3 - (value - low) / range * (height - 6) : height / 2);
  const gap = Math.max(span / 20, 4 * (times.at(-1) - times[0]) / times.length);
  pen.strokeStyle = colour("spark");
  pen.lineWidth = 1.5;
  pen.lineJoin = "round";
  pen.beginPath();
  times.forEach((time, index) => {
    const isGap = index === 0 || time - times[index - 1] > gap;
    pen[isGap ? "moveTo" : "lineTo"](x(time), y(values[index]));
  });
  pen.stroke();
  pen.fillStyle = colour("spark");
  pen.beginPath();
  pen.arc(x(times.at(-1)), y(values.at(-1)), 2, 0, 7);
  pen.fill();
}
