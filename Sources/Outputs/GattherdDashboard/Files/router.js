// Pages with addresses: the part of the URL behind # names the page and its subject.

import { find } from "./dom.js";

/** Pages by their first word; the words are also those of `data-page`. */
const pages = ["device", "add", "configuration", "log", "checks"];

/** Returns the address of a page; names may contain any character. */
export const address = (page, subject) => (subject == null ? `#${page}` : `#${page}/${encodeURIComponent(subject)}`);

/** Returns the page and the subject that a hash names; unknown ones lead to the devices. */
export function parsed(hash) {
  const [page, ...rest] = hash.slice(1).split("/");
  if (!pages.includes(page)) return { page: "devices", subject: null };
  try {
    return { page, subject: rest.length ? decodeURIComponent(rest.join("/")) : null };
  } catch {
    return { page, subject: null };
  }
}

/** Shows one page at a time, as the address says; the browser's buttons go back and forth. */
export class Router {
  /** `shown` has a function by page, which is called with the subject, and `left` one that is called afterwards. */
  constructor({ shown, left }) {
    Object.assign(this, { shown, left, page: null, scrolled: new Map() });
    window.addEventListener("hashchange", () => this.show(true));
  }

  /** Shows the page of the address; `takesFocus` is false when the document is new. */
  show(takesFocus = false) {
    const { page, subject } = parsed(location.hash);
    const isOther = page !== this.page;
    if (isOther && this.page) {
      this.scrolled.set(this.page, window.scrollY);
      this.left[this.page]?.();
    }
    this.page = page;
    for (const element of document.querySelectorAll("[data-page]")) element.hidden = element.dataset.page !== page;
    for (const link of document.querySelectorAll("[data-nav]")) {
      const isCurrent = link.dataset.nav === page || (page === "device" && link.dataset.nav === "devices");
      if (isCurrent) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.shown[page]?.(subject);
    if (!takesFocus || !isOther) return;
    find("main").focus({ preventScroll: true });
    window.scrollTo(0, page === "devices" ? this.scrolled.get(page) ?? 0 : 0);
  }
}
