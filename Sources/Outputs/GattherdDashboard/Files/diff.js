// The lines in which two texts differ.

/** Lines around a difference that are shown as they are. */
const context = 3;
/** The most lines of two changed parts that are compared; larger parts are shown as replaced. */
const limit = 1500;

/** Returns pairs of a sign (" ", "-", "+") and a line, for all lines of both texts. */
export function lines(before, after) {
  const [one, other] = [before.split("\n"), after.split("\n")];
  // An empty text has no line that differs.
  if (!before && other.at(-1)) one.pop();
  if (!after && one.at(-1)) other.pop();
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const same = (part) => part.map((line) => [" ", line]);
  const middle = between(one.slice(start, one.length - end), other.slice(start, other.length - end));
  return [...same(one.slice(0, start)), ...middle, ...same(one.slice(one.length - end))];
}

/** Compares by the longest common subsequence. */
function between(one, other) {
  if (one.length * other.length > limit * limit) return [...one.map((line) => ["-", line]), ...other.map((line) => ["+", line])];
  const width = other.length + 1;
  const common = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = one[i] === other[j] ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const result = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) { result.push([" ", one[i]]); i += 1; j += 1; continue; }
    const isRemoved = j === other.length || (i < one.length && common[(i + 1) * width + j] >= common[i * width + j + 1]);
    if (isRemoved) { result.push(["-", one[i]]); i += 1; } else { result.push(["+", other[j]]); j += 1; }
  }
  return result;
}

/** Returns the differences with some lines around them; "…" stands for the rest. */
export function diff(before, after) {
  const all = lines(before, after);
  const isNear = all.map((_, index) => all.slice(Math.max(0, index - context), index + context + 1).some(([sign]) => sign !== " "));
  const result = [];
  all.forEach((line, index) => {
    if (isNear[index]) result.push(line);
    else if (result.length === 0 || result.at(-1)[0] !== "…") result.push(["…", ""]);
  });
  return all.some(([sign]) => sign !== " ") ? result : [];
}
