// When something goes wrong in the sale that runs: as the address says, and whenever a button is
// pressed; one fault after the other.
import { arm, restore, strike, wireIsCut } from "./faults.js";
import { text } from "./text.js";

const buttons = document.querySelectorAll("#strikes button");
let target = null; // the pane of the sale that runs
let striking = false, queue = Promise.resolve();
let planned = null; // {what, pane, after_s}, with its timer once the sale has begun

async function hit(what, pane, byHand, armed) {
  striking = true;
  try {
    await strike(what, armed ?? await arm(), pane, byHand);
  } finally {
    striking = false;
  }
}

// A failure is told when the sale has ended.
function enqueue(...which) {
  queue = queue.then(() => hit(...which));
  queue.catch(() => {});
}

// Before a sale: what is to go wrong in it, so many seconds after its begin; "none": nothing.
export async function aim(pane, what, after_s) {
  target = pane;
  queue = Promise.resolve();
  planned = null;
  if (what === "none") return;
  if (after_s > 0) planned = { what, pane, after_s };
  else enqueue(what, pane, false, await arm());
}

function strikePlanned() {
  const { what, pane } = planned;
  planned = null;
  enqueue(what, pane, false);
}

// After it.
export async function settle() {
  const pane = target;
  target = null;
  if (planned) pane.tell("faultTooLate");
  clearTimeout(planned?.timer);
  planned = null;
  await queue;
}

export function openStrikes() {
  for (const button of buttons)
    button.addEventListener("click", () => {
      if (wireIsCut()) restore();
      else if (!striking && target) enqueue(button.dataset.fault, target, true);
    });
}

// Again and again. wire: somebody holds the wire to Redis, and can cut it.
export function drawStrikes(lab, wire) {
  const running = target?.state === "running", can = lab && !striking && running;
  if (running && planned && !planned.timer) planned.timer = setTimeout(strikePlanned, planned.after_s * 1000);
  for (const button of buttons) {
    const cuts = button.dataset.fault === "cut", mends = cuts && wireIsCut(), caption = mends ? "faultMend" : button.dataset.text;
    button.disabled = !(can && (!cuts || wire)) && !mends;
    if (button.textContent !== text(caption)) button.textContent = text(caption);
  }
}
