// Runs simulations in the Python of Pyodide, outside of the thread that draws the page.
import { loadPyodide } from "./pyodide.mjs";

const sizes = await (await fetch("sizes.json")).json();
const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
const plainFetch = self.fetch;
let loaded = 0;

// Count what is loaded; the size of a compressed response is not known otherwise.
self.fetch = async (...request) => {
  const response = await plainFetch(...request);
  const counted = new TransformStream({
    transform(chunk, controller) {
      loaded += chunk.byteLength;
      postMessage({type: "loading", share: Math.min(1, loaded / total)});
      controller.enqueue(chunk);
    },
  });
  const {headers, status, statusText} = response;
  return new Response(response.body.pipeThrough(counted), {headers, status, statusText});
};

try {
  const python = await loadPyodide({indexURL: new URL(".", self.location.href).href, packages: ["ocf"]});
  self.fetch = plainFetch;
  postMessage({type: "starting"});
  const {answer} = python.pyimport("ocf.simulation.browser");
  self.onmessage = ({data: {number, request}}) => {
    const progress = (share) => postMessage({type: "progress", number, share});
    try {
      postMessage({type: "answer", number, answer: answer(JSON.stringify(request), progress)});
    } catch (error) {
      postMessage({type: "failed", number, text: String(error.message).trim().split("\n").pop()});
    }
  };
  postMessage({type: "ready"});
} catch (error) {
  postMessage({type: "broken", text: String(error)});
}
