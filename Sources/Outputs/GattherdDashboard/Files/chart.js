// A chart of one metric: the mean as a line, minimum to maximum as a band.

import { canvas, colour, sheet } from "./dom.js";
import { moment, value, withUnit } from "./words.js";

const margin = { left: 52, right: 12, top: 10, bottom: 24 };
const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;
/** Intervals between marks on the time axis. */
const times = [1, 5, 10, 30, 60, 300, 600, 900, 1800].map((each) => each * second)
  .concat([1, 2, 3, 6, 12].map((each) => each * hour), [1, 2, 7, 14, 30, 60, 90].map((each) => each * day));

export class Chart {
  /** `onChoose(text)` receives the row under the pointer or the cursor keys as text, or null. */
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.rows = [];
    this.cursor = null;
    this.canvas = canvas({ class: "chart", role: "img", tabindex: "0", "aria-label": "History" }, () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.choose(null));
    this.canvas.addEventListener("blur", () => this.choose(null));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  /** `rows` have `time`, `min`, `mean`, `max` and `n`; `step` is the length of a row, all in milliseconds. */
  show(rows, from, to, step, unit) {
    Object.assign(this, { rows, from, to, step, unit });
    if (this.cursor !== null && this.cursor >= rows.length) this.cursor = null;
    this.measure();
    this.draw();
  }

  measure() {
    const low = Math.min(...this.rows.map((row) => row.min));
    const high = Math.max(...this.rows.map((row) => row.max));
    const range = high - low || Math.abs(high) * 0.1 || 1;
    this.mark = niceStep(range, 5);
    this.low = Math.floor((low - range * 0.05) / this.mark) * this.mark;
    this.high = Math.ceil((high + range * 0.05) / this.mark) * this.mark;
  }

  x(time) { return margin.left + (time - this.from) / (this.to - this.from) * this.width; }
  y(number) { return margin.top + (this.high - number) / (this.high - this.low) * this.height; }
  middle(row) { return row.time + this.step / 2; }

  draw() {
    const page = sheet(this.canvas);
    if (!page || this.from === undefined) return;
    this.width = page.width - margin.left - margin.right;
    this.height = page.height - margin.top - margin.bottom;
    const { pen } = page;
    pen.font = "12px system-ui, sans-serif";
    if (!this.rows.length) {
      pen.fillStyle = colour("muted");
      pen.textAlign = "center";
      pen.fillText("No values in this range", page.width / 2, page.height / 2);
      return;
    }
    this.drawAxes(pen);
    for (const run of this.runs()) this.drawRun(pen, run);
    if (this.cursor !== null) this.drawCursor(pen, this.rows[this.cursor]);
  }

  drawAxes(pen) {
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("muted");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let number = this.low; number <= this.high + this.mark / 2; number += this.mark) {
      const y = Math.round(this.y(number)) + 0.5;
      pen.beginPath();
      pen.moveTo(margin.left, y);
      pen.lineTo(margin.left + this.width, y);
      pen.stroke();
      pen.fillText(value(Number(number.toPrecision(10))), margin.left - 6, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const step = times.find((each) => (this.to - this.from) / each <= Math.max(2, this.width / 90)) ?? times.at(-1);
    const shift = new Date().getTimezoneOffset() * 60 * second;
    for (let time = Math.ceil((this.from - shift) / step) * step + shift; time <= this.to; time += step) {
      pen.fillText(timeMark(time, step), this.x(time), margin.top + this.height + 7);
    }
  }

  /** Groups rows without gaps; nothing is drawn between two groups. */
  runs() {
    const runs = [];
    for (const row of this.rows) {
      const run = runs.at(-1);
      if (run && row.time - run.at(-1).time <= this.step * 2.5) run.push(row);
      else runs.push([row]);
    }
    return runs;
  }

  drawRun(pen, run) {
    const path = (pick, rows) => rows.forEach((row) => pen.lineTo(this.x(this.middle(row)), this.y(pick(row))));
    pen.fillStyle = colour("band");
    pen.beginPath();
    path((row) => row.max, run);
    path((row) => row.min, [...run].reverse());
    pen.fill();
    pen.strokeStyle = colour("spark");
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    pen.beginPath();
    path((row) => row.mean, run);
    pen.stroke();
    if (run.length > 1) return;
    pen.fillStyle = colour("spark");
    pen.beginPath();
    pen.arc(this.x(this.middle(run[0])), this.y(run[0].mean), 2.5, 0, 7);
    pen.fill();
  }

  drawCursor(pen, row) {
    const x = this.x(this.middle(row));
    pen.strokeStyle = colour("muted");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, margin.top);
    pen.lineTo(x, margin.top + this.height);
    pen.stroke();
    pen.fillStyle = colour("text");
    pen.beginPath();
    pen.arc(x, this.y(row.mean), 3.5, 0, 7);
    pen.fill();
  }

  point(offset) {
    if (!this.rows.length) return;
    let best = 0;
    this.rows.forEach((row, index) => {
      const distance = Math.abs(this.x(this.middle(row)) - offset);
      if (distance < Math.abs(this.x(this.middle(this.rows[best])) - offset)) best = index;
    });
    this.choose(best);
  }

  press(event) {
    const last = this.rows.length - 1;
    if (last < 0) return;
    const here = this.cursor ?? last;
    const next = {
      ArrowLeft: this.cursor === null ? last : here - 1, ArrowRight: here + 1, Home: 0, End: last,
      PageUp: here - 10, PageDown: here + 10,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, next)));
  }

  choose(index) {
    if (index === this.cursor) return;
    this.cursor = index;
    this.draw();
    this.onChoose(index === null ? null : rowWords(this.rows[index], this.unit));
  }
}

/** Formats a row: time, mean, and minimum, maximum and count of a summary. */
export function rowWords(row, unit) {
  const range = row.n > 1 ? ` (${value(row.min)} to ${value(row.max)}, ${row.n} samples)` : "";
  return `${moment(row.time)}: ${withUnit(row.mean, unit)}${range}`;
}

/** Returns the smallest of 1, 2, 5, 10, … that divides the range into at most `count` parts. */
function niceStep(range, count) {
  const least = range / count;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999);
}

function timeMark(time, step) {
  const date = new Date(time);
  const options = step >= day
    ? { day: "numeric", month: "short" }
    : { hour: "2-digit", minute: "2-digit", hour12: false, second: step < 60 * second ? "2-digit" : undefined };
  const isMidnight = step < day && date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  return date.toLocaleString(undefined, isMidnight ? { day: "numeric", month: "short" } : options);
}
