/* A player of one record: stage, caption, controls, axis, and the lines of its trace, which its page
 * has written. It knows nothing else of the page. */
'use strict';

Museum.desk = (() => {
  const { make, state, view } = Museum;
  const SPEEDS = [[4, '1/4'], [1, '1'], [0.4, '2½']];
  const SHAPES = {
    first: 'M6 5v14M18 5L8 12l10 7z', back: 'M17 5L7 12l10 7z', play: 'M7 4l12 8-12 8z',
    pause: 'M8 5v14M16 5v14', on: 'M7 5l10 7-10 7z', beat: 'M6 5l10 7-10 7zM18 5v14',
  };

  function show(player, element, name) {
    element.replaceChildren(make('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' }, make('path', { d: SHAPES[name] })));
    element.setAttribute('aria-label', player.words[`p.${name}`]);
    element.title = player.words[`p.${name}`];
  }

  const showPlay = (player, name) => show(player, player.section.querySelector('[data-do=play]'), name);

  function button(player, name, act) {
    const element = make('button', { type: 'button', 'data-do': name });
    show(player, element, name);
    element.addEventListener('click', () => act(player));
    return element;
  }

  function speedChoice(player) {
    const select = make('select', { 'aria-label': player.words['p.speed'] },
      ...SPEEDS.map(([value, text]) => make('option', { value }, `${text}×`)));
    select.value = '1';
    select.addEventListener('change', () => { player.speed = Number(select.value); });
    return select;
  }

  const last = (player) => player.record.events.length - 1;
  const draw = (player) => view.draw(player.stage, player.record, state(player.record, player.k), player.words);

  function controls(player) {
    const range = make('input', { type: 'range', min: 0, max: last(player), value: 0, 'aria-label': player.words['p.scrub'] });
    range.addEventListener('input', () => seek(player, Number(range.value)));
    return make('div', { class: 'controls' },
      button(player, 'first', (p) => seek(p, 0)),
      button(player, 'back', (p) => seek(p, p.k - 1)),
      button(player, 'play', toggle),
      button(player, 'on', (p) => seek(p, p.k + 1)),
      button(player, 'beat', beat),
      range, speedChoice(player));
  }

  function seekOnAxis(player, clientX) {
    const whole = player.axis.querySelector('.lane:not([hidden]) b').getBoundingClientRect(), { at } = player;
    const percent = (100 * (clientX - whole.left)) / whole.width;
    seek(player, at.reduce((best, mark, k) => (Math.abs(mark - percent) < Math.abs(at[best] - percent) ? k : best), 0));
  }

  /* section: has a .desk, and a .trace with one line for each event of the record. moved(player): called
   * after each step that is not quiet. beyond(player): the next beat is wanted after the last event. */
  function open(section, record, words, { moved = () => {}, beyond = () => {} } = {}) {
    const lines = [...section.querySelectorAll('.trace > li')];
    const beats = lines.flatMap((line, k) => (line.classList.contains('beat') ? [k] : []));
    const player = { section, record, words, lines, beats, moved, beyond, k: -1, speed: 1, timer: 0 };
    const { element, at } = view.axis(record, beats, words);
    Object.assign(player, {
      at, axis: element, stage: view.build(record, words),
      caption: make('p', { class: 'caption', 'aria-live': 'polite' }),
      command: make('pre', { class: 'command' }),
    });
    const desk = section.querySelector('.desk');
    desk.append(player.stage, player.caption, controls(player), element, player.command);
    desk.hidden = false;
    element.addEventListener('click', ({ clientX }) => seekOnAxis(player, clientX));
    lines.forEach((line, k) => line.addEventListener('click', () => seek(player, k)));
    go(player, 0, true);
    new ResizeObserver(() => draw(player)).observe(player.stage);
    return player;
  }

  function tell(player) {
    const line = player.lines[player.k];
    const told = player.lines.slice(0, player.k + 1).reverse().find((one) => one.classList.contains('beat'));
    player.caption.textContent = told ? told.querySelector('.told').textContent : line.querySelector('.fact').textContent;
    player.stage.setAttribute('aria-label', line.querySelector('.fact').textContent);
    player.command.textContent = player.record.commands[player.record.events[player.k][2]] || '';
    player.lines.forEach((one, k) => {
      one.classList.toggle('now', k === player.k);
      one.classList.toggle('past', k < player.k);
      one.removeAttribute('aria-current');
    });
    line.setAttribute('aria-current', 'step');
    player.section.classList.toggle('over', player.k === last(player));
  }

  /* The trace scrolls within its box, so that the page stays where it is. */
  function keepInView(player) {
    const line = player.lines[player.k], box = line.parentElement;
    if (box.scrollHeight > box.clientHeight)
      box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 2;
  }

  function go(player, k, quiet) {
    player.k = Math.max(0, Math.min(last(player), k));
    draw(player);
    tell(player);
    player.axis.querySelector('.now').style.setProperty('--at', player.at[player.k]);
    player.section.querySelector('[type=range]').value = player.k;
    if (quiet) return;
    player.moved(player);
    keepInView(player);
  }

  function seek(player, k) {
    stop(player);
    go(player, k);
  }

  function beat(player) {
    const next = player.beats.find((k) => k > player.k);
    if (player.k === last(player)) {
      stop(player);
      return player.beyond(player);
    }
    return seek(player, next === undefined ? last(player) : next);
  }

  function stop(player) {
    clearTimeout(player.timer);
    player.timer = 0;
    showPlay(player, 'play');
  }

  function toggle(player) {
    if (player.timer) return stop(player);
    if (player.k === last(player)) go(player, 0);
    showPlay(player, 'pause');
    player.timer = setTimeout(() => advance(player), 300);
    return undefined;
  }

  function advance(player) {
    go(player, player.k + 1);
    if (player.k === last(player)) return stop(player);
    const told = player.beats.includes(player.k) ? 1600 : 0;
    const gap = player.record.events[player.k + 1][0] - player.record.events[player.k][0];
    player.timer = setTimeout(() => advance(player), player.speed * (told + 150 + 120 * Math.log10(1 + gap / 100)));
    return undefined;
  }

  /* What a key does, by its name. */
  const keys = {
    ' ': beat, ArrowRight: (p) => seek(p, p.k + 1), ArrowLeft: (p) => seek(p, p.k - 1),
    Home: (p) => seek(p, 0), End: (p) => seek(p, last(p)), p: toggle,
  };

  /* A key that is pressed on something which needs it itself, or together with another, is not ours. */
  const isOurs = (event) => keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey &&
    !event.target.closest('button, input, select, summary, a, textarea');

  return { open, go, seek, beat, stop, draw, keys, isOurs };
})();
