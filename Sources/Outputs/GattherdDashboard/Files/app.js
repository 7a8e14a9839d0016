// The dashboard: puts the parts together.

import { order, token } from "./api.js";
import { Cards } from "./cards.js";
import { Detail } from "./detail.js";
import { find, forgetColours, say, toast } from "./dom.js";
import { follow } from "./events.js";
import { Gateway } from "./gateway.js";
import { Model } from "./model.js";
import { Records } from "./records.js";
import { Seeds } from "./sparkline.js";
import { moment, states } from "./words.js";

const model = new Model();

// The token

function showLock() {
  const hasToken = token.get() !== null;
  say(find("lock"), hasToken ? "Unlocked" : "Locked");
  find("lock").setAttribute("aria-label", hasToken ? "Unlocked: change or forget the token" : "Locked: give the token");
  find("lock").dataset.open = hasToken;
}

let asking = null;

/** Asks a person for the token; true when there is another one. */
function askForToken(reason) {
  const dialog = find("token");
  asking ??= new Promise((done) => {
    say(find("token-reason"), `${reason} It is in the file that http.token_file of the configuration names.`);
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
      if (dialog.returnValue === "forget") token.forget();
      showLock();
      done(isNew);
    }, { once: true });
  });
  return asking;
}

/** Runs a request; asks for the token where that may help, says what is wrong otherwise. */
async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    if (!error.wantsToken) {
      // A newer value took the place of this one.
      if (!(error.status === 409 && error.message.startsWith("superseded"))) toast(error.message);
      return undefined;
    }
    const reason = token.get() === null ? "This needs the token." : "The token is wrong.";
    return (await askForToken(reason)) ? attempt(action) : undefined;
  }
}

// Enter presses a form's first button that submits: only "Use it" is one.
for (const choice of ["forget", "cancel"]) {
  find(`token-${choice}`).addEventListener("click", () => find("token").close(choice));
}

find("lock").addEventListener("click", async () => {
  if (await askForToken("Whoever has it may connect, disconnect and set.")) restart();
});

// The parts

const onOrder = (device, verb) => attempt(() => order(device, verb));
const detail = new Detail(model, onOrder, attempt);
new Gateway(model);
const seeds = new Seeds(model);
new Cards(model, onOrder, (name) => { location.hash = `device/${encodeURIComponent(name)}`; }, (name) => seeds.want(name));
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

// What a screen reader is told of: many changes at once in one sentence.

const changed = new Set();
model.addEventListener("change", ({ detail: name }) => {
  if (!changed.size) setTimeout(announce, 2000);
  changed.add(name);
});

function announce() {
  const words = [...changed].filter((name) => model.devices.has(name)).map((name) => `${name}: ${states[model.devices.get(name).state]?.name}`);
  changed.clear();
  say(find("announcer"), words.length > 5 ? `${words.length} devices changed` : words.join(", "));
}

// Light and dark

const themes = ["auto", "light", "dark"];

function showTheme() {
  const theme = localStorage.getItem("gattherd-theme") ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  say(find("theme"), `◐ ${{ auto: "Auto", light: "Light", dark: "Dark" }[theme]}`);
  find("theme").setAttribute("aria-label", `Colours: ${theme}`);
  return theme;
}
find("theme").addEventListener("click", () => {
  localStorage.setItem("gattherd-theme", themes[(themes.indexOf(showTheme()) + 1) % themes.length]);
  showTheme();
  forgetColours();
});

// A gateway that was upgraded has another page.

let version = null;
model.addEventListener("gateway", () => {
  version ??= model.status.version;
  if (version !== model.status.version) location.reload();
});

// The stream

let lastSign = null;

function showLive(state, words) {
  find("live").dataset.state = state;
  say(find("live"), words);
  const isLost = state === "lost";
  document.body.dataset.live = state;
  find("stale").hidden = !isLost || lastSign === null;
  if (isLost && lastSign !== null) say(find("stale"), `Everything below is as it was at ${moment(lastSign)}.`);
  else lastSign = model.now();
}

async function lost(error, seconds) {
  // The stream ends without a reason, or the gateway gives one.
  const why = error?.status ? error.message : "No connection";
  showLive("lost", `${why}, again in ${Math.round(seconds)} s`);
  if (error?.wantsToken && await askForToken(token.get() === null ? "Reading needs the token." : "The token is wrong.")) restart();
}

showTheme();
showLock();
const restart = follow(
  (name, data) => model.take(name, data),
  (state, error, seconds) => (state === "live" ? showLive("live", "Live") : lost(error, seconds)),
);
