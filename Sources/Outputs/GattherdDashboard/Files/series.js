// The values of a metric in a range of time, read from history.

import { read } from "./api.js";
import { nameParts } from "./words.js";

/** The most rows of a page of history. */
const rowLimit = 10000;
/** The most rows of a series: a chart passes those of four to a function, and browsers limit its arguments. */
const seriesRowLimit = 15000;
/** Ranges up to this length are shown with each sample instead of summaries, in milliseconds. */
const shortest = 60000;
const minute = 60000;
const hour = 60 * minute;
/** The time before a range in which the last value is looked for, in milliseconds. */
const lookBack = 7 * 24 * hour;

const text = (time) => new Date(Math.round(time)).toISOString();

/** Returns the row of a sample or a summary; null for a value that is no number. */
function row(each) {
  const mean = each.mean ?? each.value;
  if (typeof mean !== "number") return null;
  return { time: Date.parse(each.ts), mean, min: each.min ?? mean, max: each.max ?? mean, n: each.n ?? 1 };
}

/** Combines the summaries of one time, which several streams of the device may have. */
export function combined(rows) {
  const all = [];
  for (const each of rows) {
    const last = all.at(-1);
    if (last?.ts !== each.ts || each.n === undefined) {
      all.push({ ...each });
      continue;
    }
    const n = last.n + each.n;
    Object.assign(last, { n, mean: (last.mean * last.n + each.mean * each.n) / n, min: Math.min(last.min, each.min), max: Math.max(last.max, each.max) });
  }
  return all;
}

/** Reads rows of history page by page; null if there are too many. A page has at most 1 MiB, oldest rows first. */
async function readRows(query, signal) {
  const rows = [];
  let { since } = query;
  while (rows.length <= seriesRowLimit) {
    const page = await read("history", { ...query, since, limit: rowLimit }, signal);
    rows.push(...page.rows);
    if (!page.next) break;
    since = page.next;
  }
  return rows.length > seriesRowLimit ? null : rows;
}

/**
 * Reads a series for a chart. `metric` is the name of a value. `range` has `from`, `to`, `every` and `step`.
 * Values that seldom change hold until the next one; the last one before the range holds at its beginning, as a row
 * with `isCarried`.
 */
export async function readSeries(device, metric, range, signal) {
  const { from, to, every, step } = range;
  const query = { device: device.name, ...nameParts(metric), since: text(from), until: text(to), every };
  const samples = to - from <= shortest ? await readRows({ ...query, every: null }, signal) : null;
  const found = samples ?? await readRows(query, signal) ?? [];
  const rows = combined(found).map(row).filter(Boolean);
  // A device without a link since the daemon's start is not described yet.
  const unit = device.unit(metric) ?? found.at(-1)?.unit ?? null;
  const series = { metric, unit, rows, isHeld: isSeldom(rows, step) };
  if (!series.isHeld) return series;
  const before = await lastBefore(device, metric, from, signal);
  if (before) rows.unshift({ ...before, time: from, isCarried: true });
  return series;
}

/** True if most rows are far from the next: the device sends the metric when it changes, and it holds meanwhile. */
function isSeldom(rows, step) {
  if (rows.length < 2) return true;
  const gaps = rows.slice(1).map((each, index) => each.time - rows[index].time).sort((one, other) => one - other);
  return gaps[Math.floor(gaps.length / 2)] > step * 2.5;
}

/**
 * Returns the last sample before a time; null if there is none in a week.
 *
 * The gateway returns the oldest rows first, so the last sample is found by summaries: by minutes of the last hour,
 * or else by hours of the last week, and then by minutes of the hour found.
 */
async function lastBefore(device, metric, time, signal) {
  const last = async (from, to, every) => {
    const range = { since: text(from), until: text(Math.min(to, time)), every };
    const rows = await readRows({ device: device.name, ...nameParts(metric), ...range }, signal);
    return combined(rows ?? []).map(row).filter(Boolean).at(-1) ?? null;
  };
  let found = await last(time - hour, time, "1m");
  if (!found) {
    found = await last(time - lookBack, time, "1h");
    if (!found) return null;
    found = await last(found.time, found.time + hour, "1m") ?? found;
  }
  // The sample itself may be deleted already; the mean of its minute then replaces it.
  return await last(found.time, found.time + minute) ?? found;
}
