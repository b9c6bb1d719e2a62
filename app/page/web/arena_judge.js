// What became of one sale of the arena: from the ledger's audit, from the lock, from what became of
// an order after it, and from the load's report. What was meant to happen is not asked.

const served = (heir) => heir === null || heir.ok || heir.problem === "sold-out";

// Figures of the load's own verdict that are not 0, besides those that the audit has told.
function further(report) {
  const own = ["oversold", "lost_updates", "lost_amount", "undersold"];
  return Object.entries(report?.verdict ?? {}).filter(([name, figure]) => typeof figure === "number" && figure > 0 && !own.includes(name));
}

// Answers 503 that kept a buyer from being served. Not a late write that was refused: nobody else
// could have been served with it, and the buyer's next try was.
function turnedAway(report) {
  return (report?.status?.["503"] ?? 0) - (report?.problems?.["lock-lost"] ?? 0);
}

// audit: of the item; lock: as the lock server says, null: it did not; heir: {ok, problem} of an order
// sent after the sale, null: none was; report: of the load, null: it died; ends: a dead holder's lock
// ends by itself, by a lease that it has from the start or by its session; killed: the load was killed, so it need not sell out.
// Returns the state of a tile, the name of its words and their values.
export function judge({ audit, lock, heir, report, buyers, ends, killed }) {
  if (!audit) return { state: "unknown", name: "unknown", values: {} };
  const stock = audit.initial + audit.restocked, sold = audit.sold, lost = audit.lost_updates;
  const values = { sold, stock, oversold: audit.oversold, lost, row: audit.current };
  if (audit.oversold > 0) return { state: "bad", name: "oversold", values };
  if (lost > 0) return { state: "bad", name: "lostOnly", values };
  const wrong = further(report);
  if (!audit.ok || wrong.length) return { state: "bad", name: "unsound", values: { ...values, figures: wrong.map((pair) => pair.join(" ")).join(", ") } };
  if (!served(heir) && !ends && lock?.holders > 0 && lock.left_ms === null) return { state: "stuck", name: "stuck", values };
  const refused = turnedAway(report);
  if (!served(heir)) return { state: "refused", name: "heirRefused", values };
  if (refused > 0) return { state: "refused", name: "refused", values: { ...values, refused } };
  if ((report || !killed) && sold < Math.min(stock, buyers)) return { state: "refused", name: "undersold", values };
  return { state: "good", name: report ? "good" : "survived", values };
}
