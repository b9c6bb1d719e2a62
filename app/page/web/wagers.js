// A level's bet, which is made before the first move, and the mend of a round that lost: another guard or
// fence, and the same moves again. What is said follows the ledger.
import { text } from "./text.js";

const $ = (id) => document.getElementById(id);
const say = (name, values) => text(`level.${name}`, values);

function put(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// A bet is won or lost once the ledger shows a loss, or all orders are known to keep.
function sentenceOf({ bet, moves, audit }, level) {
  if (!bet) return "";
  if (moves.lost !== undefined || (audit && !level.losing)) return Museum.bet.judged(say, level, bet);
  return Museum.bet.said(say, bet) + (audit ? ` ${say("bet.open")}` : "");
}

// What all orders do is known of the level's own settings only.
export function drawBet(board, level) {
  const asks = level.kind === "bet" && !board.changed.length && !board.bet && board.moves.n === 0;
  $("bet").hidden = !asks && (!board.bet || board.changed.length > 0);
  $("betAsk").hidden = !asks;
  put($("betTold"), sentenceOf(board, level));
}

export function buildBet(placed) {
  $("betAsk").replaceChildren(...Museum.bet.ask(say, placed));
}

export const nameOfMend = ({ guard, fence }) => `${guard}, ${text("fenceOn")}: ${text(fence)}`;

export function drawMend({ mend, moves, lost }) {
  $("mend").hidden = !mend && !lost;
  $("mendPlay").disabled = moves.replays;
  put($("mended"), !mend ? "" : mend.lost === undefined ? say("mend.running") : Museum.bet.mended(say, mend.lost, nameOfMend(mend)));
  $("mended").dataset.state = mend?.lost === undefined ? "" : mend.lost ? "bad" : "good";
}

// The choices: what the page's own form has. play({guard, fence}): the button was pressed.
export function openMend(form, play) {
  const guard = $("mendGuard"), fence = $("mendFence");
  guard.replaceChildren(...[...form.elements.guard.options].map(({ value }) => new Option(value, value)));
  guard.value = "redis-token";
  fence.value = "on";
  $("mendPlay").addEventListener("click", () => play({ guard: guard.value, fence: fence.value }));
}
