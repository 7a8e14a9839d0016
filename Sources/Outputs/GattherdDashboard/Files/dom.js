// Makes elements; text is never read as markup.

/** An element with attributes, listeners (`onclick: …`) and children (elements and text). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export const find = (id) => document.getElementById(id);

/** Changes the text only if it differs: a browser lays out what is touched. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows a message for a while; one that is shown already is not shown twice. */
export function toast(text) {
  if ([...find("toasts").children].some((line) => line.textContent === text)) return;
  const line = make("p", {}, text);
  find("toasts").append(line);
  setTimeout(() => line.remove(), 8000);
}

const sizes = new WeakMap();
const sizeObserver = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    sizes.set(target, contentRect);
    target.redraw();
  }
});

/** A canvas that is drawn by `redraw` when its size changes; asking for the size would make the browser lay out. */
export function canvas(attributes, redraw) {
  const element = make("canvas", attributes);
  element.redraw = redraw;
  sizeObserver.observe(element);
  return element;
}

/** An empty sheet, scaled for the screen; null while the canvas has no size. */
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

/** A colour of the style sheet, as it is now. */
export function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

/** The colours are others now. */
export function forgetColours() {
  colours = new Map();
  for (const element of document.querySelectorAll("canvas")) element.redraw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetColours);
