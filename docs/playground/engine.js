// The worker with the simulations: one request at a time, and of the views that wait only the newest.

export class Engine {
  // `on` has the functions `loading(share)`, `starting()`, `ready()` if nothing waits then, `running(share)`,
  // `view(answer, superseded)`, `failed(text)` and `broken(text)`.
  constructor(on) {
    this.on = on;
    this.number = 0;
    this.start();
  }

  start() {
    this.ready = false;
    this.busy = null;
    this.waiting = [];
    this.worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
    this.worker.onmessage = ({data}) => this.take(data);
    this.worker.onerror = (event) => this.on.broken(event.message || "the worker could not be loaded");
  }

  // Stop what runs; the worker has to be loaded anew.
  stop() {
    this.worker.terminate();
    this.start();
  }

  view(files) {
    this.waiting = this.waiting.filter((each) => each.done);
    this.ask({files, output: "view"});
  }

  // The text of a file of the run, or the answer with its problems.
  text(files, output) {
    return new Promise((done) => this.ask({files, output}, done));
  }

  ask(request, done) {
    this.waiting.push({number: ++this.number, request, done});
    this.next();
  }

  next() {
    if (!this.ready || this.busy || !this.waiting.length) return;
    this.busy = this.waiting.shift();
    this.worker.postMessage({number: this.busy.number, request: this.busy.request});
  }

  take(message) {
    if (message.type === "loading") this.on.loading(message.share);
    else if (message.type === "starting") this.on.starting();
    else if (message.type === "progress") this.on.running(message.share);
    else if (message.type === "broken") this.on.broken(message.text);
    else if (message.type === "ready") {
      this.ready = true;
      if (!this.waiting.length) this.on.ready();
      this.next();
    } else {
      const {done} = this.busy;
      this.busy = null;
      const superseded = !done && this.waiting.some((each) => !each.done);
      if (message.type === "failed") this.on.failed(message.text);
      else if (done) done(JSON.parse(message.answer));
      else this.on.view(JSON.parse(message.answer), superseded);
      this.next();
    }
  }
}
