// A request of a sale and the one that it contradicts, as a record for the player (app/page/player): what
// the service has told of the two, with the writes of others between them.

const NEAR_US = 20000; // a point is noted some time after it was so
const NAMES = ["A", "B"];

// A point of the service, as the player calls it; undefined: it tells nothing here.
function pointOf({ point, problem }, isLock, say) {
  if (point === "waiting") return isLock ? "waiting" : undefined;
  if (point === "acquired") return isLock ? "lock.acquired" : undefined;
  if (point === "released") return isLock ? "lock.released" : "released";
  return point === "rejected" ? `answer ${say(problem)}` : point;
}

// Whom it contradicts: who has written from the same version; else who read the same value; of one that was
// held, refused or killed, who wrote before its end, or next.
export function rivalOf(request, rivals, requests) {
  const traced = rivals.map(({ txn_id }) => requests.bought.find(({ key, at }) => key === txn_id && at.read)).find((one) => one);
  if (traced ?? request.mates[0]) return traced ?? request.mates[0];
  if (!request.marked && !request.refused) return undefined;
  const since = request.at.killed ?? request.at.read;
  return requests.bought.filter((one) => one !== request && one.done && one.at.committed > since)
    .sort((a, b) => a.at.committed - b.at.committed)[0];
}

// What the page did, among the points of the request that it held. Its clock is only near the service's; but
// who is held has passed the last check, and who is let go passes the next point.
function placed(notes, own, behind_us) {
  const checks = own.filter(({ point }) => point === "checked").map(({ t }) => t);
  let held = -Infinity;
  return notes.map(({ point, key, at_us }) => {
    const t = at_us - behind_us;
    if (point === "held") held = checks.findLast((check) => check <= t) ?? checks[0] ?? t;
    const next = own.find((one) => one.t > held)?.t ?? t;
    return { t: point === "held" ? held : point === "let go" ? next : Math.max(t, held), point, key };
  });
}

function gather(chosen, requests, isLock, say) {
  const own = chosen.flatMap((request, i) => request.events.map((event) => (
    { t: event.t_us, who: NAMES[i], point: pointOf(event, isLock, say), value: event.value ?? null, fence: event.fence || 0 })))
    .filter(({ point }) => point);
  const from = Math.min(...own.map(({ t }) => t)), to = Math.max(...own.map(({ t }) => t));
  const others = requests.bought.filter((one) => !chosen.includes(one) && one.done)
    .map(({ at, wrote, fence }) => ({ t: at.committed, who: "others", point: "committed", value: wrote, fence: fence || 0 }));
  const held = chosen.findIndex(({ marked }) => marked), does = { value: null, fence: 0 };
  const notes = placed(requests.notes, own.filter(({ who }) => who === NAMES[held]), requests.behind_us)
    .filter(({ key }) => key === undefined || chosen[held]?.key === key)
    .map(({ t, point, key }) => ({ ...does, t, point, who: key === undefined ? "locks" : NAMES[held] }));
  const before = others.filter(({ t }) => t < from).sort((a, b) => a.t - b.t).at(-1);
  const within = (list) => list.filter(({ t }) => t >= from && t <= to), isLetGo = ({ point }) => point === "let go";
  return { before, events: [...within(notes.filter(isLetGo)), ...own, ...within(others), ...within(notes.filter((one) => !isLetGo(one)))].sort((a, b) => a.t - b.t) };
}

function move(events, from, to) {
  const [event] = events.splice(from, 1), at = to > from ? to - 1 : to;
  events.splice(at, 0, { ...event, t: events[at]?.t ?? event.t });
}

const isEnd = ({ point }) => point === "committed" || point.startsWith("answer");

// A release is noted after it took effect. Who had already written has left when the next one gets in.
function orderReleases(events) {
  for (let i = 0; i < events.length; i++) {
    if (events[i].point !== "lock.acquired") continue;
    const { who } = events[i], j = events.findIndex((one, k) => k > i && one.who !== who && one.point === "lock.released");
    if (j < 0) continue;
    const own = events.slice(0, i).filter((one) => one.who === events[j].who), last = own.findLastIndex(({ point }) => point === "lock.acquired");
    if (last < 0 || !own.slice(last).some(isEnd)) continue;
    move(events, j, i);
    i++;
  }
}

// A read and the write that it saw, or did not see, are noted in either order: what was read tells. If no
// write of the trace left that value, another one did, which was not traced.
function orderReads(events, initial) {
  for (let i = 0; i < events.length; i++) {
    const { who, point, value, t } = events[i], writes = (k) => events[k].point === "committed";
    const before = events.slice(0, i).findLastIndex((_, k) => writes(k));
    if (point !== "read" || (before < 0 ? initial : events[before].value) === value) continue;
    const late = events.findIndex((one, k) => k > i && writes(k) && one.value === value && one.who !== who);
    const older = events.slice(0, Math.max(before, 0)).findLastIndex((_, k) => writes(k));
    const early = before >= 0 && (older < 0 ? initial : events[older].value) === value;
    if (late > 0 && events[late].t - t < NEAR_US) {
      move(events, late, i);
      i++;
    } else if (early && t - events[before].t < NEAR_US && !events.slice(before, i).some((one) => one.who === who)) {
      move(events, i, before);
    } else {
      events.splice(i, 0, { t, who: "others", point: "committed", value, fence: 0 });
      i++;
    }
  }
}

// Of several writes of others, one after the other, the last one counts.
const folded = (events) => events.filter((one, i) => one.who !== "others" || events[i + 1]?.who !== "others");

// chosen: one request or two. guard: of GET /v1/guards. say(problem): its words.
export function recordOf(chosen, requests, terms, guard, say) {
  const isLock = guard.kind === "lock", can = (cap) => guard.caps.includes(cap);
  const { before, events } = gather(chosen, requests, isLock, say);
  const initial = before?.value ?? events.find(({ point }) => point === "read").value;
  if (isLock) orderReleases(events);
  orderReads(events, initial);
  const told = folded(events), clients = NAMES.slice(0, chosen.length);
  return {
    guard: guard.name, lock: isLock, owner: can("owner"), shared: can("shared") || can("permits"), local: false,
    lease_ms: can("lease") && !terms.watchdog ? terms.lease_ms ?? 0 : 0, // renewals are not told
    instances: 1, partial: true, row: true, fence: Boolean(terms.fence), initial, clients,
    names: Object.fromEntries(chosen.map(({ key }, i) => [NAMES[i], key])),
    others: ["others", "locks"].filter((who) => told.some((one) => one.who === who)),
    events: told.map(({ t, who, point, value, fence }) => [t - told[0].t, who, point, value, fence]),
  };
}
