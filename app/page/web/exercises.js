// Ready-made exercises. subject: of an account, unless it is said; loses: what the learner will see;
// points: where each actor is held. Title, task, hint and lesson are words of each language.
import { ITEM } from "./row.js";

export const ALL = ["waiting", "acquired", "read", "decided", "committed"];
const SOME = ["waiting", "decided", "committed"];
const LATE = ["waiting", "checked", "committed"]; // between the last look at the lock and the write
const LEASE_MS = 8000;

export const exercises = [
  { id: "lost-update", loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL] },
  { id: "locked", loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL] },
  { id: "last-piece", subject: ITEM, loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL] },
  { id: "last-piece-locked", subject: ITEM, loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL] },
  { id: "expired-lease", loses: true, guard: "redis-set", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "paused-holder", loses: true, guard: "redis-token", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "paused-holder-fence", loses: false, guard: "redis-token", actors: 2, fence: "on", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "wrong-delete", loses: true, guard: "redis-set", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME] },
  { id: "own-token", loses: false, guard: "redis-token", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME] },
];
