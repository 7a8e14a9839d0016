// Elements and canvases. Text is never parsed as markup.

/** Creates an element with attributes, listeners (`onclick: …`) and children (elements and text). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) { if (value != null) element.setAttribute(name, value); }
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export const find = (id) => document.getElementById(id);

/** Sets the text if it differs: each assignment costs a layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Milliseconds for which a message is shown. */
const toastTime = 8000;

/** Shows a message for some seconds, unless it is already shown. */
export function toast(text) {
  if ([...find("toasts").children].some((line) => line.textContent === text)) return;
  const line = make("p", {}, text);
  find("toasts").append(line);
  setTimeout(() => line.remove(), toastTime);
}

const sizes = new WeakMap();
const sizeObserver = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    sizes.set(target, contentRect);
    target.redraw();
  }
});

/** Creates a canvas that calls `redraw` when its size changes. The size is observed: reading it costs a layout. */
export function canvas(attributes, redraw) {
  const element = make("canvas", attributes);
  element.redraw = redraw;
  sizeObserver.observe(element);
  return element;
}

/** Clears a canvas and scales it for the screen; null while it has no size. */
export function sheet(element) {
  const { width, height } = sizes.get(element) ?? {};
  if (!width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  const [columns, rows] = [Math.round(width * scale), Math.round(height * scale)];
  if (element.width !== columns || element.height !== rows) Object.assign(element, { width: columns, height: rows });
  const pen = element.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

let colours = new Map();

/** Returns a colour of the style sheet in the current theme. */
export function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

/** Reads the colours again and redraws, after a change of theme. */
export function resetColours() {
  colours = new Map();
  for (const element of document.querySelectorAll("canvas")) element.redraw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resetColours);
