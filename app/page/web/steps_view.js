// The board of step mode: each actor and what it knows, the row, the lock, the verdict.
import { LEASE } from "./moves.js";
import { number, problem, text, translate } from "./text.js";
import { drawBet, drawMend } from "./wagers.js";

const $ = (id) => document.getElementById(id);
const CAPTIONS = { guard: "guard", fence: "fenceOn", lease: "leaseA", actors: "actors" }; // of the settings
// After these it is not known whether the request changed anything.
const UNKNOWN = new Set(["noAnswer", "unavailable", "internal", "request-timeout"]);

let onBack = () => {};

export function build(board, onMove, backTo) {
  onBack = backTo;
  $("actors").replaceChildren(...board.actors.map((actor) => {
    const root = $("actor").content.cloneNode(true).firstElementChild;
    translate(root);
    root.dataset.name = actor.name;
    root.querySelector(".points").replaceChildren(...[...actor.points, "done"].map((point) => {
      const line = document.createElement("li");
      line.dataset.point = point;
      return line;
    }));
    root.querySelector(".move").addEventListener("click", () => onMove(actor));
    actor.root = root;
    return root;
  }));
}

let fences = []; // all that are shown
const fenceOf = (fence) => (fence ? Museum.fence(fence, fences) : undefined);
const show = (value) => (value === undefined || value === null ? "–" : number(value));

// What a point is called: some are called otherwise where the guard is no lock.
let bare = false;
const nameOf = (point) => text(bare && ["waiting", "acquired", "done"].includes(point) ? `bare.${point}` : `at.${point}`);

function drawActor(actor) {
  const { root, name, state, at, answer } = actor, done = state === "done";
  const outcome = !done ? "" : answer.ok ? "accepted" : UNKNOWN.has(answer.problem) ? "unanswered" : "refused";
  const put = (what, value) => { root.querySelector(`[data-is=${what}]`).textContent = typeof value === "string" ? value : show(value); };
  root.dataset.state = outcome || state;
  root.querySelector("h2").textContent = text("takes", { name, amount: -actor.amount });
  root.querySelector(".where").textContent = done ? text(outcome, { why: problem(answer.problem) })
    : state === "held" ? nameOf(at) : text(state === "waiting" ? "waitsLock" : state);
  [...root.querySelector(".points").children].forEach((line, i) => {
    line.textContent = nameOf(line.dataset.point);
    line.className = line.dataset.point === at ? "here" : i <= actor.reached || (done && answer.ok) ? "passed" : "";
  });
  put("read", actor.read);
  put("wrote", actor.wrote);
  put("fence", fenceOf(actor.fence));
  const button = root.querySelector(".move");
  button.disabled = !actor.movable;
  button.textContent = `${text(state === "idle" ? "send" : done && actor.movable ? "retry" : "move", { name })} [${name}]`;
}

function drawWorld({ row, lock, actors }) {
  const put = (what, value) => { $("world").querySelector(`[data-is=${what}]`).textContent = value; };
  put("value", show(row?.value));
  put("version", show(row?.version));
  put("last_fence", fenceOf(lock?.last_fence) ?? show());
  const holder = actors.find((actor) => actor.token && actor.token === lock?.token);
  put("holder", !lock ? "–" : !lock.key ? text("noLock") : !lock.holders ? text("free") : holder?.name ?? text("someone"));
  put("left", lock?.left_ms == null ? "–" : `${(lock.left_ms / 1000).toFixed(lock.left_ms < 60000 ? 1 : 0)} s`);
  put("fence", fenceOf(lock?.fence) ?? show());
  $("lockKey").textContent = lock?.key ? `${lock.key} ${lock.token}` : "";
  $("vanish").disabled = !lock?.holders;
}

// Its own lesson only where the facts that make it true hold.
function lessonOf({ said, changed, mend }, exercise, lost) {
  const holds = (fact) => said.some(({ id }) => id === fact);
  if (exercise.shows.every(holds)) return text(`level.${exercise.id}.lesson`);
  if (exercise.loses && !lost) return mend ? "" : text("harmless");
  return changed.length ? text("changed", { names: changed.map((name) => text(CAPTIONS[name])).join(", ") }) : "";
}

// What the accepted requests leave.
export const expectedOf = ({ actors, subject }) =>
  actors.reduce((sum, actor) => sum + (actor.answer?.ok ? actor.amount : 0), subject.start);

// What the ledger shows of this round so far.
export const hasLost = (board) => board.moves.lost !== undefined || (board.audit !== null && board.audit.current !== expectedOf(board));

// [sentence, the fact that it tells or "", class].
function linesOf(board, exercise) {
  const { audit, actors, said } = board;
  if (!audit) return [[text(actors.some((actor) => actor.movable) ? "yourMove" : "underWay"), "", ""]];
  const expected = expectedOf(board), off = audit.current - expected, what = off > 0 ? "lost" : off < 0 ? "surplus" : "nothingLost";
  const lesson = lessonOf(board, exercise, off !== 0);
  return [
    [text(what, { lost: Math.abs(off), expected, value: audit.current }), what, ""],
    ...said.map(({ id, values }) => [text(`fact.${id}`, values), id, "fact"]),
    ...audit.forks.map((pair) => [text("forks", { keys: pair.map((one) => one.txn_id).join(", ") }), "forks", "fact"]),
    ...(lesson ? [[lesson, "", "lesson"]] : []),
  ];
}

function drawVerdict(board, exercise) {
  const root = $("verdict"), { audit } = board, lines = linesOf(board, exercise);
  root.dataset.state = !audit ? "running" : lines[0][1] === "nothingLost" ? "good" : "bad";
  if (root.textContent === lines.map(([line]) => line).join("")) return;
  root.replaceChildren(...lines.map(([line, fact, kind]) => {
    const made = document.createElement("p");
    Object.assign(made, { textContent: line, className: kind });
    if (fact) made.dataset.fact = fact;
    return made;
  }));
}

const lineOf = (event) => text(event.what, { ...event, ...(event.at && { where: nameOf(event.at) }), ...(event.problem && { why: problem(event.problem) }) });

function list(root, lines) {
  if (root.children.length === lines.length && [...root.children].every((line, i) => line.textContent === lines[i])) return;
  root.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
}

const nameOfMove = (who) => (who === LEASE ? text("level.lease") : who);
const listOf = ([one, ...rest]) => (rest.length ? text("level.list", { one, rest: listOf(rest) }) : one);

// What all orders together are known to do is so of the level's own settings only.
function countOf({ moves: { n, lost }, audit, changed }, { fewest, losing, schedules, begins }) {
  if (lost !== undefined && !changed.length && losing) return text("level.won", { n: lost, fewest });
  if (changed.length) return text("level.only", { n });
  if (losing) return text("level.count", { n, fewest });
  if (!audit) return text("level.count-open", { n });
  return begins ? text("level.none-after", { n: schedules, begins: listOf([...begins].map(nameOfMove)) })
    : text("level.none", { n: schedules });
}

// The moves as buttons: each leads back to before it.
function drawMoves(board, exercise) {
  const { list, replays } = board.moves, count = countOf(board, exercise);
  if ($("count").textContent !== count) $("count").textContent = count;
  $("back").disabled = replays || !list.length;
  for (const button of $("moves").querySelectorAll("button")) button.disabled = replays;
  const shown = list.map(nameOfMove);
  if ([...$("moves").children].map((made) => made.textContent).join() === shown.join()) return;
  $("moves").replaceChildren(...shown.map((name, k) => {
    const item = document.createElement("li"), button = item.appendChild(document.createElement("button"));
    Object.assign(button, { type: "button", textContent: name, title: text("level.to", { move: name }) });
    button.addEventListener("click", () => onBack(k));
    return item;
  }));
}

export function drawFound({ found }) {
  $("found").textContent = found ? text(found.what, found.values) : "";
  $("found").dataset.state = found?.state ?? "";
  list($("schedule"), (found?.lines ?? []).map(lineOf));
}

export function draw(board, exercise) {
  $("connection").textContent = text(board.connected ? "connected" : "reconnecting");
  bare = board.lock?.key === "";
  fences = [...board.actors.map((actor) => actor.fence), board.lock?.fence, board.lock?.last_fence];
  for (const actor of board.actors) if (actor.root) drawActor(actor);
  drawWorld(board);
  drawVerdict(board, exercise);
  list($("log"), board.events.map(lineOf));
  $("task").textContent = text(`level.${exercise.id}.task`);
  $("hint").textContent = text(`level.${exercise.id}.hint`);
  drawMoves(board, exercise);
  drawFound(board);
  drawBet(board, exercise);
  drawMend({ ...board, lost: hasLost(board) });
}
