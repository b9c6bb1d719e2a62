// Ready-made exercises. subject: of an account, unless it is said; loses: what the learner is to
// bring about; points: where each actor is held; shows: the facts (facts.js) that make its lesson true:
// it is told only where all of them hold. Title, task, hint and lesson are words of each language.
import { ITEM } from "./row.js";

export const ALL = ["waiting", "acquired", "read", "decided", "committed"];
const SOME = ["waiting", "decided", "committed"];
const LATE = ["waiting", "checked", "committed"]; // between the last look at the lock and the write
const LEASE_MS = 8000;

export const exercises = [
  { id: "lost-update", shows: ["overwritten"], loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL] },
  { id: "locked", shows: ["chained"], loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL] },
  { id: "last-piece", shows: ["overwritten"], subject: ITEM, loses: true, guard: "none", actors: 2, fence: "off", lease: 0, points: [ALL, ALL] },
  { id: "last-piece-locked", shows: ["soldOut"], subject: ITEM, loses: false, guard: "redis-token", actors: 2, fence: "on", lease: 0, points: [ALL, ALL] },
  { id: "expired-lease", shows: ["overwritten", "leaseOver"], loses: true, guard: "redis-set", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "paused-holder", shows: ["overwritten", "twoInside"], loses: true, guard: "redis-token", actors: 2, fence: "off", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "paused-holder-fence", shows: ["fenceRefused"], loses: false, guard: "redis-token", actors: 2, fence: "on", lease: LEASE_MS, points: [LATE, SOME] },
  { id: "wrong-delete", shows: ["overwritten", "foreignRelease"], loses: true, guard: "redis-set", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME] },
  { id: "own-token", shows: ["keptOut"], loses: false, guard: "redis-token", actors: 3, fence: "off", lease: LEASE_MS, points: [SOME, SOME, SOME] },
];
