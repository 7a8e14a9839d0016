// The token: the dialog that asks for it, and requests that need it.

import { token } from "./api.js";
import { find, setText, toast } from "./dom.js";

let asking = null;
/** True if the user closed the dialog without a token: then only the user opens it again. */
let isDeclined = false;

/** Shows whether there is a token. */
export function showLock() {
  const hasToken = token.get() !== null;
  setText(find("lock"), hasToken ? "Unlocked" : "Locked");
  find("lock").setAttribute("aria-label", hasToken ? "Unlocked: change or forget the token" : "Locked: enter the token");
  find("lock").dataset.open = hasToken;
}

/** Asks the user for the token; returns true if there is a new one. */
export function askForToken(reason) {
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

/** Asks for the token unless the user declined before; returns true if there is a new one. */
export const askOnce = async (reason) => !isDeclined && askForToken(reason);

/**
 * Runs a request of the user; asks for the token if it is needed, and shows other errors. `onFailure(error)` receives
 * the error of a request that failed for good.
 */
export const attempt = (action, onFailure) => run(action, () => true, onFailure);

/** Runs a request of the page: like `attempt`, but a user who declined is not asked again. */
export const attemptRead = (action, onFailure) => run(action, () => !isDeclined, onFailure);

async function run(action, mayAsk, onFailure) {
  try {
    return await action();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    const reason = token.get() === null ? "This needs the token." : "The token is wrong.";
    if (error.wantsToken && mayAsk() && await askForToken(reason)) return run(action, mayAsk, onFailure);
    // A newer value replaced this one.
    const isSuperseded = error.status === 409 && error.message.startsWith("superseded");
    if (!error.wantsToken && !isSuperseded) toast(error.message);
    onFailure?.(error);
    return undefined;
  }
}

// Enter presses the first submit button of a form: only "Use it" is one.
for (const choice of ["forget", "cancel"]) {
  find(`token-${choice}`).addEventListener("click", () => find("token").close(choice));
}
