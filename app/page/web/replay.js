// What a search has found, drawn: the tree of all orders that were tried, the same as a list, and the order
// that does harm in the player.
import { materialOf, onKey, play } from "./play.js";
import { text } from "./text.js";

const make = (name, words = "") => Object.assign(document.createElement(name), { textContent: words });

function listOf(schedules) {
  const details = make("details"), list = make("ol");
  list.append(...schedules.map(({ moves, loses }) =>
    make("li", `${[...moves].join(" ")} ${loses ? `✗ ${text("level.loses")}` : `✓ ${text("level.keeps")}`}`)));
  details.append(make("summary", text("tried", { n: schedules.length })), list);
  return details;
}

// root: takes all of it. found: {schedules, moves, record}; moves, record: undefined if none does harm.
export async function drawReplay(root, found) {
  root.replaceChildren();
  if (!found) return;
  const { schedules, moves, record } = found;
  root.append(Museum.tree.draw(schedules, { path: moves }), listOf(schedules));
  if (!record) return;
  const { words } = await materialOf(record.guard, record.fence);
  const player = play(root, record, words, text("losing"));
  player.section.addEventListener("keydown", (event) => onKey(player, event));
}
