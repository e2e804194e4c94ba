// One connection to the host's stream. It is read with fetch, since an EventSource could not send
// the page key.

import { ask } from "./host-requests.js";

export class Line {
  // `hear` gets every message; `lost` is called once when the connection ends by itself.
  constructor(hear, lost) {
    this.hear = hear;
    this.lost = lost;
    this.cut = new AbortController();
    this.run();
  }

  async run() {
    try {
      const reply = await ask("/inbox/stream", { signal: this.cut.signal });
      if (reply.ok) await this.read(reply.body.getReader());
    } catch {
      // Lost, as when it ends.
    }
    if (!this.cut.signal.aborted) this.lost();
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = parts.pop();
      for (const part of parts) if (!this.cut.signal.aborted) this.take(part);
    }
  }

  take(part) {
    const fields = Object.fromEntries(part.split("\n").map((row) => row.split(/: ?(.*)/s)));
    if (fields.event) this.hear(fields.event, JSON.parse(fields.data));
  }

  close() {
    this.cut.abort();
  }
}
