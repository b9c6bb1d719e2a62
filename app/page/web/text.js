// The words of the chosen language, and how numbers and durations are written. The words themselves
// stand in words_en.js and words_zh.js.
import { words as en } from "./words_en.js";
import { words as zh } from "./words_zh.js";

let words = en, sections = ["page", "detail", "faults", "state"];

// A page's sections of the words; where two have one name, the later one counts.
export function speak(...names) {
  sections = names;
}

export const language = () => (words === zh ? "zh" : "en");

export function setLanguage(lang) {
  words = lang === "zh" ? zh : en;
  document.documentElement.lang = language();
  document.title = text("title");
  translate(document);
}

export function translate(root) {
  for (const element of root.querySelectorAll("[data-text]"))
    element.textContent = text(element.dataset.text);
}

export function text(name, values = {}) {
  const section = sections.findLast((one) => words[one][name] !== undefined);
  return words[section][name].replace(/\{(\w+)\}/g, (_, key) => number(values[key]));
}

// A problem of the service, by the end of its type; what has no words is shown as it is.
export function problem(name) {
  return words.problems[name] ?? words.state[name] ?? name;
}

// What became of a call that failed, in the words of the language.
export function reason(error) {
  return error.problem ? problem(error.problem) : error instanceof TypeError ? words.state.noAnswer : error.message;
}

export function number(value) {
  return typeof value === "number" ? value.toLocaleString("en-US").replace("-", "−") : String(value);
}

export function duration(us) {
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toFixed(2)} s`;
}
