// The downloads of a device's stored records: progress while one runs, then its outcome.

import { make, setText } from "./dom.js";
import { counted, moment, plain } from "./words.js";

const outcomes = { complete: "complete", failed: "failed", interrupted: "interrupted, continues on the next link" };

/** The state of a download in words. */
export function downloadWords({ state, since, done, total, new: added, detail }) {
  if (state === "downloading") return total == null ? `record ${done}` : `record ${done} of ${total}`;
  const parts = [outcomes[state] ?? state, detail, added > 0 ? `${counted(added, "new record")}` : null];
  return `${parts.filter(Boolean).join(", ")}, ${moment(Date.parse(since))}`;
}

export class Downloads {
  constructor() {
    this.rows = new Map();
    this.list = make("dl", { class: "facts" });
    this.element = make("section", { "aria-label": "Stored records", hidden: true }, make("h3", {}, "Stored records"), this.list);
  }

  update(downloads) {
    this.element.hidden = !downloads.length;
    const streams = downloads.map((download) => download.stream);
    if (streams.join() !== [...this.rows.keys()].join()) this.build(streams);
    for (const download of downloads) this.show(this.rows.get(download.stream), download);
  }

  build(streams) {
    this.rows = new Map(streams.map((stream) => {
      const bar = make("progress", { "aria-label": `Download of ${plain(stream)}` });
      return [stream, { bar, text: make("span", {}) }];
    }));
    this.list.replaceChildren(...[...this.rows].flatMap(([stream, row]) =>
      [make("dt", {}, plain(stream)), make("dd", {}, row.bar, " ", row.text)]));
  }

  show({ bar, text }, download) {
    bar.hidden = download.state !== "downloading";
    // Without a value, the bar shows that something runs.
    if (download.total > 0) {
      bar.max = download.total;
      bar.value = Math.min(download.done, download.total);
    } else {
      bar.removeAttribute("value");
    }
    setText(text, downloadWords(download));
  }
}
