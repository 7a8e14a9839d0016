// The dashboard: creates its parts and connects them.

import { AddPage } from "./add.js";
import { sendCommand, token } from "./api.js";
import { ChecksPage } from "./checks.js";
import { ConfigurationPage } from "./configuration.js";
import { DevicePage } from "./device.js";
import { Devices } from "./devices.js";
import { find, resetColours, setText, toast } from "./dom.js";
import { follow } from "./events.js";
import { Gateway } from "./gateway.js";
import { LogPage } from "./log.js";
import { Model } from "./model.js";
import { Records } from "./records.js";
import { Router } from "./router.js";
import { SparkHistory } from "./sparkline.js";
import { askForToken, askOnce, attempt, attemptRead, showLock } from "./token.js";
import { moment, states } from "./words.js";

const model = new Model();

find("lock").addEventListener("click", async () => {
  if (await askForToken("With the token you can control and add devices and change the configuration.")) restart();
});

// The pages

const onCommand = (device, command) => attempt(() => sendCommand(device, command));
const device = new DevicePage(model, onCommand, attempt, attemptRead);
const add = new AddPage(model, attempt);
const configuration = new ConfigurationPage(model, attempt);
const log = new LogPage(model, attempt);
const checks = new ChecksPage(attempt);
new Gateway(model);
const sparks = new SparkHistory(model);
new Devices(model, onCommand, (name) => sparks.request(name), attempt);
new Records(model, (error) => toast(error.message));

const router = new Router({
  shown: {
    device: (name) => device.open(name), add: () => add.open(), configuration: (file) => configuration.open(file),
    log: (name) => log.open(name), checks: () => checks.open(),
  },
  left: { device: () => device.close(), add: () => add.close(), configuration: () => configuration.close(), log: () => log.close() },
});

document.addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key !== "/" || isTyping || document.querySelector("dialog[open]") || router.page !== "devices") return;
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
  const words = [...changed].filter((name) => model.devices.has(name)).map((name) => `${model.devices.get(name).label}: ${states[model.devices.get(name).state]?.name}`);
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

/** The time of the last message; null before the first. */
let lastSign = null;

function showLive(state, words) {
  find("live").dataset.state = state;
  setText(find("live"), words);
  const isLost = state === "lost";
  document.body.dataset.live = state;
  if (!isLost) lastSign = model.now();
  find("stale").hidden = !isLost || lastSign === null;
  if (isLost && lastSign !== null) setText(find("stale"), `No connection: the values below are from ${moment(lastSign)}.`);
}

/** Shows that the stream ended; asks for the token if it is needed, unless the user declined before. */
async function lost(error, seconds) {
  if (error?.wantsToken) return lockedOut(token.get() === null ? "Reading needs the token" : "The token is wrong");
  // Without a response there is no status, and no reason.
  showLive("lost", `${error?.status ? error.message : "No connection"}, again in ${Math.round(seconds)} s`);
}

async function lockedOut(reason) {
  showLive("lost", reason);
  if (await askOnce(`${reason}.`)) restart();
}

showTheme();
showLock();
router.show();
const restart = follow(
  (name, data) => model.receive(name, data),
  (state, error, seconds) => (state === "live" ? showLive("live", "Live") : lost(error, seconds)),
);
