// The player of app/page/player on this page: its words, its trace, and its keys.
import { language } from "./text.js";

const BEATS = /^(lock\.acquired|read|committed|held|let go|killed|answer .*|key .*|wire .*)$/;
const files = new Map();

async function load(name) {
  if (!files.has(name)) files.set(name, await (await fetch(`/web/${name}.json`)).json());
  return files.get(name);
}

// The words of the page's language, and the commands behind the points of a sale under this guard, their remarks in words.
export async function materialOf(guard, fenced) {
  const [words, { store, guards }] = await Promise.all([load(`player.${language()}`), load("commands")]);
  const commands = Object.entries({ ...store[fenced ? "item fenced" : "item"], ...guards[guard] });
  const inWords = (code) => code.replace(/<([a-z0-9-]+)>/g, (_, name) => words[`code.${name}`]);
  return { words, commands: Object.fromEntries(commands.map(([point, code]) => [point, inWords(code)])) };
}

function sentence([, who, point, value, fence], words, fences) {
  const key = who === "others" ? "at.others" : `at.${point.replace(/^answer .*/, "answer")}`;
  const values = { who, v: value === null ? "" : Museum.number(value), 1: point.replace(/^answer /, "") };
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]) + (fence && point === "lock.acquired" ? ` #${Museum.fence(fence, fences)}` : "");
}

// The trace as a list, which is also what stands in a file without scripts.
export function writeTrace(parent, record, words, head) {
  const { ownerDocument: page } = parent, make = (name, text, classes) => {
    const element = page.createElement(name);
    if (text) element.textContent = text;
    if (classes) element.className = classes;
    return element;
  };
  const list = make("ol", "", "trace");
  list.setAttribute("aria-label", head);
  const fences = record.events.map((event) => event[4]);
  for (const event of record.events) {
    const [t, who, point] = event, beat = who !== "others" && BEATS.test(point), line = make("li", "", beat ? "beat" : "");
    line.append(make("span", `${(t / 1000).toFixed(1)} ms`, "t"), " ", make("span", sentence(event, words, fences), beat ? "fact told" : "fact"));
    list.append(line);
  }
  parent.append(make("p", head, "head"), list);
  return list;
}

// section: takes the player in, and its keys while the focus is in it. k: the step at first. moved: see desk.js.
export function play(section, record, words, head, k, moved) {
  const show = document.createElement("div"), desk = document.createElement("div"), told = document.createElement("div");
  show.className = "show player";
  desk.className = "desk";
  show.append(desk, told);
  section.append(show);
  writeTrace(told, record, words, head).tabIndex = 0;
  const player = Museum.desk.open(show, record, words, { moved });
  if (k) Museum.desk.go(player, k, true);
  return player;
}

export function onKey(player, event) {
  if (!Museum.desk.isOurs(event)) return;
  event.preventDefault();
  Museum.desk.keys[event.key](player);
}
