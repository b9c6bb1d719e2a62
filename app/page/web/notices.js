// What is the case around the page, one line for each matter: the link, the service, sales of others.
// A line stays until it is no longer so, or is replaced.
import { text } from "./text.js";

const matters = new Map(); // matter -> {calm, line: () => its text}
const CALM = ["serviceBack"]; // good news

export function drawNotices() {
  const all = [...matters.values()], lines = all.map(({ line }) => line()), list = document.getElementById("notices");
  list.classList.toggle("calm", all.every(({ calm }) => calm));
  if (list.textContent === lines.join("")) return;
  list.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
}

// name: of a text; values: of it, or what returns them, for values that are words themselves.
export function notice(matter, name, values = {}) {
  matters.set(matter, { calm: CALM.includes(name), line: () => text(name, typeof values === "function" ? values() : values) });
  drawNotices();
}

export function settled(matter) {
  matters.delete(matter);
  drawNotices();
}

export const clock = () => new Date().toLocaleTimeString("en-GB");

// What a link asks for and does not get: [name of a text, its values] each.
export function noticeOfLink(list) {
  if (list.length)
    notice("link", "notHonoured", () => ({ what: list.map(([name, values]) => text(name, values)).join("; ") }));
}

// Of a value that an input does not take; used: the one that it has instead.
export function refusalOf(input, name, wanted, used) {
  if (input.type === "number") return ["notValid", { name, wanted, from: +input.min, to: +input.max, used }];
  const list = input.type === "checkbox" ? "on, off" : [...input.options].map(({ value }) => value).join(", ");
  return ["notOneOf", { name, wanted, list, used }];
}

// A guard that cannot be chosen.
export function refusalOfGuard(guards, name, wanted, used) {
  return [guards.some((guard) => guard.name === wanted) ? "noServer" : "noGuard", { name, wanted, used }];
}

// The service answers, or does not: said once it has lasted a moment, so that a reconnection is not.
const MOMENT_MS = 1500;
let gone = null, instanceBefore = null;

export function serviceIs(answers, instance) {
  if (!answers) {
    const since = clock();
    gone ??= { timer: setTimeout(() => { notice("service", "noService", { time: since }); gone.told = true; }, MOMENT_MS), told: false };
    return;
  }
  if (gone) clearTimeout(gone.timer);
  const anew = instance !== undefined && instanceBefore !== null && instance !== instanceBefore;
  if (anew) notice("service", "serviceNew", { time: clock() });
  else if (gone?.told) notice("service", "serviceBack", { time: clock() });
  gone = null;
  instanceBefore = instance ?? instanceBefore;
}
