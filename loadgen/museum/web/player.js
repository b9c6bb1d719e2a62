/* Plays the records of a page: by scrolling, by keys, by itself. Each step has an address:
 * #SCENE/STEP. Tells the scripts before it what it does, by events at the section of the scene:
 *   museum:open  a player is made      museum:step  the user or time has moved it
 * Both have the player as their detail. */
'use strict';

Museum.player = (() => {
  const { make, state, view } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const SPEEDS = [[4, '1/4'], [1, '1'], [0.4, '2½']];
  const players = new Map();
  const ADDRESS_MS = 200; // browsers count changes of the address, and ignore too many
  let address = 0;
  let current = null;
  let scrolled = false; // the last thing that the user did

  const SHAPES = {
    first: 'M6 5v14M18 5L8 12l10 7z', back: 'M17 5L7 12l10 7z', play: 'M7 4l12 8-12 8z',
    pause: 'M8 5v14M16 5v14', on: 'M7 5l10 7-10 7z', beat: 'M6 5l10 7-10 7zM18 5v14',
  };

  function show(element, name) {
    element.replaceChildren(make('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' }, make('path', { d: SHAPES[name] })));
    element.setAttribute('aria-label', words[`p.${name}`]);
    element.title = words[`p.${name}`];
  }

  const announce = (player, what) =>
    player.section.dispatchEvent(new CustomEvent(`museum:${what}`, { bubbles: true, detail: player }));

  function button(name, act) {
    const element = make('button', { type: 'button', 'data-do': name });
    show(element, name);
    element.addEventListener('click', act);
    return element;
  }

  function speedChoice(player) {
    const select = make('select', { 'aria-label': words['p.speed'] },
      ...SPEEDS.map(([value, text]) => make('option', { value }, `${text}×`)));
    select.value = '1';
    select.addEventListener('change', () => { player.speed = Number(select.value); });
    return select;
  }

  function controls(player) {
    const range = make('input', { type: 'range', min: 0, max: player.record.events.length - 1, value: 0, 'aria-label': words['p.scrub'] });
    range.addEventListener('input', () => { stop(player); go(player, Number(range.value)); });
    return make('div', { class: 'controls' },
      button('first', () => go(player, 0)),
      button('back', () => { stop(player); go(player, player.k - 1); }),
      button('play', () => toggle(player)),
      button('on', () => { stop(player); go(player, player.k + 1); }),
      button('beat', () => beat(player)),
      range, speedChoice(player));
  }

  function open(section) {
    const record = JSON.parse(section.querySelector('.record').textContent);
    const lines = [...section.querySelectorAll('.trace > li')];
    const beats = lines.flatMap((line, k) => (line.classList.contains('beat') ? [k] : []));
    const player = { section, record, lines, beats, k: -1, speed: 1, timer: 0, scrollStep: -1 };
    const { element, at } = view.axis(record, beats, words);
    player.at = at;
    player.stage = view.build(record, words);
    player.caption = make('p', { class: 'caption', 'aria-live': 'polite' });
    player.command = make('pre', { class: 'command' });
    player.axis = element;
    const desk = section.querySelector('.desk');
    desk.append(player.stage, player.caption, controls(player), element, player.command);
    desk.hidden = false;
    element.addEventListener('click', ({ clientX }) => {
      const track = element.querySelector('.lane span').getBoundingClientRect();
      const percent = (100 * (clientX - track.left)) / track.width;
      const near = at.reduce((best, mark, k) => (Math.abs(mark - percent) < Math.abs(at[best] - percent) ? k : best), 0);
      stop(player);
      go(player, near);
    });
    lines.forEach((line, k) => line.addEventListener('click', () => { stop(player); go(player, k); }));
    players.set(section.id, player);
    announce(player, 'open');
    go(player, 0, true);
    new ResizeObserver(() => draw(player)).observe(player.stage);
    return player;
  }

  const draw = (player) => view.draw(player.stage, player.record, state(player.record, player.k), words);

  function tell(player) {
    const line = player.lines[player.k];
    const told = [...player.lines].slice(0, player.k + 1).reverse().find((one) => one.classList.contains('beat'));
    player.caption.textContent = told ? told.querySelector('.told').textContent : line.querySelector('.fact').textContent;
    player.stage.setAttribute('aria-label', line.querySelector('.fact').textContent);
    const point = player.record.events[player.k][2];
    player.command.textContent = player.record.commands[point] || '';
    player.lines.forEach((one, k) => {
      one.classList.toggle('now', k === player.k);
      one.classList.toggle('past', k < player.k);
    });
    line.setAttribute('aria-current', 'step');
    player.lines.filter((one) => one !== line).forEach((one) => one.removeAttribute('aria-current'));
    player.section.classList.toggle('over', player.k === player.lines.length - 1);
  }

  function go(player, k, quiet) {
    player.k = Math.max(0, Math.min(player.record.events.length - 1, k));
    draw(player);
    tell(player);
    player.axis.querySelector('.now').style.setProperty('--at', player.at[player.k]);
    player.section.querySelector('[type=range]').value = player.k;
    if (quiet) return;
    choose(player);
    announce(player, 'step');
    clearTimeout(address);
    address = setTimeout(() => history.replaceState(null, '', `#${player.section.id}/${player.k}`), ADDRESS_MS);
    keepInView(player);
  }

  /* The trace scrolls within its box, so that the page stays where it is. */
  function keepInView(player) {
    const line = player.lines[player.k], box = line.parentElement;
    if (box.scrollHeight > box.clientHeight)
      box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 2;
  }

  function choose(player) {
    if (current && current !== player) stop(current);
    current = player;
    players.forEach((one) => one.section.classList.toggle('current', one === player));
  }

  function beat(player) {
    const next = player.beats.find((k) => k > player.k);
    const last = player.record.events.length - 1;
    stop(player);
    if (player.k === last) return leave(player);
    go(player, next === undefined ? last : next);
  }

  /* A scene is taller than the window while its picture stays: how far it is scrolled is a beat. */
  function byScroll() {
    if (!scrolled) return;
    players.forEach((player) => {
      const { top, bottom, height } = player.section.getBoundingClientRect();
      const room = height - innerHeight;
      if (top > 1 || bottom < innerHeight || room < 50) return;
      const step = Math.floor((-top / room) * (player.beats.length + 1));
      if (step === player.scrollStep) return;
      player.scrollStep = step;
      stop(player);
      go(player, step === 0 ? 0 : player.beats[Math.min(step, player.beats.length) - 1]);
    });
  }

  /* After the last event of a scene comes the next scene that is not hidden. */
  function leave(player) {
    const sections = [...document.querySelectorAll('.exhibit:not([hidden])')];
    const next = sections[sections.indexOf(player.section) + 1];
    if (!next) return;
    enter(next, 0);
  }

  function enter(section, k, jumps) {
    if (section.tagName === 'DETAILS') section.open = true;
    const player = players.get(section.id) || open(section);
    section.scrollIntoView({ behavior: still.matches || jumps ? 'auto' : 'smooth', block: 'start' });
    scrolled = false;
    go(player, k);
  }

  function stop(player) {
    clearTimeout(player.timer);
    player.timer = 0;
    show(player.section.querySelector('[data-do=play]'), 'play');
  }

  function toggle(player) {
    if (player.timer) return stop(player);
    if (player.k === player.record.events.length - 1) go(player, 0);
    show(player.section.querySelector('[data-do=play]'), 'pause');
    player.timer = setTimeout(() => advance(player), 300);
  }

  function advance(player) {
    go(player, player.k + 1);
    if (player.k === player.record.events.length - 1) return stop(player);
    const told = player.beats.includes(player.k) ? 1600 : 0;
    const gap = player.record.events[player.k + 1][0] - player.record.events[player.k][0];
    player.timer = setTimeout(() => advance(player), player.speed * (told + 150 + 120 * Math.log10(1 + gap / 100)));
  }

  const keys = {
    ' ': beat, ArrowRight: (p) => { stop(p); go(p, p.k + 1); }, ArrowLeft: (p) => { stop(p); go(p, p.k - 1); },
    Home: (p) => { stop(p); go(p, 0); }, End: (p) => { stop(p); go(p, p.record.events.length - 1); }, p: toggle,
  };

  function onKey(event) {
    if (/^(Page|ArrowUp|ArrowDown)/.test(event.key)) scrolled = true;
    const busy = event.target.closest('button, input, select, summary, a, textarea');
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey || busy) return;
    if (!current) {
      const first = document.querySelector('.exhibit:not([hidden])');
      if (event.key === ' ' && first) { event.preventDefault(); enter(first, 0); }
      return;
    }
    event.preventDefault();
    scrolled = false;
    keys[event.key](current);
  }

  /* #late/12, or #late */
  function fromAddress() {
    const [id, k] = decodeURIComponent(location.hash.slice(1)).split('/');
    const section = id && document.getElementById(id);
    if (section && section.matches('.exhibit') && section.querySelector('.record')) enter(section, Number(k) || 0, true);
  }

  function start() {
    const seen = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
      if (isIntersecting && !players.has(target.id)) open(target);
      if (isIntersecting && scrolled) choose(players.get(target.id));
    }), { rootMargin: '-30% 0px -30% 0px' });
    document.querySelectorAll('section.exhibit').forEach((section) => {
      section.style.setProperty('--beats', section.querySelectorAll('.beat').length);
      if (section.querySelector('.record')) seen.observe(section);
    });
    document.querySelectorAll('details.exhibit').forEach((section) =>
      section.addEventListener('toggle', () => { if (section.open && !players.has(section.id)) choose(open(section)); }));
    ['wheel', 'touchmove'].forEach((name) => addEventListener(name, () => { scrolled = true; }, { passive: true }));
    addEventListener('pointerdown', ({ target }) => { if (target === document.documentElement) scrolled = true; });
    addEventListener('scroll', byScroll, { passive: true });
    addEventListener('keydown', onKey);
    addEventListener('hashchange', fromAddress);
    document.querySelectorAll('details.exhibit[open]').forEach((section) => open(section));
    fromAddress();
  }

  start();
  return { players, enter, go, stop };
})();
