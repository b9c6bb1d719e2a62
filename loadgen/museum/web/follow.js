/* A class that goes along, on the pages that `loadgen follow` serves.
 * ?follow: this page shows what the presenter's shows. Who steps on their own stays there until "Go
 * along again". It tells the presenter nothing.
 * ?present&key=KEY: this page is the presenter's. It tells the class where it is, and shows its
 * address, as text and as QR code, and how many follow. Q: the code, large. */
'use strict';

(() => {
  const { make } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const WAIT_MS = 30000, RETRY_MS = 1000, FULL_MS = 5000, LOOK_MS = 1000;
  const KEY = 'class-key';
  const query = new URLSearchParams(location.search);
  const root = new URL('.', document.currentScript.src);
  const isServed = /^https?:$/.test(location.protocol);
  const fill = (text, values) => text.replace(/{(\w+)}/g, (all, name) => values[name]);
  const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });
  const inLanguage = document.documentElement.lang === 'zh' ? 'zh/' : '';
  /* Of both languages: "index.html", "lesson/late.html". */
  const page = location.pathname.slice(root.pathname.length).replace(/^zh\//, '') || 'index.html';

  /* -- a phone --------------------------------------------------------------------------------- */

  function follow() {
    let at = null; // where the presenter is
    let away = false; // the reader looks elsewhere
    let going = false; // the step is the presenter's
    const says = make('span', { role: 'status' }, words['p.f-waiting']);
    const again = make('button', { type: 'button', hidden: '' }, words['p.f-again']);
    document.body.prepend(make('aside', { id: 'class', 'aria-label': words['p.class'] }, says, again));
    Museum.embed.solo('follow');

    const isThere = ({ section, k }) => page === at.page && section.id === at.scene && k === at.step;

    function show() {
      again.hidden = !away;
      says.textContent = words[!at ? 'p.f-waiting' : away ? 'p.f-away' : 'p.f-along'];
    }

    function go() {
      if (at.page !== page) {
        location.replace(`${new URL(inLanguage + at.page, root)}?follow#${at.scene}/${at.step}`);
        return;
      }
      const section = document.getElementById(at.scene), player = Museum.player.players.get(at.scene);
      if (!section || !section.querySelector('.record')) return;
      going = true;
      if (player && section.matches('.current')) {
        Museum.player.stop(player);
        Museum.player.go(player, at.step);
      } else Museum.player.enter(section, at.step, true);
      going = false;
    }

    again.addEventListener('click', () => { away = false; go(); show(); });
    addEventListener('museum:step', ({ detail }) => {
      document.documentElement.classList.add('begun');
      if (going || !at) return;
      away = !isThere(detail);
      show();
    });

    function heard(told) {
      at = told.at || null;
      if (at && !away) go();
      show();
    }

    /* What the class is told next; null, after a pause: nothing came. */
    async function next(after) {
      let why = 'p.f-lost';
      try {
        const answer = await fetch(new URL(`class/state?after=${after}`, root), { cache: 'no-store', signal: AbortSignal.timeout(WAIT_MS) });
        if (answer.ok) return await answer.json();
        if (answer.status === 503) why = 'p.f-full';
      } catch (broken) {
        // the class is away, or this page was: why says so
      }
      says.textContent = words[why];
      await pause(why === 'p.f-full' ? FULL_MS : RETRY_MS);
      return null;
    }

    async function listen() {
      for (let after = ''; ;) {
        const told = await next(after);
        if (told) {
          after = told.seq;
          heard(told);
        }
      }
    }

    if (isServed) addEventListener('DOMContentLoaded', listen); // then the player is there
    else says.textContent = words['p.f-file'];
  }

  /* -- the presenter --------------------------------------------------------------------------- */

  function present(key) {
    let at = null; // where this page is, until the class knows it
    let sends = false;
    const says = make('span', { role: 'status' });
    const address = make('b');
    const code = make('img', { src: new URL('class/qr.svg', root), alt: words['p.code'] });
    const panel = make('aside', { id: 'class', 'aria-label': words['p.class'] }, code, make('p', {}, address, ' ', says));
    document.body.prepend(panel);

    async function ask(path, body) {
      const answer = await fetch(new URL(`class/${path}`, root), {
        cache: 'no-store', signal: AbortSignal.timeout(WAIT_MS), headers: { 'X-Class-Key': key },
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
      });
      if (!answer.ok) throw new Error(answer.status === 403 ? 'p.class-key' : 'p.f-lost');
      return answer.json();
    }

    const fail = ({ message }) => { says.textContent = words[message] || words['p.f-lost']; };

    /* One at a time; of the steps that come meanwhile, the last. */
    async function send() {
      if (sends) return;
      sends = true;
      while (at) {
        const sent = at;
        try {
          await ask('position', sent);
          if (at === sent) at = null;
        } catch (broken) {
          fail(broken);
          await pause(RETRY_MS);
        }
      }
      sends = false;
    }

    async function look() {
      for (;;) {
        try {
          const { url, followers } = await ask('overview');
          address.textContent = url;
          says.textContent = fill(words['p.followers'], { n: followers });
        } catch (broken) {
          fail(broken);
        }
        await pause(LOOK_MS);
      }
    }

    addEventListener('museum:step', ({ detail: { section, k } }) => {
      at = { page, scene: section.id, step: k };
      send();
    });
    addEventListener('keydown', ({ key: pressed, ctrlKey, metaKey, altKey }) => {
      if (/^q$/i.test(pressed) && !ctrlKey && !metaKey && !altKey) panel.classList.toggle('large');
    });
    look();
  }

  /* The key is in the address once: then nobody reads it from the screen, or copies it with a link. */
  function takeKey() {
    const key = query.get('key');
    if (key !== null) {
      sessionStorage.setItem(KEY, key);
      history.replaceState(null, '', `${location.pathname}?present${location.hash}`);
    }
    return sessionStorage.getItem(KEY);
  }

  if (query.has('follow')) follow();
  else if (query.has('present') && isServed) {
    const key = takeKey();
    if (key) present(key);
  }
})();
