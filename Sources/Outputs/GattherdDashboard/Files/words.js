// States, times, values and events as text.

/** Link states: name, hint, kind (for colours and filters), and the command and label of the button. */
export const states = {
  waiting: { name: "Waiting", hint: "not seen yet", kind: "idle", command: "disconnect", button: "Stop" },
  connecting: { name: "Connecting", hint: "", kind: "busy", command: "disconnect", button: "Stop" },
  discovering: { name: "Connecting", hint: "reading its services", kind: "busy", command: "disconnect", button: "Stop" },
  preparing: { name: "Connecting", hint: "subscribing", kind: "busy", command: "disconnect", button: "Stop" },
  ready: { name: "Ready", hint: "", kind: "good", command: "disconnect", button: "Disconnect" },
  disconnecting: { name: "Disconnecting", hint: "", kind: "busy", command: null, button: "Disconnect" },
  disconnected: { name: "Disconnected", hint: "", kind: "idle", command: "connect", button: "Connect" },
  backingOff: { name: "Backing off", hint: "", kind: "warn", command: "connect", button: "Try now" },
  held: { name: "Held", hint: "disconnected on request, until you connect it", kind: "held", command: "connect", button: "Connect" },
  failed: { name: "Failed", hint: "", kind: "bad", command: "connect", button: "Try again" },
};

export const kinds = [
  ["all", "All"], ["good", "Ready"], ["busy", "Connecting"], ["warn", "Backing off"],
  ["idle", "Waiting"], ["held", "Held"], ["bad", "Failed"],
];

const reasons = {
  requested: "on request", timedOut: "timed out", remote: "the device closed the link or is out of range",
  local: "the gateway closed the link", authentication: "pairing failed", daemonLost: "bluetoothd is not running",
  adapterLost: "the adapter is gone", adapterPoweredOff: "the adapter is off", vanished: "BlueZ removed the device",
  connectFailed: "the connection failed", profileMismatch: "no profile fits", gattError: "a GATT operation failed",
  silent: "no values received", busy: "BlueZ is busy", adapterFull: "all adapters are full",
  rotated: "devices take turns", ownedElsewhere: "another gateway's", unknown: "unknown reason",
};

export const reasonWords = (reason) => reasons[reason] ?? reason ?? "";

/** Returns a name without underscores: `heart rate` for `heart_rate`. */
export const plain = (name) => name.replaceAll("_", " ");

/** Returns the parts of a value's name: `stream/metric` if several streams have the metric, else the metric alone. */
export function nameParts(name) {
  const [metric, stream = null] = name.split("/").reverse();
  return { stream, metric };
}

/** Returns a value's name in words: `battery level`, or `battery level (vendor)` if several streams have the metric. */
export function metricWords(name) {
  const { stream, metric } = nameParts(name);
  return stream === null ? plain(metric) : `${plain(metric)} (${plain(stream)})`;
}

/** Returns the metrics that several streams have. */
export const sharedMetrics = (values) => new Set(
  Object.keys(values).map(nameParts).filter(({ stream }) => stream).map(({ metric }) => metric));

/** Returns the names of all values; a metric that several streams have is named by stream only. */
export function valueNames(values) {
  const shared = sharedMetrics(values);
  return Object.keys(values).filter((name) => !shared.has(name));
}

/** Returns the names of values for all pairs of a stream and a metric that a device has. */
export function pairNames(pairs) {
  const streams = new Map();
  for (const { stream, metric } of pairs) streams.set(metric, (streams.get(metric) ?? new Set()).add(stream));
  // The signal strength is one metric of the device, although each advertisement has it.
  const isShared = (metric) => metric !== "rssi" && streams.get(metric).size > 1;
  return pairs.map(({ stream, metric }) => (isShared(metric) ? `${stream}/${metric}` : metric));
}

/** Returns the name under which `values` have a stream's metric. */
export const valueName = (values, stream, metric) => (sharedMetrics(values).has(metric) ? `${stream}/${metric}` : metric);

/** Joins a number and its unit by a space that does not break the line. */
const joined = (number, unit) => `${number}\u00A0${unit}`;

/** Formats a duration in seconds, rounded down: `12 s`, `3 min`, `2 h`, `5 d`. */
export function span(seconds) {
  const rest = Math.max(0, seconds);
  if (rest < 100) return joined(Math.floor(rest), "s");
  if (rest < 6000) return joined(Math.floor(rest / 60), "min");
  if (rest < 172800) return joined(Math.floor(rest / 3600), "h");
  return joined(Math.floor(rest / 86400), "d");
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** Formats a time of day, with the date unless it is today. */
export function moment(milliseconds) {
  const date = new Date(milliseconds);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** Formats a sample: numbers below 100 with four significant digits, others with six or more; text as it is. */
export function value(sample) {
  if (sample === null || sample === undefined) return "–";
  if (sample === true) return "yes";
  if (sample === false) return "no";
  if (typeof sample !== "number" || Number.isInteger(sample)) return String(sample);
  const magnitude = Math.abs(sample);
  return String(magnitude < 1e6 ? Number(sample.toPrecision(magnitude < 100 ? 4 : 6)) : Math.round(sample));
}

export const withUnit = (sample, unit) => (unit && sample != null ? joined(value(sample), unit) : value(sample));

/** Formats a number of bytes: `1.2 MiB`. */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let rest = bytes;
  while (rest >= 1024 && power < units.length - 1) { rest /= 1024; power += 1; }
  return joined(power ? rest.toFixed(1) : rest, units[power]);
}

const counts = new Intl.NumberFormat();
export const count = (number) => counts.format(number);
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Formats a member of an event; states are names of ours, all else is text. */
const memberWords = (name, text) => `${plain(name)} ${name === "state" ? plain(String(text)) : value(text)}`;

/** Formats an event in a few words. */
export function eventWords(event) {
  const detail = { ...event.detail };
  if (event.kind === "control") {
    const request = detail.value === "" ? plain(detail.control) : `${plain(detail.control)} = ${value(detail.value)}`;
    return detail.error ? `${request}: ${detail.error}` : request;
  }
  if (event.kind !== "link") {
    return Object.entries(detail).map(([name, text]) => memberWords(name, text)).join(", ");
  }
  const { name = detail.to, hint } = states[detail.to] ?? {};
  const to = hint && detail.to !== "waiting" && detail.to !== "held" ? `${name} (${hint})` : name;
  const why = [detail.reason && reasonWords(detail.reason), detail.detail].filter(Boolean).join(": ");
  const retry = detail.retry_after == null ? "" : `, again in ${span(Math.ceil(detail.retry_after))}`;
  return `${to}${why ? `: ${why}` : ""}${retry}`;
}

/** Sorts metrics: numbers, then flags and the battery level, then texts; otherwise in the order of the profiles. */
export function sortedMetrics(device) {
  const rank = (metric) => {
    if (typeof device.values[metric] === "string") return 2;
    return typeof device.values[metric] === "number" && nameParts(metric).metric !== "battery_level" ? 0 : 1;
  };
  const names = valueNames(device.values);
  const known = device.metrics ? [...device.metrics.keys()].filter((metric) => names.includes(metric)) : [];
  return [...known, ...names.filter((metric) => !known.includes(metric))].sort((one, other) => rank(one) - rank(other));
}

/** Describes a link: duration or next attempt, failed attempts, reason. */
export function linkSummary(device, now) {
  const { hint } = states[device.state] ?? {};
  const since = span((now - device.since) / 1000);
  if (device.state === "ready" && device.reason !== "silent") return `for ${since}`;
  const why = [reasonWords(device.reason), device.detail].filter(Boolean).join(": ");
  const parts = [device.nextRetry ? nextTry(device.nextRetry - now) : `for ${since}`];
  if (device.attempt > 0) parts.push(counted(device.attempt, "failed attempt"));
  // The reason is more precise than the hint: a waiting device may have been seen before, or wait for a slot.
  parts.push(device.state === "waiting" ? why || hint : hint || why);
  return parts.filter(Boolean).join(" · ");
}

const nextTry = (milliseconds) => (milliseconds > 0 ? `again in ${span(Math.ceil(milliseconds / 1000))}` : "trying again");
