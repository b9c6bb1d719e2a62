/* Levels: whoever plays chooses the order of the moves, and each choice leads to a run that was recorded.
 * Each level stands in its section, which has its texts and its solution without this script. */
'use strict';

Museum.levels = (() => {
  const { make, number, state, view, tree } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const { told, levels } = Museum.levelData;
  const MOVE_MS = 900, LEASE = 'L';
  const games = new Map();
  let current = null;

  const fill = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === 'number' ? number(values[name]) : values[name]));
  const say = (key, values) => fill(words[`level.${key}`], values);
  const nameOf = (who) => (who === LEASE ? say('lease') : who);
  const loses = (run) => run.final !== run.expected;
  const counted = (moves) => [...moves].filter((who) => who !== LEASE).length;

  /* -- a level, as recorded ------------------------------------------------------------------------ */

  const runWith = ({ runs }, moves) => runs.find((run) => run.moves.startsWith(moves));

  function movable(level, moves) {
    const next = level.runs.filter((run) => run.moves.startsWith(moves)).map((run) => run.moves[moves.length]);
    return new Set(next.filter((who) => who));
  }

  function sentence(events, k) {
    const [, who, point, value] = events[k];
    const read = events.slice(0, k).filter((event) => event[1] === who && event[2] === 'read').pop();
    const key = point === 'committed' && read && read[3] === value ? 'stored' : point.replace(/^answer .*/, 'answer');
    if (point === 'read' && read) return say('read-again', { who, v: value }); // as the live page tells it
    return fill(words[`at.${key}`], { who, v: value === null ? '' : value, 1: point.replace(/^answer /, '') });
  }

  /* What the nth move has done. */
  function toldOf(run, n) {
    const from = n ? run.ends[n - 1] : 0, lines = [];
    for (let k = from; k < run.ends[n]; k++)
      if (told.includes(run.events[k][2].split(' ')[0]) || told.includes(run.events[k][2])) lines.push(sentence(run.events, k));
    return lines.join(say('join'));
  }

  /* What is known of all orders. */
  function summary({ begins, schedules: n, losing }) {
    const values = { n, losing, begins: [...begins].map(nameOf).reduceRight((rest, one) => (rest ? say('list', { one, rest }) : one), '') };
    return say((losing ? 'some' : 'none') + (begins ? '-after' : ''), values);
  }

  /* -- the game ------------------------------------------------------------------------------------ */

  function button(text, act, attributes = {}) {
    const element = make('button', { type: 'button', ...attributes }, text);
    element.addEventListener('click', act);
    return element;
  }

  function go(game, moves) {
    const { level } = game, run = runWith(level, moves), n = moves.length;
    Object.assign(game, { moves, run });
    game.record = { ...level.record, events: run.events };
    draw(game);
    game.caption.textContent = n ? toldOf(run, n - 1) : say('start');
    game.stage.setAttribute('aria-label', game.caption.textContent);
    game.list.replaceChildren(...[...moves].map((who, k) => make('li', {},
      button(nameOf(who), () => user(game, moves.slice(0, Math.max(k, level.begins.length))), { title: say('to', { move: nameOf(who) }) }))));
    drawButtons(game);
    drawCount(game);
    drawResult(game);
    if (game.forest.firstChild) drawTree(game);
  }

  function draw(game) {
    const { run, moves } = game;
    view.draw(game.stage, game.record, state(game.record, moves.length ? run.ends[moves.length - 1] - 1 : -1), words);
  }

  const lostAt = ({ run, moves }) => (run.lost_at && run.lost_at <= moves.length ? counted(run.moves.slice(0, run.lost_at)) : 0);

  function drawButtons(game) {
    const can = movable(game.level, game.moves);
    game.buttons.forEach((element, who) => {
      element.disabled = !can.has(who);
      if (who !== LEASE) element.textContent = say(game.moves.includes(who) ? 'on' : 'send', { who });
    });
    game.back.disabled = game.again.disabled = game.moves.length <= game.level.begins.length;
  }

  function drawCount(game) {
    const { level, moves } = game, { fewest } = level, known = level.kind !== 'bet' || game.bet !== undefined;
    const lost = lostAt(game);
    game.count.textContent = lost ? say('won', { n: lost, fewest }) : say(!known ? 'count-open' : fewest ? 'count' : 'only', { n: counted(moves), fewest });
  }

  function proof(run) {
    const cells = (name, values) => make('tr', {}, ...values.map((value) => make(name, name === 'th' ? { scope: 'col' } : {}, value)));
    return [make('p', {}, say(loses(run) ? 'proof.lost' : 'proof.kept', run)),
      make('table', {}, make('caption', {}, say('proof.rows')),
        cells('th', ['who', 'version', 'before', 'after', 'fence'].map((name) => say(`proof.${name}`))),
        ...run.rows.map(([who, before, after, version, fence]) =>
          cells('td', [who, version, before, after, fence].map((value, i) => (typeof value === 'string' ? value : i === 4 ? (value ? Museum.fence(value, run.rows.map((row) => row[4])) : '–') : number(value))))))];
  }

  /* The outcome: at the move that loses, or when all are answered. */
  function drawResult(game) {
    const { level, run, moves } = game, lost = lostAt(game) > 0, over = moves === run.moves;
    const lesson = () => make('p', { class: 'lesson' }, words[`level.${level.id}.lesson`]);
    game.result.hidden = !lost && !over;
    game.result.className = lost ? 'result verdict unsafe' : 'result verdict safe';
    if (lost) game.result.replaceChildren(...proof(run), lesson());
    else if (over)
      game.result.replaceChildren(make('p', {}, say(level.losing ? 'over' : 'over-none')), ...proof(run),
        ...(level.losing ? [] : [make('p', {}, summary(level)), lesson()]));
  }

  /* -- all orders ---------------------------------------------------------------------------------- */

  function drawTree(game) {
    const schedules = game.level.runs.map((run) => ({ moves: run.moves, loses: loses(run) }));
    const line = ({ moves, loses: bad }) => make('li', {}, button([...moves].map(nameOf).join(' '), () => play(game, moves)),
      ` ${bad ? `✗ ${say('loses')}` : `✓ ${say('keeps')}`}`);
    const list = game.forest.querySelector('ol') || make('ol', {}, ...schedules.map(line));
    const details = game.forest.querySelector('details') || make('details', {}, make('summary', {}, say('all', { n: schedules.length })), list);
    game.forest.replaceChildren(make('p', { class: 'sum' }, summary(game.level)),
      tree.draw(schedules, { path: game.moves, pick: (moves) => play(game, moves) }),
      make('p', { class: 'keys' }, say('legend')), details);
  }

  /* Without motion it stands at the end of the loss at once. */
  function play(game, moves) {
    const run = runWith(game.level, moves), end = run.lost_at || moves.length;
    stop(game);
    choose(game);
    if (still.matches) return go(game, moves.slice(0, end));
    go(game, game.level.begins);
    const step = () => {
      go(game, moves.slice(0, game.moves.length + 1));
      game.timer = game.moves.length < end ? setTimeout(step, MOVE_MS) : 0;
    };
    game.timer = setTimeout(step, MOVE_MS);
    return undefined;
  }

  function find(game) {
    const { runs, fewest } = game.level;
    const best = runs.find((run) => run.lost_at && counted(run.moves.slice(0, run.lost_at)) === fewest);
    if (!game.forest.firstChild) drawTree(game);
    if (best) play(game, best.moves);
  }

  /* -- what the user does -------------------------------------------------------------------------- */

  function stop(game) {
    clearTimeout(game.timer);
    game.timer = 0;
  }

  function choose(game) {
    current = game;
    games.forEach((one) => one.section.classList.toggle('current', one === game));
  }

  function user(game, moves) {
    stop(game);
    choose(game);
    go(game, moves);
  }

  const move = (game, who) => { if (movable(game.level, game.moves).has(who)) user(game, game.moves + who); };
  const back = (game) => { if (game.moves.length > game.level.begins.length) user(game, game.moves.slice(0, -1)); };

  function onKey(event) {
    if (!current || event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return;
    const key = event.key.toUpperCase(), who = key === 'W' ? LEASE : key;
    if (event.key === 'Backspace') back(current);
    else if (/^[ABCL]$/.test(who) && current.buttons.has(who)) move(current, who);
    else return;
    event.preventDefault();
  }

  /* A bet is made before the first move, and is judged by all orders. */
  function betting(game) {
    const { level } = game, told_ = make('p', { role: 'status' });
    return make('div', { class: 'bet' }, ...Museum.bet.ask(say, (bet) => {
      game.bet = bet;
      told_.textContent = Museum.bet.judged(say, level, bet, summary(level));
      drawCount(game);
    }), told_);
  }

  /* The moves that lost, against another setting: as far as they go there. The lease's former holder writes
   * last, so that its fence is the older one. */
  function mending(section, level) {
    const of = games.get(level.of).level, { fewest, runs } = of, told_ = make('div', { class: 'result', role: 'status' });
    const lost = runs.find((run) => run.lost_at && run.moves[run.lost_at - 1] === 'A' && counted(run.moves.slice(0, run.lost_at)) === fewest);
    const losing = lost.moves;
    const shown = (run) => [make('ol', {}, ...[...run.moves].map((who, i) => make('li', {}, make('b', {}, nameOf(who)), ` ${toldOf(run, i)}`))), ...proof(run)];
    const common = (moves) => [...moves].findIndex((who, i) => who !== losing[i]) >>> 0;
    const against = (id) => () => {
      const chosen = games.get(id).level, { losing: bad, schedules: n } = chosen;
      const run = chosen.runs.reduce((best, one) => (common(one.moves) > common(best.moves) ? one : best));
      told_.className = `result verdict ${bad ? 'unsafe' : 'safe'}`;
      told_.replaceChildren(make('p', {}, bad ? say('not-mended', { losing: bad, n }) : `${say('mended')} ${summary(chosen)}`),
        ...shown(run), ...(bad ? [] : [make('p', { class: 'lesson' }, words[`level.${level.id}.lesson`])]));
    };
    told_.className = 'result verdict unsafe';
    told_.append(...shown(lost));
    return [make('div', { class: 'bet' }, ...level.choices.map((id) => button(words[`level.${level.id}.${id}`], against(id), { 'data-do': id }))), told_];
  }

  function open(section) {
    const level = levels.find(({ id }) => id === section.id), desk = section.querySelector('.game');
    desk.hidden = false;
    if (level.kind === 'mend') return desk.append(...mending(section, level));
    const game = { section, level, timer: 0, moves: level.begins, buttons: new Map() };
    const actors = level.record.clients.map((who) => [who, button('', () => move(game, who), { 'data-do': who })]);
    if (level.lease_ms) actors.push([LEASE, button(say('free'), () => move(game, LEASE), { 'data-do': LEASE })]);
    Object.assign(game, {
      buttons: new Map(actors), stage: view.build(level.record, words),
      caption: make('p', { class: 'caption', role: 'status' }), count: make('p', { class: 'count', role: 'status' }),
      back: button(say('back'), () => back(game), { 'data-do': 'back' }), again: button(say('again'), () => user(game, level.begins), { 'data-do': 'again' }),
      list: make('ol', { class: 'moves', 'aria-label': say('moves') }), result: make('div', { class: 'result', role: 'status' }), forest: make('div', { class: 'forest' }),
    });
    desk.append(...(level.kind === 'bet' ? [betting(game)] : []), game.stage, game.caption,
      make('div', { class: 'moving' }, ...game.buttons.values(), game.back, game.again), game.list, game.count, game.result,
      button(say('find'), () => find(game), { 'data-do': 'find' }), game.forest);
    games.set(level.id, game);
    section.addEventListener('focusin', () => choose(game));
    new ResizeObserver(() => draw(game)).observe(game.stage);
    go(game, level.begins);
    return undefined;
  }

  function start() {
    const sections = [...document.querySelectorAll('.level')];
    sections.forEach(open);
    let scrolled = false; // else a level comes to the middle because the page is laid out: what was chosen stands
    addEventListener('scroll', () => { scrolled = true; }, { passive: true });
    const seen = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
      if (isIntersecting && games.has(target.id) && (scrolled || !current)) choose(games.get(target.id));
    }), { rootMargin: '-40% 0px -40% 0px' });
    sections.forEach((section) => seen.observe(section));
    addEventListener('keydown', onKey);
  }

  start();
  return { games, go };
})();
