/* Zooms into a span of the axis of time: a drag over it (brush), the keys + - 0, buttons, and Ctrl
 * with the wheel. Lanes and list show the events of that span. A long list folds what lies between
 * two beats. */
'use strict';

Museum.zoom = (() => {
  const { make } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const FOLD_FROM = 60; // events; a shorter list is shown as it is
  const DRAG_PX = 5;
  const EVENTS_SEEN = 4; // of the average span at the largest zoom
  const fill = (text, values) => text.replace(/{(\w+)}/g, (all, name) => values[name]);
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  const isSeen = ({ zoom: { from, times } }, at) => at >= from - 1e-6 && at <= from + 100 / times + 1e-6;

  function tell(player) {
    const { zoom, at, record: { events } } = player;
    const seen = events.map((_, k) => k).filter((k) => isSeen(player, at[k]));
    const [first, last] = [seen[0], seen.at(-1)];
    const ms = (k) => (events[k][0] / 1000).toFixed(1);
    zoom.says.textContent = first === undefined ? ''
      : fill(words['p.span'], { from: ms(first), to: ms(last), first, last, end: events.length - 1 });
    zoom.bar.querySelector('[data-do=zoom-all]').disabled = zoom.times === 1;
    zoom.bar.querySelector('[data-do=zoom-out]').disabled = zoom.times === 1;
    zoom.bar.querySelector('[data-do=zoom-in]').disabled = zoom.times === zoom.most;
  }

  /* Which lines of the list are shown: those of the span, without what is folded. */
  function list(player) {
    const { zoom, lines, at } = player;
    lines.forEach((line, k) => { line.hidden = !isSeen(player, at[k]); });
    zoom.folds.forEach(({ from, to, more, open }) => {
      const opened = open || (player.k >= from && player.k < to);
      more.setAttribute('aria-expanded', opened);
      for (let k = from; k < to && !opened; k++) lines[k].hidden = true;
    });
  }

  /* A lane without events in the span is hidden, unless all are without. */
  function hideLanes({ axis, at, zoom }) {
    const lanes = [...axis.querySelectorAll('.lane')];
    const acts = lanes.map((lane) => [...lane.querySelectorAll('.dot')].some(({ dataset }) => isSeen({ zoom }, at[dataset.k])));
    lanes.forEach((lane, i) => { lane.hidden = acts.includes(true) && !acts[i]; });
  }

  function show(player, from, times) {
    const { zoom } = player;
    zoom.times = clamp(times, 1, zoom.most);
    zoom.from = clamp(from, 0, 100 - 100 / zoom.times);
    player.axis.style.setProperty('--zoom', zoom.times);
    player.axis.style.setProperty('--from', zoom.from);
    player.axis.classList.toggle('away', !isSeen(player, player.at[player.k]));
    hideLanes(player);
    tell(player);
    list(player);
  }

  /* The place at center, in percent of the whole, stays where it is. */
  function scale(player, factor, center = player.at[player.k]) {
    const { from, times, most } = player.zoom;
    const next = clamp(times * factor, 1, most);
    show(player, center - ((center - from) * times) / next, next);
  }

  const all = (player) => show(player, 0, 1);

  /* -- the pointer ----------------------------------------------------------------------------- */

  function placeOf(player, clientX) {
    const whole = player.axis.querySelector('.lane:not([hidden]) b').getBoundingClientRect();
    const { from, times } = player.zoom;
    return clamp((100 * (clientX - whole.left)) / whole.width, from, from + 100 / times);
  }

  function drawBrush({ zoom, axis }, one, other) {
    const whole = axis.querySelector('.lane:not([hidden]) b').getBoundingClientRect();
    const x = (place) => whole.left - axis.getBoundingClientRect().left + (place * whole.width) / 100;
    const [left, right] = [x(one), x(other)].sort((a, b) => a - b);
    zoom.brush.style.left = `${left}px`;
    zoom.brush.style.width = `${right - left}px`;
  }

  function brush(player) {
    const { axis, zoom } = player;
    let start = null, dragged = false;
    axis.addEventListener('pointerdown', ({ button: pressed, clientX, pointerId }) => {
      if (pressed !== 0) return;
      axis.setPointerCapture(pointerId);
      start = { x: clientX, place: placeOf(player, clientX) };
      dragged = false;
    });
    axis.addEventListener('pointermove', ({ clientX }) => {
      if (!start) return;
      dragged = dragged || Math.abs(clientX - start.x) >= DRAG_PX;
      zoom.brush.hidden = !dragged;
      drawBrush(player, start.place, placeOf(player, clientX));
    });
    axis.addEventListener('pointerup', ({ clientX }) => {
      const ends = start && [start.place, placeOf(player, clientX)].sort((a, b) => a - b);
      start = null;
      zoom.brush.hidden = true;
      if (ends && dragged) show(player, ends[0], 100 / Math.max(0.01, ends[1] - ends[0]));
    });
    axis.addEventListener('click', (event) => { if (dragged) event.stopImmediatePropagation(); }, true);
    axis.addEventListener('pointercancel', () => { start = null; zoom.brush.hidden = true; });
    axis.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return; // the page scrolls, and tells its story by that
      event.preventDefault();
      scale(player, event.deltaY < 0 ? 1.25 : 0.8, placeOf(player, event.clientX));
    }, { passive: false });
  }

  /* -- the list -------------------------------------------------------------------------------- */

  function fold(player, from, to) {
    const host = player.lines[Math.max(0, from - 1)];
    const group = { from: Math.max(1, from), to, open: false };
    group.more = make('button', { type: 'button', class: 'more' }, fill(words['p.more'], { n: group.to - group.from }));
    group.more.addEventListener('click', (event) => {
      event.stopPropagation();
      group.open = !group.open;
      list(player);
    });
    host.append(' ', group.more);
    player.zoom.folds.push(group);
  }

  /* A group is two or more lines between two beats. */
  function foldAll(player) {
    const { lines, beats } = player;
    if (lines.length < FOLD_FROM) return;
    [-1, ...beats].forEach((beat, i) => {
      const end = i < beats.length ? beats[i] : lines.length;
      if (end - beat > 2) fold(player, beat + 1, end);
    });
  }

  /* -- hooks ----------------------------------------------------------------------------------- */

  function button(name, text, act) {
    const element = make('button', { type: 'button', 'data-do': name, 'aria-label': words[`p.${name}`], title: words[`p.${name}`] }, text);
    element.addEventListener('click', act);
    return element;
  }

  addEventListener('museum:open', ({ detail: player }) => {
    player.zoom = { from: 0, times: 1, most: Math.max(1, player.at.length / EVENTS_SEEN), folds: [] };
    player.zoom.says = make('span', { role: 'status' });
    player.zoom.brush = player.axis.appendChild(make('i', { class: 'brush', hidden: '' }));
    player.zoom.bar = make('div', { class: 'zoom' },
      button('zoom-in', '+', () => scale(player, 2)), button('zoom-out', '−', () => scale(player, 0.5)),
      button('zoom-all', '0', () => all(player)), player.zoom.says);
    player.axis.before(player.zoom.bar);
    player.axis.querySelectorAll('[data-k]').forEach((dot) => {
      const k = Number(dot.dataset.k);
      dot.title = `${(player.record.events[k][0] / 1000).toFixed(1)} ms: ${player.lines[k].querySelector('.fact').textContent}`;
    });
    brush(player);
    foldAll(player);
    show(player, 0, 1);
  });

  addEventListener('museum:step', ({ detail: player }) => {
    const { from, times } = player.zoom;
    const place = player.at[player.k];
    show(player, isSeen(player, place) ? from : place - 50 / times, times);
  });

  const keys = { '+': (p) => scale(p, 2), '=': (p) => scale(p, 2), '-': (p) => scale(p, 0.5), 0: all };

  addEventListener('keydown', (event) => {
    const section = document.querySelector('.exhibit.current');
    if (!keys[event.key] || !section || event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return;
    event.preventDefault();
    keys[event.key](Museum.player.players.get(section.id));
  });

  return { show, all };
})();
