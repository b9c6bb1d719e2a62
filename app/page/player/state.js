/* What a record says was the case after its event k: a pure function of the events 0..k.
 * A record is a run of the lab: {events: [[t_us, who, point, value, fence, landed]], initial, ...}. */
'use strict';
const Museum = {};
document.documentElement.classList.add('js');

Museum.state = (() => {
  const fresh = (who) => ({
    who, holds: false, waits: false, read: null, write: null, version: null, seen: 0, fence: 0,
    stopped: false, held: false, killed: false, releasing: false, released: false, answer: '', doing: '', told: false,
  });

  function write(state, who, value, fence) {
    const client = state.clients[who];
    if (client && value === client.read) return; // a refusal, committed with its answer
    const knows = client && client.version !== null; // the store writes the version that it has read, and one
    const late = knows ? state.row.writers.slice(client.seen) : [];
    state.row = {
      value, version: (knows ? client.version : state.row.version) + 1, by: who, fence, writers: [...state.row.writers, who],
      over: late.filter((one) => state.clients[one]).pop() || late.pop() || '', // whose change it has overwritten
    };
  }

  /* That a release has arrived is noted some time after it has: who is granted the lock shows it, unless the
   * lease had ended before. */
  function release(state, record, key, t) {
    const client = state.clients[key.who];
    if (!client || !client.releasing || (record.lease_ms && t - key.t >= record.lease_ms * 1000)) return;
    client.released = true;
    client.holds = false;
  }

  /* The server's view of the lock. A mutex is a lock in each process; a shared lock has many holders. */
  function grant(state, record, who, t) {
    const alone = !record.local && !record.shared;
    if (alone) state.keys.forEach((key) => release(state, record, key, t));
    state.keys = state.keys.filter((key) => !alone && key.who !== who);
    state.keys.push({ who, t });
  }

  /* A bare DEL frees whoever has the lock; a comparing one frees only its own. */
  function free(state, record, who) {
    const bare = !record.owner && !record.local && !record.shared;
    state.keys = state.keys.filter((key) => !bare && key.who !== who);
  }

  const on = {
    sends: (s, r, c) => Object.assign(c, fresh(c.who), { stopped: c.stopped, doing: 'sends' }),
    waiting: (s, r, c) => { c.doing = 'asks'; },
    'lock.wait': (s, r, c) => { c.waits = true; c.doing = 'waits'; },
    'lock.acquired': (s, r, c, t) => { Object.assign(c, { waits: false, holds: true, doing: 'holds', releasing: false, released: false }); grant(s, r, c.who, t); },
    'lock.release': (s, r, c) => { c.releasing = true; },
    'lock.release.del': (s, r, c) => { c.releasing = false; }, // it compared, and deletes later
    read: (s, r, c, t, value, fence) => {
      Object.assign(c, { waits: false, read: value, write: null, version: s.row.version, seen: s.row.writers.length, fence, doing: 'has-read' });
    },
    decided: (s, r, c, t, value) => { c.write = value; c.doing = 'decided'; },
    checked: (s, r, c) => { c.doing = 'checked'; },
    committed: (s, r, c) => { c.doing = 'committed'; },
    'lock.released': (s, r, c) => { c.holds = false; c.doing = 'released'; if (!c.released) free(s, r, c.who); },
    lost: (s, r, c) => { c.doing = 'refused'; },
    rejected: (s, r, c) => { c.waits = false; c.doing = 'rejected'; },
    stopped: (s, r, c) => { c.stopped = true; },
    continues: (s, r, c) => { c.stopped = false; },
    held: (s, r, c) => { c.held = true; },
    'let go': (s, r, c) => { c.held = false; },
    killed: (s, r, c) => { c.killed = true; c.holds = false; c.waits = false; },
    'started again': (s, r, c) => Object.assign(c, fresh(c.who)),
  };

  const byServers = {
    'key gone': (s) => { s.keys = []; },
    'key deleted by somebody': (s) => { s.keys = []; },
    'replica cut off': (s) => { s.cut = true; },
    'replica promoted': (s) => { s.keys = s.cut ? [] : s.keys; },
  };

  function apply(state, record, [t, who, point, value, fence, landed]) {
    const client = state.clients[who];
    state.t = t;
    state.acted = who;
    if (point === 'committed')
      write(state, who, value, fence);
    if (landed)
      write(state, landed, value, state.clients[landed].fence);
    if (!client && point === 'lock.renew')
      state.keys.forEach((key) => { key.t = t; });
    if (who === 'locks' && byServers[point])
      byServers[point](state);
    if (!client)
      return;
    if (on[point])
      on[point](state, record, client, t, value, fence);
    if (/^(answer|no answer)/.test(point))
      Object.assign(client, { answer: point.replace('answer ', ''), holds: false, waits: false });
  }

  return (record, k) => {
    const state = {
      t: 0, clients: {}, keys: [], cut: false, acted: '',
      row: { value: record.initial, version: 1, by: '', fence: 0, over: '', writers: [] },
    };
    record.clients.forEach((who) => { state.clients[who] = fresh(who); });
    record.events.slice(0, k + 1).forEach((event) => apply(state, record, event));
    state.holders = record.clients.filter((who) => state.clients[who].holds);
    state.clash = state.holders.length > 1 && !record.shared;
    return state;
  };
})();
