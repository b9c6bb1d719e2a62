/* Draws a state: columns of clients, the lock whose key travels, the row, and the axis of time. */
'use strict';

Museum.make = (name, attributes = {}, ...children) => {
  const svg = ['svg', 'g', 'rect', 'text', 'circle', 'path', 'clipPath'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
};

Museum.number = (value) => (value === null ? '–' : value.toLocaleString('en-US'));
/* Fences are long: of a long one the last digits, so many that all before them are the same in all. */
Museum.fence = (fence, all = [fence]) => {
  const texts = all.filter(Boolean).map(String);
  let digits = 4;
  while (texts.some((one) => one.slice(0, -digits) !== texts[0].slice(0, -digits))) digits++;
  return fence > 999999 && String(fence).length > digits ? `…${String(fence).slice(-digits)}` : String(fence);
};

Museum.view = (() => {
  const { make, number, fence } = Museum;
  const RING = 2 * Math.PI * 15;
  const fencesOf = ({ events }) => events.map((event) => event[4]);

  const keySign = () => make('span', { class: 'key' },
    make('svg', { viewBox: '0 0 40 40', 'aria-hidden': 'true' },
      make('circle', { class: 'ring-back', cx: 20, cy: 20, r: 15 }),
      make('circle', { class: 'ring', cx: 20, cy: 20, r: 15, transform: 'rotate(-90 20 20)' }),
      make('path', { class: 'bit', d: 'M15 20a4 4 0 1 1 0 .1M19 20h10v4M25 20v3' })));

  const term = (word) => make('div', {}, make('dt', {}, word), make('dd', {}));

  function client(words, record, who) {
    const instance = record.instances > 1 ? (who === 'A' ? 'shop-1' : 'shop-2') : '';
    return make('div', { class: 'client', 'data-who': who },
      make('p', { class: 'name' }, words[`p.${who}`] || who, make('small', {}, ` ${record.names ? record.names[who] : /^[ABC]$/.test(who) ? instance : ''}`)),
      make('p', { class: 'doing' }),
      make('dl', {}, term(words['p.has-read']), term(words['p.will-write']), term(words['p.fence'])));
  }

  function build(record, words) {
    const stage = make('div', { class: 'stage', role: 'img' });
    stage.append(
      make('div', { class: 'clients' }, ...record.clients.map((who) => client(words, record, who))),
      make('div', { class: 'lock' }, make('b', {}, record.lock ? words['p.lock'] : words['p.no-lock']),
        make('code', {}, record.guard), make('span', { class: 'queue' })),
      make('div', { class: 'row' }, make('b', {}, words['p.row']),
        make('span', { class: 'value' }), make('span', { class: 'version' }), make('span', { class: 'last-fence' }),
        make('span', { class: 'over' })));
    stage.querySelector('.row').hidden = !record.row;
    return stage;
  }

  function drawClient(element, one, record, state, words) {
    const [read, write, number_] = element.querySelectorAll('dd');
    const stale = one.read !== null && one.seen !== state.row.writers.length && !/committed|released/.test(one.doing) && !one.answer;
    const mistaken = one.holds && !state.keys.some((key) => key.who === one.who);
    let doing = one.answer === 'no answer' ? words['p.no-answer'] : one.answer ? `${words['p.answer']} ${one.answer}` : words[`p.${one.doing === 'asks' && !record.lock ? 'goes-in' : one.doing}`] || '';
    if (mistaken) doing += ` · ${words['p.mistaken']}`;
    if (one.stopped) doing = words['p.stopped'];
    if (one.held) doing = words['p.held'];
    if (one.killed) doing = words['p.killed'];
    element.classList.toggle('holds', one.holds);
    element.classList.toggle('clash', one.holds && (state.clash || mistaken));
    element.classList.toggle('waits', one.waits);
    element.classList.toggle('stopped', one.stopped || one.held);
    element.classList.toggle('killed', one.killed);
    element.classList.toggle('stale', stale);
    element.classList.toggle('acts', state.acted === one.who);
    element.querySelector('.doing').textContent = doing;
    read.textContent = one.read === null ? '' : number(one.read) + (stale ? ` (${words['p.stale']})` : '');
    write.textContent = one.write === null ? '' : number(one.write);
    number_.textContent = one.fence ? fence(one.fence, fencesOf(record)) : '';
    number_.parentElement.hidden = !record.events.some((event) => event[4]);
  }

  /* The key stands on the card of its holder, or on the lock if nobody has it. */
  function place(stage, key, target) {
    const home = stage.getBoundingClientRect(), to = target.getBoundingClientRect();
    key.style.transform = `translate(${to.right - home.left - key.offsetWidth - 5}px, ${to.top - home.top + 4}px)`;
  }

  function drawKeys(stage, record, state) {
    const keys = [...stage.querySelectorAll('.key')];
    const least = record.partial ? 0 : 1; // nobody knows whether it is free
    const wanted = record.lock ? Math.max(least, state.keys.length) : 0;
    while (keys.length < wanted) keys.push(stage.appendChild(keySign()));
    while (keys.length > wanted) keys.pop().remove();
    keys.forEach((key, i) => {
      const held = state.keys[i];
      const left = held && record.lease_ms ? 1 - (state.t - held.t) / (record.lease_ms * 1000) : 1;
      key.classList.toggle('free', !held);
      key.classList.toggle('ended', left <= 0);
      key.querySelector('.ring').style.strokeDasharray = `${Math.max(0, Math.min(1, left)) * RING} ${RING}`;
      place(stage, key, held ? stage.querySelector(`[data-who="${held.who}"]`) : stage.querySelector('.lock'));
    });
  }

  function draw(stage, record, state, words) {
    record.clients.forEach((who) =>
      drawClient(stage.querySelector(`[data-who="${who}"]`), state.clients[who], record, state, words));
    const waiting = record.clients.filter((who) => state.clients[who].waits);
    const { row } = state, nameOf = (who) => (record.clients.includes(who) ? who : words[`p.${who}`] || who);
    stage.querySelector('.queue').textContent = waiting.length ? `${words['p.queue']} ${waiting.join(', ')}` : '';
    stage.querySelector('.lock').classList.toggle('clash', state.clash);
    stage.querySelector('.row').classList.toggle('over', row.over !== '');
    stage.querySelector('.value').textContent = number(row.value);
    stage.querySelector('.version').textContent = record.partial ? words['p.partial'] : `${words['p.version']} ${row.version}`;
    stage.querySelector('.last-fence').textContent = record.fence && row.fence ? `${words['p.fence']} ${fence(row.fence, fencesOf(record))}` : '';
    stage.querySelector('.row .over').textContent = row.over ? words['p.over'].replace('{by}', row.by).replace('{over}', nameOf(row.over)) : '';
    drawKeys(stage, record, state);
  }

  /* Time is drawn by the logarithm of each gap: a lease lasts a thousand times longer than a read. */
  function places(record) {
    let at = 0;
    const marks = record.events.map(([t], i) => {
      at += i ? 1 + Math.log10(1 + (t - record.events[i - 1][0]) / 100) * 2 : 0;
      return at;
    });
    return marks.map((mark) => (at ? (100 * mark) / at : 0));
  }

  function axis(record, beats, words) {
    const at = places(record);
    const lanes = [...record.clients, ...record.others];
    const element = make('div', { class: 'axis', 'aria-hidden': 'true' }, make('i', { class: 'now' }));
    lanes.forEach((who, row) => {
      const lane = make('div', { class: 'lane' }, make('small', {}, words[`p.${who}`] || who));
      const track = make('b', {}); // as long as the zoom says; the span shows a part of it
      lane.append(make('span', {}, track));
      let from = -1;
      record.events.forEach(([, actor, point], k) => {
        if (actor !== who) return;
        const dot = track.appendChild(make('i', { class: beats.includes(k) ? 'dot beat' : 'dot', 'data-k': k }));
        dot.style.left = `${at[k]}%`;
        if (point === 'lock.acquired' && from < 0) from = k;
        if (/lock.released|killed|^answer/.test(point) && from >= 0) {
          const bar = track.appendChild(make('i', { class: 'bar' }));
          bar.style.left = `${at[from]}%`;
          bar.style.width = `${at[k] - at[from]}%`;
          from = -1;
        }
      });
      element.append(lane);
    });
    return { element, at };
  }

  return { build, draw, axis };
})();
