// When something goes wrong in the sale that runs: as the address says, and whenever a button is
// pressed; one fault after the other.
import { arm, restore, strike, wireIsCut } from "./faults.js";
import { text } from "./text.js";

const buttons = document.querySelectorAll("#strikes button");
let target = null; // the pane of the sale that runs
let striking = false, queue = Promise.resolve(), planned;

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
  planned = undefined;
  if (what === "none") return;
  if (after_s > 0) planned = setTimeout(() => { planned = undefined; enqueue(what, pane, false); }, after_s * 1000);
  else enqueue(what, pane, false, await arm());
}

// After it.
export async function settle() {
  const pane = target;
  target = null;
  if (planned !== undefined) pane.tell("faultTooLate");
  clearTimeout(planned);
  await queue;
}

export function openStrikes() {
  for (const button of buttons)
    button.addEventListener("click", () => {
      if (wireIsCut()) restore();
      else if (!striking && target) enqueue(button.dataset.fault, target, true);
    });
}

export function drawStrikes(lab) {
  const can = lab && !striking && target?.state === "running";
  for (const button of buttons) {
    const mends = button.dataset.fault === "cut" && wireIsCut(), caption = mends ? "faultMend" : button.dataset.text;
    button.disabled = !can && !mends;
    if (button.textContent !== text(caption)) button.textContent = text(caption);
  }
}
