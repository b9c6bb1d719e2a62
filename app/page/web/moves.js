// The moves of a round: how many they were, and the same moves once more on a new row, so that another
// can be taken in the place of one of them.
export const LEASE = "L"; // the end of A's lease: it takes time, and is nobody's move

const LOOK_MS = 30, STAND_MS = 60000, MOVES_MAX = 60;

export class Moves {
  constructor() {
    this.list = [];
    this.lost = undefined; // how many were made when the ledger showed a loss
    this.replays = false;
  }

  get n() {
    return this.list.filter((who) => who !== LEASE).length;
  }

  // So many of the list once more. board: {actors, lock}. refresh() looks at it, move(actor) moves.
  async replay(list, board, refresh, move) {
    this.replays = true;
    try {
      for (const who of list) {
        const actor = board.actors.find(({ name }) => name === who), a = board.actors[0];
        if (who === LEASE) await this.until(refresh, () => board.lock?.token !== a.token);
        else {
          await this.until(refresh, () => actor.movable);
          await move(actor);
        }
        await this.until(refresh, () => board.actors.every(({ state }) => state !== "moving"));
      }
    } finally {
      this.replays = false;
    }
  }

  // The list once more on a board with another guard or fence: a move that cannot be made there is left
  // out. Then each request goes on to its answer. ends: A's lease ends by itself.
  async against(list, board, ends, refresh, move) {
    const { actors } = board, [a] = actors;
    const stands = () => actors.every(({ state }) => state !== "moving" && (state !== "waiting" || board.lock?.holders));
    const canGo = ({ movable, state }) => movable && state !== "done";
    this.replays = true;
    try {
      for (const who of list) {
        await this.until(refresh, stands);
        const actor = actors.find(({ name }) => name === who);
        if (actor && canGo(actor)) await move(actor);
        if (who === LEASE && ends && a.inside && a.token) await this.until(refresh, () => board.lock?.token !== a.token);
      }
      for (let n = 0; n < MOVES_MAX && !board.audit; n++) {
        await this.until(refresh, () => board.audit || (stands() && actors.some(canGo)));
        if (!board.audit) await move(actors.find(canGo));
      }
    } finally {
      this.replays = false;
    }
  }

  async until(refresh, holds) {
    const end = performance.now() + STAND_MS;
    for (await refresh(); !holds(); await refresh()) {
      if (performance.now() > end) throw new Error("a request came nowhere");
      await new Promise((later) => setTimeout(later, LOOK_MS));
    }
  }
}
