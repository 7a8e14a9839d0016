// Requests to the gateway, with the token where there is one.

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

/** Why a request failed: `status` is 0 when there was no answer. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
  /** Another token may help. */
  get wantsToken() { return this.status === 401; }
}

/** Asks, and gives the response if it is good. */
export async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The gateway does not answer.");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new RequestError(response.status, body.error ?? `The gateway answers with ${response.status}.`);
}

const path = (...parts) => parts.map(encodeURIComponent).join("/");

export async function read(name, query = {}, signal = undefined) {
  const wanted = Object.entries(query).filter(([, text]) => text != null);
  for (let patience = 3; ; patience -= 1) {
    try {
      const response = await request(`api/v1/${name}?${new URLSearchParams(wanted)}`, {
        headers: { Accept: "application/json" },
        signal,
      });
      return await response.json();
    } catch (error) {
      // History is being read for others.
      if (error.status !== 503 || patience === 0) throw error;
      await new Promise((done) => { setTimeout(done, 500 + Math.random() * 500); });
    }
  }
}

export const order = (device, verb) => request(`api/v1/devices/${path(device)}/${verb}`, { method: "POST" });

export const set = (device, control, value) => request(`api/v1/devices/${path(device)}/controls/${path(control)}`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ value }),
});
