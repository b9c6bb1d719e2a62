// What can be said of a round of requests. Each fact is looked up in the record: in the points that
// the service has traced, and in the answers. Its words are fact.NAME. Nothing is said of what was
// meant to happen.
//
// A record is {isLock, lease_ms: {A: 8000}, tries, deletions}. A try is one request as it was sent:
// {name, amount, ok, problem, reads: [{t, value, decided}], and the times of the points it passed}.

const LOCK_POINTS = { "lock.wait": "waits", "lock.acquired": "got", "lock.release": "frees", "lock.released": "freed" };
const LEASE_SHARE = 900; // µs per ms: a holder hears of its lock some time after its lease began
const POINTS = ["submitted", "checked", "lost", "released", "rejected"];

function take(one, { t_us: t, point, value, fence }) {
  if (fence) one.fence = fence;
  if (point === "read") one.reads.push({ t, value });
  else if (point === "decided") {
    one.decided = t;
    if (one.reads.length) one.reads.at(-1).decided = value;
  }
  else if (point === "committed") Object.assign(one, { committed: t, left: value });
  else if (point in LOCK_POINTS) one[LOCK_POINTS[point]] ??= t;
  else if (POINTS.includes(point)) one[point] = t;
}

// Puts the record together. events: of GET /v1/lab/trace. actors: {name, amount, key, answers}: a
// retry has the key of the first try. null: the trace does not have every try, so nothing can be said.
export function recordOf(events, actors, { isLock, lease_ms, lock }) {
  const tries = [];
  for (const { name, amount, key, answers } of actors) {
    const own = [];
    for (const event of events.filter((one) => one.key === key)) {
      if (event.point === "submitted") own.push({ name, amount, ...answers[own.length], reads: [] });
      if (own.length) take(own.at(-1), event);
    }
    if (own.length !== answers.length) return null;
    tries.push(...own);
  }
  const deletions = events.filter(({ point, lock: which }) => point === "lock.freed" && which === lock).map(({ t_us: t }) => t);
  return { isLock, lease_ms, tries: tries.sort((a, b) => a.submitted - b.submitted), deletions };
}

const readOf = ({ reads }) => reads.at(-1);
const wroteIt = (one) => one.ok && one.committed !== undefined && one.left !== readOf(one)?.value;
const endOf = ({ frees, released, rejected }) => Math.min(frees ?? Infinity, released ?? Infinity, rejected ?? Infinity);
const between = (t, from, to) => t > from && t < to;

// What holds of two different tries.
function pairs({ tries }, holds) {
  return tries.flatMap((one) => tries.filter((other) => other.name !== one.name && holds(one, other)).map((other) => [one, other]));
}

// Somebody got the lock of `one`, which was inside.
const robberies = (record) => (!record.isLock ? []
  : pairs(record, (one, other) => one.got !== undefined && between(other.got, one.got, endOf(one))))
  .filter(([one, other], i, all) => all.every(([a, b]) => a !== one || b.got >= other.got)); // the first one

// Why it could: the lock was deleted on the server, freed by a third who had lost it before, or its
// lease had ended.
function causeOf(record, [one, other]) {
  if (record.deletions.some((t) => between(t, one.got, other.got))) return { what: "deleted" };
  const third = record.tries.find((try_) => try_ !== one && try_ !== other && try_.got < one.got && between(try_.frees, one.got, other.got));
  if (third) return { what: "foreignRelease", third: third.name };
  const lease = record.lease_ms[one.name];
  return lease && other.got - one.got >= lease * LEASE_SHARE ? { what: "leaseOver", lease } : {};
}

const caused = (what) => (record) => robberies(record).map((pair) => [pair, causeOf(record, pair)])
  .filter(([, cause]) => cause.what === what).map(([[one, other], cause]) => ({ ...cause, name: one.name, other: other.name }));

// Each returns the values of its sentences: one for each time that it is so.
export const FACTS = {
  overwritten: (record) => pairs(record, (one, other) => wroteIt(one) && wroteIt(other) && one.committed < other.committed &&
      readOf(other).t < one.committed && readOf(other).value !== one.left)
    .map(([one, other]) => ({ name: one.name, amount: -one.amount, other: other.name, read: readOf(other).value, wrote: other.left })),
  chained: (record) => pairs(record, (one, other) => wroteIt(one) && readOf(other)?.value === one.left && one.decided < readOf(other).t &&
      !record.tries.some((third) => third !== one && third !== other && wroteIt(third) && between(third.committed, one.committed, readOf(other).t)))
    .map(([one, other]) => ({ name: one.name, other: other.name, read: readOf(other).value })),
  waited: (record) => pairs(record, (one, other) => one.waits !== undefined && other.got < one.waits && !(endOf(other) < one.waits) && !(other.freed < one.waits))
    .filter(([, other], i, all) => all.every(([a, b]) => a !== all[i][0] || b.got <= other.got))
    .map(([one, other]) => ({ name: one.name, other: other.name })),
  twoInside: (record) => robberies(record).map(([one, other]) => ({ name: one.name, other: other.name })),
  leaseOver: caused("leaseOver"),
  deleted: caused("deleted"),
  foreignRelease: caused("foreignRelease"),
  fenceRefused: (record) => pairs(record, (one, other) => one.problem === "lock-lost" && one.checked > one.decided && one.fence &&
      other.ok && other.fence > one.fence && other.committed < one.rejected)
    .map(([one, other]) => ({ name: one.name, other: other.name, ...shortFences(one.fence, other.fence) })),
  checkRefused: ({ tries }) => tries.filter((one) => one.problem === "lock-lost" && one.decided && !(one.checked > one.decided))
    .map(({ name }) => ({ name })),
  readAgain: ({ tries }) => tries.filter(({ reads, ok }) => ok && reads.length > 1)
    .map(({ name, reads }) => ({ name, read: reads.at(-2).value, wrote: reads.at(-2).decided, again: reads.at(-1).value })),
  soldOut: ({ tries }) => tries.filter(({ problem }) => problem === "sold-out").map((one) => ({ name: one.name, read: readOf(one).value })),
  keptOut: (record) => robberies(record).filter(([one, other]) => one.frees !== undefined && between(one.freed, other.got, endOf(other)) &&
      record.tries.some((third) => third !== one && third !== other && between(third.waits, one.freed, endOf(other)) && !(third.got < endOf(other))))
    .map(([one, other]) => ({ name: one.name, other: other.name })),
};

// All of them: [{id, values}].
export const factsOf = (record) => Object.entries(FACTS).flatMap(([id, find]) => find(record).map((values) => ({ id, values })));

// A fence of Redis begins at its clock: as many of its last digits as tell the two apart, four at least.
export function shortFences(older, newer) {
  let digits = 4;
  const cut = (fence) => (String(fence).length <= digits ? String(fence) : `…${String(fence).slice(-digits)}`);
  while (+String(older).slice(-digits) >= +String(newer).slice(-digits) && digits < 20) digits++;
  return { fence: cut(older), newer: cut(newer) };
}
