// The marks of a chart's axes: round numbers and round times.

const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;

/** Intervals between marks on the time axis. */
const times = [1, 5, 10, 30, 60, 300, 600, 900, 1800].map((each) => each * second)
  .concat([1, 2, 3, 6, 12].map((each) => each * hour), [1, 2, 7, 14, 30, 60, 90].map((each) => each * day));

/** Intervals of summaries: as the gateway reads them, and in milliseconds. */
const intervals = [
  ["1s", second], ["2s", 2 * second], ["5s", 5 * second], ["15s", 15 * second], ["30s", 30 * second],
  ["1m", 60 * second], ["2m", 120 * second], ["5m", 300 * second], ["15m", 900 * second], ["30m", 1800 * second],
  ["1h", hour], ["3h", 3 * hour], ["8h", 8 * hour], ["1d", day],
];
/** The most marks of an axis. */
const markLimit = 12;
/** Summaries that a chart has room for. */
const summaryCount = 370;

/** Returns the interval of summaries for a range: as text and in milliseconds. */
export const intervalFor = (length) => intervals.find(([, step]) => length / step <= summaryCount) ?? intervals.at(-1);

/** Returns the smallest of 1, 2, 5, 10, … that divides the range into at most `count` parts. */
function niceStep(range, count) {
  const least = range / count;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999);
}

/** Returns the ends and the marks of an axis that shows all numbers from `least` to `most`. */
export function valueAxis(least, most) {
  const range = most - least || Math.abs(most) * 0.1 || 1;
  const step = niceStep(range, 5);
  const low = Math.floor((least - range * 0.05) / step) * step;
  const high = Math.ceil((most + range * 0.05) / step) * step;
  // The marks are counted: adding a small step to a very large number may not change it.
  const count = Math.min(markLimit, Math.round((high - low) / step) + 1 || 0);
  const marks = Array.from({ length: count }, (_, index) => Number((low + index * step).toPrecision(10)));
  return { low, high, marks };
}

/** Returns the marks of a time axis: times, and their text. */
export function timeMarks(from, to, width) {
  const step = times.find((each) => (to - from) / each <= Math.max(2, width / 90)) ?? times.at(-1);
  const zone = (time) => new Date(time).getTimezoneOffset() * 60 * second;
  const shift = zone(from);
  // The hour that the clocks repeat has marks, too.
  const offset = step > hour ? zone : () => shift;
  const marks = [];
  for (let local = Math.ceil((from - shift) / step) * step; ; local += step) {
    // A day in which the clocks change has 23 or 25 hours.
    const time = local + offset(local + shift);
    if (!(time <= to)) return marks;
    // An hour that the clocks leave out has no mark.
    if (time >= from && !(time <= marks.at(-1)?.[0])) marks.push([time, timeMark(time, step)]);
  }
}

function timeMark(time, step) {
  const date = new Date(time);
  const options = step >= day
    ? { day: "numeric", month: "short" }
    : { hour: "2-digit", minute: "2-digit", hourCycle: "h23", second: step < 60 * second ? "2-digit" : undefined };
  const isMidnight = step < day && date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  return date.toLocaleString(undefined, isMidnight ? { day: "numeric", month: "short" } : options);
}
