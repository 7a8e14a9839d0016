// The stream of server-sent events, read by fetch: EventSource cannot send the token.

import { request } from "./api.js";

/** Silence after which the stream is restarted, in milliseconds; the gateway sends a message every second. */
const silenceLimit = 15000;
/** The longest pause before the stream is restarted, in seconds. */
const longestPause = 15;

/**
 * Reads events until the page is closed, and restarts the stream when it ends.
 * `onMessage(name, data)` receives each event, `onState("live" | "lost", error, pauseInSeconds)` the state of the stream.
 * Returns a function that restarts the stream without a pause.
 */
export function follow(onMessage, onState) {
  let failures = 0;
  let wake = () => {};
  const run = async () => {
    for (;;) {
      let error = null;
      try {
        await readOnce((name, data) => {
          failures = 0;
          onState("live");
          onMessage(name, data);
        });
      } catch (caught) {
        error = caught;
      }
      failures += 1;
      const seconds = Math.min(longestPause, 2 ** Math.min(failures - 1, 4)) * (0.75 + Math.random() / 2);
      onState("lost", error, seconds);
      await new Promise((done) => {
        wake = done;
        setTimeout(done, seconds * 1000);
      });
    }
  };
  run();
  return () => { failures = 0; wake(); };
}

async function readOnce(onMessage) {
  const abort = new AbortController();
  let watch = setTimeout(() => abort.abort(), silenceLimit);
  try {
    const response = await request("api/v1/events", { headers: { Accept: "text/event-stream" }, signal: abort.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watch);
      watch = setTimeout(() => abort.abort(), silenceLimit);
      const messages = (text + value).split("\n\n");
      text = messages.pop();
      for (const message of messages) deliver(message, onMessage);
    }
  } finally {
    clearTimeout(watch);
    abort.abort();
  }
}

function deliver(message, onMessage) {
  let name = "";
  let data = "";
  for (const line of message.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data) onMessage(name, JSON.parse(data));
}
