/* Plays the records of a page: by scrolling, by keys, by itself. Each step has an address:
 * #SCENE/STEP. Tells the scripts before it what it does, by events at the section of the scene:
 *   museum:open  a player is made      museum:step  the user or time has moved it
 * Both have the player as their detail. */
'use strict';

Museum.player = (() => {
  const { desk } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const players = new Map();
  const ADDRESS_MS = 200; // browsers count changes of the address, and ignore too many
  let address = 0;
  let current = null;
  let scrolled = false; // the last thing that the user did

  const announce = (player, what) =>
    player.section.dispatchEvent(new CustomEvent(`museum:${what}`, { bubbles: true, detail: player }));

  function open(section) {
    const record = JSON.parse(section.querySelector('.record').textContent);
    const player = desk.open(section, record, words, { moved, beyond: leave });
    player.scrollStep = -1;
    players.set(section.id, player);
    announce(player, 'open');
    return player;
  }

  function moved(player) {
    choose(player);
    announce(player, 'step');
    clearTimeout(address);
    address = setTimeout(() => history.replaceState(null, '', `#${player.section.id}/${player.k}`), ADDRESS_MS);
  }

  function choose(player) {
    if (current && current !== player) desk.stop(current);
    current = player;
    players.forEach((one) => one.section.classList.toggle('current', one === player));
  }

  /* A scene is taller than the window while its picture stays: how far it is scrolled is a beat. */
  function byScroll() {
    if (!scrolled || document.documentElement.classList.contains('solo')) return; // one scene alone: no place is a beat
    players.forEach((player) => {
      const { top, bottom, height } = player.section.getBoundingClientRect();
      const room = height - innerHeight;
      if (top > 1 || bottom < innerHeight || room < 50) return;
      const step = Math.floor((-top / room) * (player.beats.length + 1));
      if (step === player.scrollStep) return;
      player.scrollStep = step;
      desk.seek(player, step === 0 ? 0 : player.beats[Math.min(step, player.beats.length) - 1]);
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
    desk.go(player, k);
  }

  function onKey(event) {
    if (/^(Page|ArrowUp|ArrowDown)/.test(event.key)) scrolled = true;
    if (!desk.isOurs(event)) return;
    if (!current) {
      const first = document.querySelector('.exhibit:not([hidden])');
      if (event.key === ' ' && first) { event.preventDefault(); enter(first, 0); }
      return;
    }
    event.preventDefault();
    scrolled = false;
    desk.keys[event.key](current);
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
  return { players, enter, go: desk.go, stop: desk.stop };
})();
