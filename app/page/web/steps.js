// Step mode: who is held where, what each knows, and what there really is. All settings in the URL.
import { ALL, exercises } from "./exercises.js";
import { factsOf, recordOf } from "./facts.js";
import { Actor, look } from "./lab.js";
import { drawNotices, notice, noticeOfLink, refusalOf, refusalOfGuard, serviceIs } from "./notices.js";
import { LEASE, Moves } from "./moves.js";
import { ACCOUNT, Row } from "./row.js";
import { drawReplay } from "./replay.js";
import { INSIDE_STORE, Search, written } from "./schedule.js";
import { build, draw as drawBoard, drawFound, hasLost } from "./steps_view.js";
import { ask } from "./stream.js";
import { reason, setLanguage, speak, text } from "./text.js";
import { buildBet, openMend } from "./wagers.js";

const SECTIONS = ["page", "state", "levels", "facts", "steps"]; // of the words
const BUSY_MS = 30, IDLE_MS = 400, LESSON_MS = 600000;
const $ = (id) => document.getElementById(id);
const form = $("form"), lang = $("lang"), given = new URLSearchParams(location.search);
const session = `step-${[...crypto.getRandomValues(new Uint8Array(5))].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
// What is shown; target: the Row stepped through, row: as it was seen last; said: the facts of the
// round, once it is over; changed: settings that are not the level's; found: {state, what, values,
// lines} of the search; moves: of the round; bet: of player/bet.js; mend: {guard, fence, lost} of the moves
// that are played against it, lost: undefined until they are over.
const board = { guards: [], replay: null, moves: new Moves(), said: [], changed: [], found: null, actors: [], round: 0, subject: ACCOUNT, target: null, row: null, lock: null, bet: null, mend: null, audit: null, events: [], ready: false, connected: false };

/* -- settings ---------------------------------------------------------------------------------- */

const exercise = () => exercises.find((one) => one.id === form.elements.ex.value);

function keepInUrl() {
  const query = new URLSearchParams(new FormData(form));
  query.set("lang", lang.value);
  history.replaceState(null, "", `?${query}`);
}

// The form with these values. Returns what it does not take, as noticeOfLink() wants it.
function prefill(from, guards = []) {
  const refusals = [];
  for (const name of ["guard", "actors", "fence", "lease"]) {
    const input = form.elements[name], wanted = String(from[name] ?? ""), before = input.value;
    if (wanted === "") continue;
    input.value = wanted;
    if (input.value === wanted && input.checkValidity()) continue;
    input.value = before;
    refusals.push(name === "guard" ? refusalOfGuard(guards, name, wanted, before) : refusalOf(input, name, wanted, before));
  }
  return refusals;
}

// The form as the link says.
function honourLink(guards) {
  const asked = Object.fromEntries(given), known = exercises.some(({ id }) => id === asked.ex);
  if (known) form.elements.ex.value = asked.ex;
  const refusals = [
    ...(asked.ex === undefined || known ? [] : [refusalOf(form.elements.ex, "ex", asked.ex, form.elements.ex.value)]),
    ...prefill(exercise(), guards).map(([name, values]) => [name, { ...values, name: `ex=${exercise().id}: guard` }]),
    ...prefill(asked, guards),
    ...Object.keys(asked).filter((name) => name !== "lang" && !form.elements[name]?.name).map((name) => ["noSuchName", { name }]),
  ];
  noticeOfLink(refusals);
}

function fillExercises() {
  const value = form.elements.ex.value;
  form.elements.ex.replaceChildren(...exercises.map(({ id }) => new Option(text(`level.${id}.title`), id)));
  form.elements.ex.value = value || exercises[0].id;
}

// An item's row has captions of its own; what was found was found about the subject before.
function nameSubject() {
  const { subject } = exercise();
  if (subject === board.subject) return;
  Object.assign(board, { subject, found: null, replay: null });
  drawReplay($("replay"), null);
  speak(...SECTIONS, ...(subject === ACCOUNT ? [] : ["item"]));
  setLanguage(lang.value);
}

/* -- a round ----------------------------------------------------------------------------------- */

function tell(name, values) {
  $("message").textContent = name ? text(name, values) : "";
}

async function leave() {
  board.ready = false;
  await Promise.all(board.actors.map((actor) => actor.leave()));
  board.actors = [];
}

async function begin() {
  tell();
  const { guard, fence, lease, actors } = Object.fromEntries(new FormData(form));
  await leave();
  const id = `${session}-${++board.round}`, target = new Row(board.subject, id);
  const meant = exercise(), values = { guard, fence, lease: +lease, actors: +actors };
  const changed = Object.keys(values).filter((name) => values[name] !== meant[name]);
  Object.assign(board, { moves: new Moves(), events: [], audit: null, said: [], mend: null, changed, row: null, lock: null, target });
  await target.put(guard, fence === "on");
  board.actors = board.subject.amounts.slice(0, +actors).map(([name, amount], i) =>
    new Actor(id, name, amount, exercise().points[i] ?? ALL));
  // A's lease may be short; the others' is to last for the lesson then.
  for (const actor of board.actors) await actor.arm(+lease ? (actor.name === "A" ? +lease : LESSON_MS) : 0);
  build(board, move, backTo);
  board.ready = true;
  await refresh();
}

const safely = (what) => async (...args) => {
  try {
    await what(...args);
  } catch (error) {
    tell("failed", { why: reason(error) });
  }
  draw();
};

const move = safely(async (actor) => {
  if (actor?.movable && board.ready && !board.moves.replays) await moveNow(actor);
});

async function moveNow(actor) {
  Object.assign(board, { audit: null, said: [] });
  board.moves.list.push(actor.name);
  const moved = actor.state === "held" ? actor.letGo() : actor.send(board.target);
  draw();
  await moved;
  hurry();
}

// The round as it was before its kth move: the moves before it are made once more, on a new row.
const backTo = safely(async (k) => {
  if (!board.ready || board.moves.replays) return;
  const list = board.moves.list.slice(0, k);
  await begin();
  await board.moves.replay(list, board, async () => {
    await refresh();
    draw();
  }, moveNow);
});

// The moves that lost, once more, against another guard or fence.
const mendWith = safely(async ({ guard, fence }) => {
  if (!board.ready || board.moves.replays) return;
  const { list } = board.moves, mend = { guard, fence, lost: undefined };
  Object.assign(form.elements.guard, { value: guard });
  Object.assign(form.elements.fence, { value: fence });
  keepInUrl();
  await begin();
  board.mend = mend;
  await board.moves.against(list, board, +form.elements.lease.value > 0, async () => {
    await refresh();
    draw();
  }, moveNow);
  mend.lost = hasLost(board);
});

/* -- looking ------------------------------------------------------------------------------------- */

// Whose token the lock shows: of who came to hold it when it appeared.
function claim(actors) {
  const { token } = board.lock;
  if (!token || board.actors.some((actor) => actor.token === token)) return;
  const came = actors.filter((actor) => actor.inside && actor.token === undefined);
  if (came.length) came.at(-1).token = token;
}

// One look after the other: an older answer must not come after a newer one.
let looking = Promise.resolve();
function refresh() {
  looking = looking.catch(() => {}).then(lookOnce);
  return looking;
}

async function lookOnce() {
  if (!board.ready) return;
  const { actors, target } = board;
  const before = actors.map(({ state, at }) => `${state} ${at}`), had = board.lock?.token;
  await look(actors);
  const [row, lock] = await Promise.all([target.look(), target.lock()]);
  if (!board.ready || board.target !== target) return;
  Object.assign(board, { row, lock });
  claim(actors);
  if (actors[0].inside && had && had === actors[0].token && lock.token !== had) board.moves.list.push(LEASE);
  actors.forEach((actor, i) => {
    if (before[i] === `${actor.state} ${actor.at}` || actor.state === "moving") return;
    if (actor.again) board.events.push({ what: "readsAgain", name: actor.name, value: actor.read });
    actor.again = false;
    board.events.push(happened(actor));
  });
  await seeLoss(target, before);
  for (const actor of actors) if (actor.state === "idle" || actor.state === "done") actor.token = undefined;
  if (!board.audit && actors.some((actor) => actor.state === "done") && actors.every((actor) => actor.state === "done"))
    await judge(target);
}

// After a write: does the ledger show a loss?
async function seeLoss(target, before) {
  const { actors, moves } = board;
  if (moves.lost !== undefined || !actors.some(({ state, at }, i) => at === "committed" && before[i] !== `${state} ${at}`)) return;
  const { n } = moves, { forks } = await target.audit();
  if (forks.length) moves.lost = n;
}

// The round is over: what the ledger says, and what can be said of the way there.
async function judge(target) {
  const [audit, { events }] = await Promise.all([target.audit(), ask("/v1/lab/trace")]);
  if (board.target !== target) return;
  const { actors, lock } = board, { lease } = Object.fromEntries(new FormData(form));
  const record = recordOf(events, actors, { isLock: lock.key !== "", lease_ms: { A: +lease }, lock: lock.key });
  Object.assign(board, { audit, said: record ? factsOf(record) : [] });
}

function happened({ name, state, at, read, wrote, answer }) {
  if (state === "waiting") return { what: "mustWait", name };
  if (state === "done") return answer.ok ? { what: "leaves", name } : { what: "isRefused", name, problem: answer.problem };
  if (at === "read") return { what: "didRead", name, value: read };
  return at === "committed" ? written({ name, wrote }) : { what: "stands", name, at };
}

let hurry = () => {}; // somebody was moved: look at once
async function watch() {
  for (;;) {
    const busy = board.actors.some((actor) => actor.state === "moving" || actor.state === "waiting");
    await new Promise((later) => {
      hurry = later;
      setTimeout(later, busy ? BUSY_MS : IDLE_MS);
    });
    try {
      await refresh();
      board.connected = true;
    } catch {
      board.connected = false;
    }
    serviceIs(board.connected);
    draw();
  }
}

function draw() {
  drawBoard(board, exercise());
}

/* -- all orders ---------------------------------------------------------------------------------- */

// The order that does harm, as the player wants it.
function recordFor(events, guard, fence) {
  const { kind, caps } = board.guards.find(({ name }) => name === guard);
  return {
    guard, fence, events, lock: kind === "lock", owner: caps.includes("owner"), shared: false, local: false, lease_ms: 0, instances: 1,
    row: true, initial: board.subject.start, clients: ["A", "B"], others: ["locks"], commands: {},
  };
}

const find = safely(async () => {
  const { guard, fence } = Object.fromEntries(new FormData(form));
  const show = (state, what, values, lines = []) => {
    board.found = { state, what, values: { guard, ...values }, lines };
    drawFound(board);
  };
  $("find").disabled = true;
  board.replay = null;
  await drawReplay($("replay"), null);
  try {
    await leave();
    show("running", "searching", { tried: 0 });
    const search = new Search({
      subject: board.subject, session: `${session}-${++board.round}`, guard, fence: fence === "on", vanish: $("mayVanish").checked,
      onOrder: (tried) => show("running", "searching", { tried }),
    });
    const outcome = await search.run();
    if (outcome.lost === undefined) show("good", INSIDE_STORE.has(guard) ? "foundNoneInStore" : "foundNone", outcome);
    else show("bad", "foundOne", { ...outcome, lost: Math.abs(outcome.lost) }, outcome.lines);
    board.replay = { ...outcome, record: outcome.events && recordFor(outcome.events, guard, fence === "on") };
    await drawReplay($("replay"), board.replay);
  } catch (error) {
    board.found = null;
    throw error;
  } finally {
    $("find").disabled = false;
    await begin();
  }
});

/* -- the page ------------------------------------------------------------------------------------ */

const restart = safely(async () => {
  keepInUrl();
  await begin();
});

const askBet = () => buildBet((bet) => {
  board.bet = bet;
  draw();
});

function listenToUser() {
  lang.addEventListener("change", () => {
    setLanguage(lang.value);
    fillExercises();
    askBet();
    keepInUrl();
    drawNotices();
    draw();
    drawReplay($("replay"), board.replay);
  });
  form.elements.ex.addEventListener("change", () => {
    prefill(exercise());
    board.bet = null;
    nameSubject();
  });
  form.addEventListener("change", restart);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    restart();
  });
  $("find").addEventListener("click", find);
  openMend(form, mendWith);
  askBet();
  $("back").addEventListener("click", () => backTo(board.moves.list.length - 1));
  $("vanish").addEventListener("click", safely(async () => {
    await board.target.freeLock();
    board.events.push({ what: "vanished" });
    await refresh();
  }));
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Backspace") return void backTo(board.moves.list.length - 1);
    const actor = board.actors.find((one) => one.name === event.key.toUpperCase());
    if (actor) move(actor);
  });
  window.addEventListener("pagehide", () => board.actors.forEach((actor) => actor.abandon()));
}

async function open() {
  const { guards, lab, lanes } = await ask("/v1/guards");
  if (!lab || lanes) {
    tell(lab ? "withLanes" : "noLab");
    for (const input of document.querySelectorAll("main button, #form select, #form input, #mayVanish")) input.disabled = true;
    return;
  }
  board.guards = guards;
  form.elements.guard.replaceChildren(...guards.filter((guard) => guard.servers_answer).map(({ name }) => new Option(name, name)));
  honourLink(guards);
  nameSubject();
  listenToUser();
  if (performance.getEntriesByType("navigation")[0]?.type === "reload") notice("round", "roundLost");
  await restart();
  watch();
}

speak(...SECTIONS);
lang.value = (given.get("lang") ?? navigator.language).startsWith("zh") ? "zh" : "en";
setLanguage(lang.value);
fillExercises();
draw();
await safely(open)();
document.body.dataset.ready = "yes";
