// The dashboard: creates its parts and connects them.

import { sendCommand, token } from "./api.js";
import { Cards } from "./cards.js";
import { Detail } from "./detail.js";
import { find, resetColours, setText, toast } from "./dom.js";
import { follow } from "./events.js";
import { Gateway } from "./gateway.js";
import { Model } from "./model.js";
import { Records } from "./records.js";
import { SparkHistory } from "./sparkline.js";
import { moment, states } from "./words.js";

const model = new Model();

// The token

function showLock() {
  const hasToken = token.get() !== null;
  setText(find("lock"), hasToken ? "Unlocked" : "Locked");
  find("lock").setAttribute("aria-label", hasToken ? "Unlocked: change or forget the token" : "Locked: enter the token");
  find("lock").dataset.open = hasToken;
}

let asking = null;
/** True if the user closed the dialog without a token: then only the user opens it again. */
let isDeclined = false;

/** Asks the user for the token; returns true if there is a new one. */
function askForToken(reason) {
  const dialog = find("token");
  asking ??= new Promise((done) => {
    setText(find("token-reason"), `${reason} The token is in the file that http.token_file in the configuration names.`);
    find("token-text").value = "";
    find("token-forget").hidden = token.get() === null;
    dialog.returnValue = "cancel";
    dialog.showModal();
    find("token-text").focus();
    dialog.addEventListener("close", () => {
      asking = null;
      const text = find("token-text").value.trim();
      const isNew = dialog.returnValue === "use" && text !== "";
      if (isNew) token.set(text, find("token-keep").checked);
      isDeclined = !isNew;
      if (dialog.returnValue === "forget") token.forget();
      showLock();
      done(isNew);
    }, { once: true });
  });
  return asking;
}

/** Runs a request of the user; asks for the token if it is needed, and shows other errors. */
const attempt = (action) => run(action, () => true);

/** Runs a request of the page: like `attempt`, but a user who declined is not asked again. */
const attemptRead = (action) => run(action, () => !isDeclined);

async function run(action, mayAsk) {
  try {
    return await action();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    if (!error.wantsToken) {
      // A newer value replaced this one.
      if (!(error.status === 409 && error.message.startsWith("superseded"))) toast(error.message);
      return undefined;
    }
    if (!mayAsk()) return undefined;
    const reason = token.get() === null ? "This needs the token." : "The token is wrong.";
    return (await askForToken(reason)) ? run(action, mayAsk) : undefined;
  }
}

// Enter presses the first submit button of a form: only "Use it" is one.
for (const choice of ["forget", "cancel"]) {
  find(`token-${choice}`).addEventListener("click", () => find("token").close(choice));
}

find("lock").addEventListener("click", async () => {
  if (await askForToken("With the token you can connect and disconnect devices and set controls.")) restart();
});

// The parts

const onCommand = (device, command) => attempt(() => sendCommand(device, command));
const detail = new Detail(model, onCommand, attempt, attemptRead);
new Gateway(model);
const sparks = new SparkHistory(model);
new Cards(model, onCommand, (name) => { location.hash = `device/${encodeURIComponent(name)}`; }, (name) => sparks.request(name));
new Records(model, (error) => toast(error.message));

function openFromHash() {
  const name = location.hash.startsWith("#device/") ? decodeURIComponent(location.hash.slice(8)) : null;
  if (name === null) find("detail").close();
  else if (model.devices.size) detail.open(name);
}
window.addEventListener("hashchange", openFromHash);
model.addEventListener("devices", openFromHash);

document.addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key !== "/" || isTyping || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  find("search").focus();
});

// Announcements for screen readers: the changes of two seconds in one sentence.

const changed = new Set();
model.addEventListener("change", ({ detail: name }) => {
  if (!changed.size) setTimeout(announce, 2000);
  changed.add(name);
});

function announce() {
  const words = [...changed].filter((name) => model.devices.has(name)).map((name) => `${name}: ${states[model.devices.get(name).state]?.name}`);
  changed.clear();
  setText(find("announcer"), words.length > 5 ? `${words.length} devices changed` : words.join(", "));
}

// Light and dark

const themes = ["auto", "light", "dark"];

function showTheme() {
  const theme = localStorage.getItem("gattherd-theme") ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(find("theme"), `◐ ${{ auto: "Auto", light: "Light", dark: "Dark" }[theme]}`);
  find("theme").setAttribute("aria-label", `Colours: ${theme}`);
  return theme;
}
find("theme").addEventListener("click", () => {
  localStorage.setItem("gattherd-theme", themes[(themes.indexOf(showTheme()) + 1) % themes.length]);
  showTheme();
  resetColours();
});

// After an upgrade of the gateway the page is loaded again.

let version = null;
model.addEventListener("gateway", () => {
  version ??= model.status.version;
  if (version !== model.status.version) location.reload();
});

// The stream

let lastSign = null;

function showLive(state, words) {
  find("live").dataset.state = state;
  setText(find("live"), words);
  const isLost = state === "lost";
  document.body.dataset.live = state;
  find("stale").hidden = !isLost || lastSign === null;
  if (isLost && lastSign !== null) setText(find("stale"), `No connection: the values below are from ${moment(lastSign)}.`);
  else lastSign = model.now();
}

/** Shows that the stream ended; asks for the token if it is needed, unless the user declined before. */
async function lost(error, seconds) {
  if (error?.wantsToken) return lockedOut(token.get() === null ? "Reading needs the token" : "The token is wrong");
  // Without a response there is no status, and no reason.
  showLive("lost", `${error?.status ? error.message : "No connection"}, again in ${Math.round(seconds)} s`);
}

async function lockedOut(reason) {
  showLive("lost", reason);
  if (!isDeclined && await askForToken(`${reason}.`)) restart();
}

showTheme();
showLock();
const restart = follow(
  (name, data) => model.receive(name, data),
  (state, error, seconds) => (state === "live" ? showLive("live", "Live") : lost(error, seconds)),
);
