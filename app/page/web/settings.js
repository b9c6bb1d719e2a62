// The form: what a sale is started with, all of it in the address, too.
import { noticeOfLink, refusalOf, refusalOfGuard } from "./notices.js";
import { text, translate } from "./text.js";

const SIDES = ["a", "b"], FALLBACKS = ["none", "redis-token"];
const form = document.getElementById("form");
let service = { guards: [] }; // what GET /v1/guards said

function makeSide(side, i) {
  const copy = document.getElementById("side").content.cloneNode(true);
  copy.querySelector("legend").dataset.text = i ? "saleB" : "saleA";
  copy.querySelector("select").name = side;
  for (const input of copy.querySelectorAll("input")) input.name = `${side}_${input.name}`;
  translate(copy);
  document.getElementById("sides").append(copy);
}

export const guardOf = (name) => service.guards.find((guard) => guard.name === name);

const field = (side, name) => form.elements[`${side}_${name}`];

// What means nothing under a guard is not to be chosen: a lease that it has not, and so on.
function enable(side) {
  const guard = guardOf(form.elements[side].value);
  const can = (cap) => guard?.caps.includes(cap) ?? false;
  field(side, "lease").disabled = !service.lab || !can("lease");
  field(side, "watchdog").disabled = !service.lab || !can("renew") || !can("lease");
  field(side, "fence").disabled = !(can("fence") || (service.fence_source === "database" && guard?.kind === "lock"));
  field(side, "lanes").disabled = !service.lab || guard?.name === "none";
}

// One setting as the link has it. Returns why not, as noticeOfLink() wants it; undefined: it is so.
function honour(input, wanted) {
  if (input.type === "checkbox") {
    if (wanted !== "on" && wanted !== "off") return refusalOf(input, input.name, wanted, input.checked ? "on" : "off");
    input.checked = wanted === "on";
    return undefined;
  }
  const before = input.value;
  input.value = wanted;
  if (input.value === wanted && input.checkValidity()) return undefined;
  input.value = before;
  return refusalOf(input, input.name, wanted, before);
}

// The form as the address says. What it says and what cannot be so is told, and stays as it is.
export function openSettings(given, guards) {
  const refusals = [];
  SIDES.forEach(makeSide);
  service = guards;
  const names = guards.guards.filter((guard) => guard.servers_answer).map((guard) => guard.name);
  SIDES.forEach((side, i) => {
    const select = form.elements[side], wanted = given.get(side);
    select.replaceChildren(...names.map((guard) => new Option(guard, guard)));
    select.value = [wanted, FALLBACKS[i], names[0]].find((name) => names.includes(name));
    if (wanted !== null && select.value !== wanted) refusals.push(refusalOfGuard(guards.guards, side, wanted, select.value));
    field(side, "fence").checked = guards.fence;
    field(side, "lanes").checked = guards.lanes;
  });
  for (const [name, wanted] of given) {
    const input = form.elements[name];
    if (name === "lang" || SIDES.includes(name)) continue;
    refusals.push(input?.name ? honour(input, wanted) : ["noSuchName", { name }]);
  }
  form.elements.fault.disabled = form.elements.fault_after.disabled = !guards.lab;
  SIDES.forEach(enable);
  for (const [name, wanted] of given) // a wish, not what the page itself writes into each address
    if (form.elements[name]?.disabled && !refusals.some((refusal) => refusal?.[1].name === name) && isWish(form.elements[name], wanted)) refusals.push(["notHere", { name, wanted }]);
  noticeOfLink(refusals.filter((refusal) => refusal !== undefined));
  document.getElementById("labNote").hidden = guards.lab;
}

// Another value than the form has from the start.
const isWish = (input, wanted) => (input.type === "checkbox" ? (wanted === "on") !== input.defaultChecked
  : input.tagName === "SELECT" ? wanted !== input.options[0].value : wanted !== input.defaultValue);

export function keepSettings(lang) {
  const query = new URLSearchParams();
  for (const input of form.elements)
    if (input.name) query.set(input.name, input.type !== "checkbox" ? input.value : input.checked ? "on" : "off");
  query.set("lang", lang);
  history.replaceState(null, "", `?${query}${location.hash}`);
  SIDES.forEach(enable);
}

// [name in the address, value] of all, "–" where a guard has no such thing; and what the form calls
// one of them.
export const settings = () => [...new URLSearchParams(location.search)].map(([name, value]) => [name, form.elements[name]?.disabled ? "–" : value]);

export function captionOf(name) {
  const input = form.elements[name] ?? document.getElementById(name);
  const side = input.closest("fieldset")?.querySelector("legend").textContent;
  const caption = input.closest("label").querySelector("span").textContent;
  return side ? `${side}: ${caption}` : caption;
}

export const fault = () => (form.elements.fault.disabled ? "none" : form.elements.fault.value);
export const setting = (name) => +form.elements[name].value;

// What POST /v1/demo/sales wants of one side; left out is what cannot be chosen.
export function termsOf(i) {
  const side = SIDES[i], chosen = (name) => !field(side, name).disabled;
  const terms = { guard: form.elements[side].value };
  if (chosen("lease")) terms.lease_ms = +field(side, "lease").value;
  if (chosen("lease") && chosen("watchdog")) terms.watchdog = field(side, "watchdog").checked;
  if (chosen("fence")) terms.fence = field(side, "fence").checked;
  if (chosen("lanes")) terms.lanes = field(side, "lanes").checked;
  return terms;
}

export const inLanes = (i) => termsOf(i).lanes ?? (service.lanes && form.elements[SIDES[i]].value !== "none");

// The same in words: "lease 3,000 ms · watchdog · fence".
export function describe(terms) {
  const words = [];
  if (terms.lease_ms) words.push(text("leaseIs", { ms: terms.lease_ms }), text(terms.watchdog ? "watched" : "unwatched"));
  if (terms.fence !== undefined) words.push(text(terms.fence ? "fenced" : "unfenced"));
  if (terms.lanes) words.push(text("batched"));
  return words.join(" · ");
}
