// How states, times and values are told to people.

/** Of each link state: its name, what it means, its kind (for colours and filters), and what the button does. */
export const states = {
  waiting: { name: "Waiting", hint: "not seen yet", kind: "idle", order: "disconnect", button: "Stop" },
  connecting: { name: "Connecting", hint: "", kind: "busy", order: "disconnect", button: "Stop" },
  discovering: { name: "Connecting", hint: "reading its services", kind: "busy", order: "disconnect", button: "Stop" },
  preparing: { name: "Connecting", hint: "subscribing", kind: "busy", order: "disconnect", button: "Stop" },
  ready: { name: "Ready", hint: "", kind: "good", order: "disconnect", button: "Disconnect" },
  disconnecting: { name: "Disconnecting", hint: "", kind: "busy", order: null, button: "Disconnect" },
  disconnected: { name: "Disconnected", hint: "", kind: "idle", order: "connect", button: "Connect" },
  backingOff: { name: "Backing off", hint: "", kind: "warn", order: "connect", button: "Try now" },
  held: { name: "Held", hint: "disconnected by hand, until it is connected by hand", kind: "held", order: "connect", button: "Connect" },
  failed: { name: "Failed", hint: "", kind: "bad", order: "connect", button: "Try again" },
};

export const kinds = [
  ["all", "All"], ["good", "Ready"], ["busy", "Connecting"], ["warn", "Backing off"],
  ["idle", "Waiting"], ["held", "Held"], ["bad", "Failed"],
];

const reasons = {
  requested: "as requested", timedOut: "timed out", remote: "the device ended the link, or the radio lost it",
  local: "this side ended the link", authentication: "pairing was refused", daemonLost: "bluetoothd is away",
  adapterLost: "the adapter is gone", adapterPoweredOff: "the adapter is off", vanished: "BlueZ forgot the device",
  connectFailed: "it could not be connected", profileMismatch: "no profile fits", gattError: "a GATT operation failed",
  silent: "nothing came from it", busy: "BlueZ is busy", adapterFull: "no adapter has a place for it",
  rotated: "devices take turns", unknown: "for an unknown reason",
};

export const reasonWords = (reason) => reasons[reason] ?? reason ?? "";

/** `heart_rate` as people write it. */
export const plain = (name) => name.replaceAll("_", " ");

/** A number and its unit, which no line may separate. */
const joined = (number, unit) => `${number}\u00A0${unit}`;

/** A length of time in seconds, roughly: `12 s`, `3 min`, `2 h`, `5 d`. */
export function span(seconds) {
  const rest = Math.max(0, seconds);
  if (rest < 100) return joined(Math.floor(rest), "s");
  if (rest < 6000) return joined(Math.floor(rest / 60), "min");
  if (rest < 172800) return joined(Math.floor(rest / 3600), "h");
  return joined(Math.floor(rest / 86400), "d");
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** The time of day, and the day unless it is today. */
export function moment(milliseconds) {
  const date = new Date(milliseconds);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** A sample's value: small numbers with four digits that mean something, others with six. */
export function value(sample) {
  if (sample === null || sample === undefined) return "–";
  if (sample === true) return "yes";
  if (sample === false) return "no";
  if (typeof sample === "number") {
    return Number.isInteger(sample) ? String(sample) : String(Number(sample.toPrecision(Math.abs(sample) < 100 ? 4 : 6)));
  }
  return plain(String(sample));
}

export const withUnit = (sample, unit) => (unit && sample != null ? joined(value(sample), unit) : value(sample));

/** Octets: `1.2 MiB`. */
export function size(octets) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let rest = octets;
  while (rest >= 1024 && power < units.length - 1) { rest /= 1024; power += 1; }
  return joined(power ? rest.toFixed(1) : rest, units[power]);
}

const counts = new Intl.NumberFormat();
export const count = (number) => counts.format(number);
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** An event in a few words. */
export function eventWords(event) {
  const detail = { ...event.detail };
  if (event.kind === "control") {
    const wish = detail.value === "" ? plain(detail.control) : `${plain(detail.control)} = ${value(detail.value)}`;
    return detail.error ? `${wish}: ${detail.error}` : wish;
  }
  if (event.kind !== "link") {
    return Object.entries(detail).map(([name, text]) => `${plain(name)} ${value(text)}`).join(", ");
  }
  const { name = detail.to, hint } = states[detail.to] ?? {};
  const to = hint && detail.to !== "waiting" && detail.to !== "held" ? `${name} (${hint})` : name;
  const why = [detail.reason && reasonWords(detail.reason), detail.detail].filter(Boolean).join(": ");
  const retry = detail.retry_after == null ? "" : `, again in ${span(Math.ceil(detail.retry_after))}`;
  return `${to}${why ? `: ${why}` : ""}${retry}`;
}
