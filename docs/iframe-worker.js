/* Search in pages that are opened from a disk.

The search runs in a worker, which browsers refuse to pages of file://. There a hidden frame takes its place:
its window gets the messages, and what it posts comes back as the worker's. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.inside = new Promise((done) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => done(inside));
          inside.document.body.append(script);
        }, { once: true });
      });
      document.documentElement.append(this.frame);
    }

    postMessage(data) {
      this.inside.then((inside) =>
        inside.dispatchEvent(new inside.MessageEvent("message", { data })),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
