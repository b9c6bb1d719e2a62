// The wire between service and Redis. Whoever started both (`loadgen serve`) holds it, and cuts it
// when the page wishes so.
import { ask, post } from "./stream.js";
import { text } from "./text.js";

const LOOK_MS = 100, OBEYED_MS = 20000;

// It is so when this returns.
export async function setWire(cut) {
  const until = performance.now() + OBEYED_MS;
  let now = await post("/v1/lab/wire", { wished: cut });
  while (now.cut !== cut) {
    if (performance.now() > until) throw new Error(text("faultWireHeld"));
    await new Promise((later) => setTimeout(later, LOOK_MS));
    now = await ask("/v1/lab/wire");
  }
}

// Whole again if somebody has left it cut. False: nobody holds it.
export async function mendWire() {
  const { wished, cut } = await ask("/v1/lab/wire");
  if (wished) await setWire(false);
  return cut !== null;
}
