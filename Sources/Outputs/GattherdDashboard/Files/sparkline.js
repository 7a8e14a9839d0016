import { read } from "./api.js";
import { colour, sheet } from "./dom.js";
import { sparkTime } from "./model.js";

/** How far back a sparkline looks until it finds something to draw, and the spans that are read then. */
const reaches = [[sparkTime, "1s"], [3600000, "1m"], [86400000, "20m"]];
/** Before history is asked again when it was busy with others, in milliseconds. */
const pause = 2000;

/** Fills sparklines with what history has: one device after the other, each once. */
export class Seeds {
  constructor(model) {
    Object.assign(this, { model, known: new Set(), waiting: [], isBusy: false });
  }

  want(name) {
    if (this.known.has(name)) return;
    this.known.add(name);
    this.waiting.push(name);
    if (!this.isBusy) this.run();
  }

  async run() {
    this.isBusy = true;
    while (this.waiting.length) {
      const name = this.waiting.shift();
      try {
        await this.seed(name);
      } catch (error) {
        // The token, or the connection, is said elsewhere.
        if (error.wantsToken) this.known.delete(name);
        else this.waiting.push(name);
        await new Promise((done) => { setTimeout(done, pause); });
      }
    }
    this.isBusy = false;
  }

  async seed(name) {
    const done = new Set();
    for (const [index, [span, every]] of reaches.entries()) {
      // Two points are a line; at the end of the reaches one is better than none.
      const enough = index < reaches.length - 1 ? 3 : 1;
      const device = this.model.devices.get(name);
      if (!device) return;
      const since = new Date(this.model.now() - span).toISOString();
      const { rows } = await read("history", { device: name, since, every, limit: 5000 });
      for (const metric of new Set(rows.map((row) => row.metric))) {
        const each = rows.filter((row) => row.metric === metric);
        if (done.has(metric) || each.length < enough) continue;
        done.add(metric);
        device.seed(metric, each.map((row) => Date.parse(row.ts)), each.map((row) => row.mean), span);
      }
      this.model.tell("values", name);
      if (Object.entries(device.values).every(([metric, value]) => typeof value !== "number" || done.has(metric))) return;
    }
  }
}

/** Draws the last minute, or more of what comes rarely; where nothing came for long there is a gap. */
export function drawSpark(canvas, spark, now) {
  const page = sheet(canvas);
  if (!page || !spark?.times.length) return;
  const { pen, width, height } = page;
  const span = spark.span ?? sparkTime;
  const begin = now - span;
  if (spark.times[spark.times.length - 1] < begin) return;
  const first = Math.max(0, spark.times.findIndex((time) => time >= begin));
  const values = spark.values.slice(first);
  const times = spark.times.slice(first);
  const low = Math.min(...values);
  const range = Math.max(...values) - low;
  const x = (time) => (time - begin) / span * (width - 4);
  const y = (value) => (range ? height - 3 - (value - low) / range * (height - 6) : height / 2);
  const gap = Math.max(span / 20, 4 * (times[times.length - 1] - times[0]) / times.length);
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
  pen.arc(x(times[times.length - 1]), y(values[values.length - 1]), 2, 0, 7);
  pen.fill();
}
