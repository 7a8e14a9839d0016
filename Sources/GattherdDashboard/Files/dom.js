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

/** Shows a message for a while. */
export function toast(text) {
  const line = make("p", {}, text);
  find("toasts").append(line);
  setTimeout(() => line.remove(), 8000);
}

/** A canvas's context, scaled for the screen; null while the canvas has no size. */
export function context(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

/** A colour of the style sheet. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
