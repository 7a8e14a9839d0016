// A chart of some metrics: the mean as a line, minimum to maximum as a band; values that seldom change as steps.

import { timeMarks, valueAxis } from "./axes.js";
import { canvas, colour, sheet } from "./dom.js";
import { metricWords, moment, value, withUnit } from "./words.js";

/** The most metrics of a chart; each has a colour. */
export const seriesLimit = 4;
const margin = { left: 52, right: 12, top: 10, bottom: 24 };
/** The margin on the right with a second axis. */
const secondMargin = 52;

export class Chart {
  /**
   * `onChoose(text)` receives the values under the pointer or the cursor keys as text, or null; `onZoom(from, to)`
   * a range that the user has marked, or nulls for the whole.
   */
  constructor(onChoose, onZoom) {
    Object.assign(this, { onChoose, onZoom, series: [], cursor: null, mark: null });
    this.canvas = canvas({ class: "chart", role: "img", tabindex: "0", "aria-label": "History" }, () => this.draw());
    const listen = (name, action) => this.canvas.addEventListener(name, action);
    listen("pointermove", (event) => this.point(event.offsetX));
    listen("pointerdown", (event) => this.beginMark(event));
    listen("pointerup", (event) => this.endMark(event.offsetX));
    listen("pointercancel", () => { this.mark = null; });
    listen("pointerleave", () => { if (!this.mark) this.choose(null); });
    listen("dblclick", () => this.onZoom(null, null));
    listen("blur", () => this.choose(null));
    listen("keydown", (event) => this.press(event));
  }

  /**
   * Shows series: each has `metric`, `unit`, `rows` with `time`, `min`, `mean`, `max` and `n`, and `isHeld` if a value
   * stays until the next. `step` is the length of a row; all times are in milliseconds.
   */
  show(series, from, to, step) {
    Object.assign(this, { series, from, to, step });
    this.times = [...new Set(series.flatMap(({ rows }) => rows.map((row) => row.time)))].sort((one, other) => one - other);
    if (this.cursor !== null && this.cursor >= this.times.length) this.cursor = null;
    const units = [...new Set(series.map(({ unit }) => unit))].slice(0, 2);
    this.axes = units.map((unit) => {
      const rows = series.filter((each) => each.unit === unit).flatMap((each) => each.rows);
      return { unit, ...valueAxis(Math.min(...rows.map((row) => row.min)), Math.max(...rows.map((row) => row.max))) };
    });
    this.draw();
  }

  x(time) { return margin.left + (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + (x - margin.left) / this.width * (this.to - this.from); }
  y(number, axis) { return margin.top + (axis.high - number) / (axis.high - axis.low) * this.height; }
  middle(row) { return Math.min(row.time + this.step / 2, this.to); }
  axis(series) { return this.axes.find(({ unit }) => unit === series.unit) ?? this.axes[0]; }

  draw() {
    const page = sheet(this.canvas);
    if (!page || this.from === undefined) return;
    this.width = page.width - margin.left - (this.axes.length > 1 ? secondMargin : margin.right);
    this.height = page.height - margin.top - margin.bottom;
    const { pen } = page;
    pen.font = "12px system-ui, sans-serif";
    if (!this.times.length) {
      pen.fillStyle = colour("muted");
      pen.textAlign = "center";
      pen.fillText("No values in this range", page.width / 2, page.height / 2);
      return;
    }
    this.drawAxes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(margin.left, 0, this.width, page.height);
    pen.clip();
    this.series.forEach((series, index) => this.drawSeries(pen, series, index));
    pen.restore();
    if (this.cursor !== null) this.drawCursor(pen, this.times[this.cursor]);
    if (this.mark) this.drawMark(pen);
  }

  drawAxes(pen) {
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    this.axes.forEach((axis, index) => {
      for (const number of axis.marks) {
        const y = Math.round(this.y(number, axis)) + 0.5;
        pen.fillStyle = colour("muted");
        pen.textAlign = index ? "left" : "right";
        pen.fillText(value(number), index ? margin.left + this.width + 6 : margin.left - 6, y);
        if (!index) this.line(pen, "line", margin.left, y, margin.left + this.width, y);
      }
    });
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const [time, text] of timeMarks(this.from, this.to, this.width)) pen.fillText(text, this.x(time), margin.top + this.height + 7);
  }

  line(pen, name, x, y, toX, toY) {
    pen.strokeStyle = colour(name);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
    pen.stroke();
  }

  drawSeries(pen, series, index) {
    const axis = this.axis(series);
    const shade = colour(`series-${index + 1}`);
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    pen.strokeStyle = shade;
    pen.fillStyle = shade;
    if (series.isHeld) return this.drawSteps(pen, series.rows, axis);
    for (const run of runs(series.rows, this.step)) this.drawRun(pen, run, axis);
  }

  drawRun(pen, run, axis) {
    const path = (pick, rows) => rows.forEach((row) => pen.lineTo(this.x(this.middle(row)), this.y(pick(row), axis)));
    pen.globalAlpha = 0.18;
    pen.beginPath();
    path((row) => row.max, run);
    path((row) => row.min, [...run].reverse());
    pen.fill();
    pen.globalAlpha = 1;
    pen.beginPath();
    path((row) => row.mean, run);
    pen.stroke();
    if (run.length === 1) this.dot(pen, this.middle(run[0]), run[0].mean, axis);
  }

  /** Draws values that hold until the next one; the last holds until the end. */
  drawSteps(pen, rows, axis) {
    pen.beginPath();
    rows.forEach((row, index) => {
      const end = rows[index + 1]?.time ?? this.to;
      pen.lineTo(this.x(row.time), this.y(row.mean, axis));
      pen.lineTo(this.x(end), this.y(row.mean, axis));
    });
    pen.stroke();
    for (const row of rows) if (row.time >= this.from) this.dot(pen, row.time, row.mean, axis);
  }

  dot(pen, time, number, axis, radius = 2.5) {
    pen.beginPath();
    pen.arc(this.x(time), this.y(number, axis), radius, 0, 7);
    pen.fill();
  }

  drawCursor(pen, time) {
    const x = this.x(Math.min(time + this.step / 2, this.to));
    this.line(pen, "muted", x, margin.top, x, margin.top + this.height);
    pen.fillStyle = colour("text");
    for (const series of this.series) {
      const row = rowAt(series, time);
      if (row) this.dot(pen, series.isHeld ? Math.max(row.time, time) : this.middle(row), row.mean, this.axis(series), 3.5);
    }
  }

  drawMark(pen) {
    pen.globalAlpha = 0.15;
    pen.fillStyle = colour("accent");
    pen.fillRect(Math.min(this.mark.from, this.mark.to), margin.top, Math.abs(this.mark.to - this.mark.from), this.height);
    pen.globalAlpha = 1;
  }

  // Pointer and keyboard

  beginMark(event) {
    if (event.button !== 0 || !this.times.length) return;
    this.mark = { from: event.offsetX, to: event.offsetX };
    this.canvas.setPointerCapture(event.pointerId);
  }

  endMark(x) {
    const { mark } = this;
    this.mark = null;
    if (!mark || Math.abs(x - mark.from) < 8) return this.draw();
    const [from, to] = [this.time(Math.min(mark.from, x)), this.time(Math.max(mark.from, x))];
    this.onZoom(Math.max(from, this.from), Math.min(to, this.to));
  }

  point(offset) {
    if (this.mark) this.mark.to = offset;
    if (!this.times.length) return;
    const wanted = this.time(offset) - this.step / 2;
    let best = 0;
    this.times.forEach((time, index) => {
      if (Math.abs(time - wanted) < Math.abs(this.times[best] - wanted)) best = index;
    });
    this.choose(best);
    if (this.mark) this.draw();
  }

  press(event) {
    const last = this.times.length - 1;
    if (last < 0) return;
    const here = this.cursor ?? last;
    if (["+", "-", "Escape"].includes(event.key)) return this.zoom(event.key, this.times[here]);
    const next = {
      ArrowLeft: this.cursor === null ? last : here - 1, ArrowRight: here + 1, Home: 0, End: last,
      PageUp: here - 10, PageDown: here + 10,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, next)));
  }

  /** Zooms around a time, by half or to the double; Escape shows the whole range. */
  zoom(key, time) {
    if (key === "Escape") return this.onZoom(null, null);
    const half = (this.to - this.from) * (key === "+" ? 0.25 : 1);
    this.onZoom(time - half, time + half);
  }

  choose(index) {
    if (index === this.cursor) return;
    this.cursor = index;
    this.draw();
    this.onChoose(index === null ? null : this.words(this.times[index]));
  }

  /** The values of all series at a time, as text. */
  words(time) {
    const parts = this.series.map((series) => {
      const row = rowAt(series, time);
      const name = this.series.length > 1 ? `${metricWords(series.metric)} ` : "";
      return row ? name + rowWords(row, series.unit) : null;
    });
    return `${moment(time)}: ${parts.filter(Boolean).join(", ")}`;
  }
}

/** Groups rows without gaps; nothing is drawn between two groups. */
function runs(rows, step) {
  const groups = [];
  for (const row of rows) {
    const group = groups.at(-1);
    if (group && row.time - group.at(-1).time <= step * 2.5) group.push(row);
    else groups.push([row]);
  }
  return groups;
}

/** Returns the row of a series at a time; the last one before it if values hold. */
function rowAt({ rows, isHeld }, time) {
  return isHeld ? rows.findLast((row) => row.time <= time) : rows.find((row) => row.time === time);
}

/** Formats a row: mean, and minimum, maximum and count of a summary. */
export function rowWords(row, unit) {
  const range = row.n > 1 ? ` (${value(row.min)} to ${value(row.max)}, ${row.n} samples)` : "";
  return `${withUnit(row.mean, unit)}${range}`;
}
