// Requests of one item, put together from their points; and which of them clashed.
import { shortFences } from "./facts.js";

const KEPT = 4000;

export class Requests {
  constructor() {
    this.all = new Map(); // by key
    this.bought = []; // in order of their commits
    this.byRead = new Map(); // value read -> those who read it and wrote
    this.firstClash = null;
    this.marked = null; // the key of one that is held on purpose
    this.notes = []; // what the page did to one of them, or to the lock: {at_us by its clock, point, key or undefined}
    this.behind_us = Infinity; // the service's clock, behind this page's
  }

  // On the service's clock, as near as events tell it.
  now_us() {
    return performance.now() * 1000 - this.behind_us;
  }

  // What is being done.
  note(point, key, at_us = performance.now() * 1000) {
    this.notes.push({ point, key, at_us });
  }

  mark(key) {
    this.marked = key;
    const request = this.all.get(key);
    if (request) request.marked = true;
  }

  // Has another one read the same as this, not in one batch with it, and written?
  hasRival(key) {
    const { read, at } = this.all.get(key) ?? {};
    return read !== undefined && [...this.all.values()].some((other) => other.read === read && other.at.read !== at.read && other.done);
  }

  // The one held on purpose has died inside; its lock stands until freed_us, for ever (null), or
  // there is none (undefined).
  kill(killed_us, freed_us) {
    const request = this.all.get(this.marked);
    if (request?.read === undefined) return; // it was not traced
    Object.assign(request.at, { killed: killed_us, freed: freed_us });
    request.events.push({ point: "killed", t_us: killed_us });
    this.bought.push(request);
    if (this.firstClash === null) this.firstClash = this.bought.length - 1;
  }

  // One held on purpose is shown, although it was refused: by a fence, if a newer one has written.
  refuse(request, problem) {
    this.all.delete(request.key);
    if (!request.marked || request.read === undefined) return;
    this.marked = null; // it may come again under its key
    request.refused = true;
    const newer = Math.max(0, ...this.bought.filter(({ at }) => at.committed < request.at.rejected).map(({ fence }) => fence ?? 0));
    if (problem === "lock-lost" && request.at.checked > request.at.decided && newer > request.fence)
      request.fences = shortFences(request.fence, newer);
    this.bought.push(request);
    if (this.firstClash === null) this.firstClash = this.bought.length - 1;
  }

  add(event) {
    let request = this.all.get(event.key);
    this.behind_us = Math.min(this.behind_us, performance.now() * 1000 - event.t_us);
    if (!request) {
      if (this.all.size >= KEPT) return;
      request = { key: event.key, at: {}, events: [], mates: [], marked: event.key === this.marked };
      this.all.set(event.key, request);
    }
    request.at[event.point] = event.t_us;
    request.events.push(event);
    if (event.fence) request.fence = event.fence;
    if (event.point === "read") request.read = event.value;
    if (event.point === "decided") request.wrote = event.value;
    if (event.point === "rejected") this.refuse(request, event.problem);
    if (event.point === "committed" && request.read !== undefined && event.value !== request.read)
      this.commit(request, event.value);
  }

  // Two clash when both read one value and wrote, and neither knew of the other. Those of one batch
  // read at the same instant, under one lock, and are decided one after the other: no clash.
  commit(request, value) {
    if (request.at.read === undefined || request.done) return;
    request.done = true;
    request.wrote = value;
    this.bought.push(request);
    const same = this.byRead.get(request.read) || [];
    for (const other of same)
      if (other.at.read !== request.at.read) {
        other.mates.push(request);
        request.mates.push(other);
      } else {
        request.batched = other.batched = true;
      }
    same.push(request);
    this.byRead.set(request.read, same);
    if (request.mates.length && this.firstClash === null) this.firstClash = this.bought.length - 1;
  }

  // What is drawn: while it runs the latest, afterwards those around the one held, or around the first
  // clash, and with it the one that it was with, who may have bought long before.
  // The chosen ones are always among them.
  shown(count, ended, chosen = []) {
    const at = this.firstClash ?? this.bought.findIndex((r) => r.marked);
    let first = Math.max(0, this.bought.length - count);
    if (ended) first = Math.min(first, Math.max(0, at - (count >> 2)));
    const shown = this.bought.slice(first, first + count), mate = ended && this.bought[at]?.mates[0];
    const wanted = [...new Set([...(mate ? [mate] : []), ...this.bought.filter(({ key }) => chosen.includes(key))])].filter((one) => !shown.includes(one));
    const room = shown.filter((one) => !chosen.includes(one.key) && one !== this.bought[at]);
    wanted.slice(0, room.length).forEach((one, i) => { shown[shown.indexOf(room[i])] = one; });
    return shown.sort((a, b) => a.at.read - b.at.read);
  }
}
