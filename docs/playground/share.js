// The texts of the parts in the fragment of the address: JSON, compressed with deflate, in base64 for addresses.

const VERSION = "1.";
const MOST_BYTES = 500_000;

const piped = (bytes, transform) => new Blob([bytes]).stream().pipeThrough(transform);

export async function encoded(texts) {
  const stream = piped(new TextEncoder().encode(JSON.stringify(texts)), new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return VERSION + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// The texts of a fragment. Raises an error if it is not one that `encoded` made.
export async function decoded(fragment, parts) {
  if (!fragment.startsWith(VERSION)) throw new Error("its version is not known");
  const binary = atob(fragment.slice(VERSION.length).replaceAll("-", "+").replaceAll("_", "/"));
  const reader = piped(Uint8Array.from(binary, (each) => each.charCodeAt(0)), new DecompressionStream("deflate-raw"))
    .getReader();
  const chunks = [];
  let size = 0;
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    // A short fragment can expand to gigabytes.
    size += step.value.length;
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new Error(`it holds more than ${MOST_BYTES} bytes`);
    }
    chunks.push(step.value);
  }
  const texts = JSON.parse(await new Blob(chunks).text());
  for (const part of parts) if (typeof texts?.[part] !== "string") throw new Error(`it has no ${part}`);
  return Object.fromEntries(parts.map((part) => [part, texts[part]]));
}
