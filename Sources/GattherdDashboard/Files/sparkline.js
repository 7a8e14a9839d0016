import { colour, sheet } from "./dom.js";
import { sparkTime } from "./model.js";

/** Draws the last minute; where nothing came for long there is a gap. */
export function drawSpark(canvas, spark, now) {
  const page = sheet(canvas);
  if (!page || !spark?.times.length) return;
  const { pen, width, height } = page;
  const begin = now - sparkTime;
  const first = Math.max(0, spark.times.findIndex((time) => time >= begin));
  if (spark.times[spark.times.length - 1] < begin) return;
  const values = spark.values.slice(first);
  const times = spark.times.slice(first);
  const low = Math.min(...values);
  const range = Math.max(...values) - low;
  const x = (time) => (time - begin) / sparkTime * (width - 4);
  const y = (value) => (range ? height - 3 - (value - low) / range * (height - 6) : height / 2);
  const pause = Math.max(3000, 4 * (times[times.length - 1] - times[0]) / times.length);
  pen.strokeStyle = colour("spark");
  pen.lineWidth = 1.5;
  pen.lineJoin = "round";
  pen.beginPath();
  times.forEach((time, index) => {
    const isGap = index === 0 || time - times[index - 1] > pause;
    pen[isGap ? "moveTo" : "lineTo"](x(time), y(values[index]));
  });
  pen.stroke();
  pen.fillStyle = colour("spark");
  pen.beginPath();
  pen.arc(x(times[times.length - 1]), y(values[values.length - 1]), 2, 0, 7);
  pen.fill();
}
