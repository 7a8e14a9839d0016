// Requests to the gateway, with the token if there is one.

const key = "gattherd-token";

export const token = {
  get: () => sessionStorage.getItem(key) ?? localStorage.getItem(key),
  set(text, isKept) {
    token.forget();
    (isKept ? localStorage : sessionStorage).setItem(key, text);
  },
  forget() {
    sessionStorage.removeItem(key);
    localStorage.removeItem(key);
  },
};

/** A failed request; `status` is 0 if there was no response. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
  /** True if the request needs a token, or another one. */
  get wantsToken() { return this.status === 401; }
}

/** Sends a request and returns the response; throws a `RequestError` for all but success. */
export async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The gateway does not respond.");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new RequestError(response.status, body.error ?? `The gateway responded with status ${response.status}.`);
}

const path = (...parts) => parts.map(encodeURIComponent).join("/");

/** Resources of history, which the gateway reads for few clients at once. */
const shared = ["history", "events", "rejects"];
/** Attempts to read one of them while the gateway is busy with others. */
const attempts = 4;

/** Reads a resource of the API as JSON. */
export async function read(name, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, text]) => text != null);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await request(`api/v1/${name}?${new URLSearchParams(given)}`, {
        headers: { Accept: "application/json" },
        signal,
      });
      return await response.json();
    } catch (error) {
      // 503: other requests for history are being answered, or a command or a change has failed.
      if (error.status !== 503 || attempt === attempts || !shared.includes(name)) throw error;
      await new Promise((done) => { setTimeout(done, 500 + Math.random() * 500); });
    }
  }
}

/** Sends `connect` or `disconnect` for a device. */
export const sendCommand = (device, command) => request(`api/v1/devices/${path(device)}/${command}`, { method: "POST" });

/** Sends an object as JSON, and returns the object of the response. */
async function send(name, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  const response = await request(`api/v1/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json();
}

/** Sets a control of a device. */
export const set = (device, control, value) => send(`devices/${path(device)}/controls/${path(control)}`, { value });

/** Sets the name for people, the area and the note of a device; null removes one. */
export const setLabel = (device, label) => send(`devices/${path(device)}/label`, label);

/** Adds a device, or with `preview` only returns the text that would be written. */
export const addDevice = (device) => send("peripherals/add", device);

/** Ends the gateway, which its supervisor starts again. */
export const restartGateway = () => send("restart", {});

/** Checks the configuration with another text of a file. */
export const checkFile = (file, text) => send("configuration/check", { file, text });

/** Writes a file of the configuration and makes the gateway follow it; `version` is null for a new file. */
export const applyFile = (file, text, version) => send("configuration/file", { file, text, version });
