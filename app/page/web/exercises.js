// The levels that step mode plays: subject: the row; loses: what the learner is to bring about; points:
// where each actor is held; shows: the facts (facts.js) that make its lesson true: it is told only where
// all of them hold. Title, task, hint and lesson are words of each language.
import { levels } from "./levels.js";
import { ACCOUNT, ITEM } from "./row.js";

export const ALL = ["decided", "committed"];

export const exercises = levels.filter(({ points }) => points).map((level) => ({
  ...level,
  subject: level.subject === "item" ? ITEM : ACCOUNT,
  loses: level.losing > 0,
  actors: level.points.length,
  fence: level.fence ? "on" : "off",
  lease: level.lease_ms,
}));
