// Files that the user saves: the values of a chart as CSV, the chart as PNG.

import { seriesLimit } from "./chart.js";
import { colour } from "./dom.js";
import { metricWords, nameParts } from "./words.js";

/** Offers a file for saving. */
function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // By then the browser has read the file.
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** Quotes a cell; a spreadsheet must not read a text as a formula. */
function cell(content) {
  if (typeof content === "number") return String(content);
  const text = String(content ?? "");
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** Returns the values of a chart as CSV: one line for each row of each series, except values from before the range. */
export function csv(device, series) {
  const lines = series.flatMap(({ metric, unit, rows }) => rows.filter((row) => !row.isCarried).map((row) => {
    const { stream, metric: name } = nameParts(metric);
    return [new Date(row.time).toISOString(), device, name, unit, row.n, row.min, row.mean, row.max, stream];
  }));
  return [["time", "device", "metric", "unit", "n", "min", "mean", "max", "stream"], ...lines]
    .map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

export const saveCSV = (device, series) => save(`${device}.csv`, new Blob([csv(device, series)], { type: "text/csv" }));

/** Saves a chart as it is shown, with a title and the names of the series. */
export function savePNG(title, name, chart) {
  const { canvas } = chart;
  const scale = window.devicePixelRatio || 1;
  const head = 44 * scale;
  const page = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height + head });
  const pen = page.getContext("2d");
  pen.fillStyle = colour("surface");
  pen.fillRect(0, 0, page.width, page.height);
  pen.drawImage(canvas, 0, head);
  pen.font = `${14 * scale}px system-ui, sans-serif`;
  pen.fillStyle = colour("text");
  pen.fillText(title, 10 * scale, 18 * scale);
  let x = 10 * scale;
  chart.series.slice(0, seriesLimit).forEach(({ metric, unit }, index) => {
    const words = metricWords(metric) + (unit ? ` (${unit})` : "");
    pen.fillStyle = colour(`series-${index + 1}`);
    pen.fillText(words, x, 38 * scale);
    x += pen.measureText(words).width + 18 * scale;
  });
  page.toBlob((blob) => { if (blob) save(`${name}.png`, blob); });
}
