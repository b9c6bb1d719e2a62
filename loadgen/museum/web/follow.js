/* A class that goes along, on the pages that `loadgen follow` serves.
 * ?follow: this page shows what the presenter's shows. Who steps on their own stays there until "Go
 * along again". It tells the presenter nothing.
 * ?present&key=KEY: this page is the presenter's. It tells the class where it is, and shows its
 * address, as text and as QR code, and how many follow. Q: the code, large. V: asks the class how the
 * run ends, ends the vote, takes the question away. The answer is what the recording has as its outcome;
 * a page shows it when its own player has come to the end of the run. */
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

  /* -- a vote ---------------------------------------------------------------------------------- */

  const OUTCOMES = ['safe', 'unsafe', 'stuck', 'refused', 'slow']; // "slow" is a choice only where it is the answer
  const choicesOf = (record) => (record.observed === 'slow' ? OUTCOMES.length : OUTCOMES.length - 1);

  /* The index of the recorded outcome, once this page has shown all of the run; else -1. */
  function answerOf({ scene }) {
    const player = Museum.player.players.get(scene);
    return player && player.k === player.at.length - 1 ? OUTCOMES.indexOf(player.record.observed) : -1;
  }

  /* Draws the question into its box. choose(i): a phone's vote; null: nobody votes here. */
  function drawVote(box, question, choose) {
    const answer = question && !question.open ? answerOf(question) : -1, drawn = JSON.stringify([question, answer]);
    if (box.dataset.drawn === drawn) return; // nothing is announced twice
    box.dataset.drawn = drawn;
    box.hidden = !question;
    if (!question) return;
    const { open: isOpen, counts, mine, choices } = question;
    const sum = counts ? counts.reduce((a, b) => a + b, 0) : 0;
    const line = (i) => {
      const word = words[`p.v-${OUTCOMES[i]}`];
      const text = i === answer ? `✓ ${word} (${words['p.v-answer']})` : word;
      const item = make('li', i === answer ? { class: 'answer' } : {});
      if (choose && isOpen) {
        const button = make('button', { type: 'button', 'aria-pressed': String(i === mine) }, text);
        button.addEventListener('click', () => choose(i));
        item.append(button);
      } else item.append(make('span', {}, i === mine ? `${text} · ${words['p.v-mine']}` : text));
      if (counts) item.append(make('meter', { min: 0, max: Math.max(1, sum), value: counts[i], 'aria-label': word }), make('b', {}, counts[i]));
      return item;
    };
    const state = words[isOpen ? 'p.v-open' : answer < 0 ? 'p.v-closed' : 'p.v-told'];
    const focused = [...box.querySelectorAll('button')].indexOf(document.activeElement);
    box.replaceChildren(make('p', { class: 'ask' }, words['p.v-ask']),
      make('ul', {}, ...Array.from({ length: Math.min(choices, OUTCOMES.length) }, (_, i) => line(i))), make('p', { class: 'note' }, state));
    if (focused >= 0) box.querySelectorAll('button')[focused]?.focus();
  }

  const voteBox = () => make('section', { id: 'vote', 'aria-label': words['p.vote'], 'aria-live': 'polite', hidden: '' });

  /* -- a phone --------------------------------------------------------------------------------- */

  function follow() {
    let at = null; // where the presenter is
    let away = false; // the reader looks elsewhere
    let going = false; // the step is the presenter's
    const says = make('span', { role: 'status' }, words['p.f-waiting']);
    const again = make('button', { type: 'button', hidden: '' }, words['p.f-again']);
    const box = voteBox();
    let question = null;
    document.body.prepend(make('aside', { id: 'class', 'aria-label': words['p.class'] }, says, again, box));
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
      drawVote(box, question, vote);
      if (going || !at) return;
      away = !isThere(detail);
      show();
    });

    function heard(told) {
      at = told.at || null;
      question = told.question || null;
      if (at && !away) go();
      drawVote(box, question, vote);
      show();
    }

    /* Refused: the vote is over, and the next state says so. */
    async function vote(choice) {
      try {
        const answer = await fetch(new URL('class/vote', root), { method: 'POST', body: JSON.stringify({ round: question.round, choice }) });
        if (answer.ok) heard(await answer.json());
      } catch (broken) {
        says.textContent = words['p.f-lost'];
      }
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
    let player = null; // of the scene that is shown
    let question = null;
    const box = voteBox();
    const says = make('span', { role: 'status' });
    const address = make('b');
    const code = make('img', { src: new URL('class/qr.svg', root), alt: words['p.code'] });
    const button = make('button', { type: 'button', hidden: '' });
    const panel = make('aside', { id: 'class', 'aria-label': words['p.class'] }, code, make('p', {}, address, ' ', says, ' ', button), box);
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
          heard(await ask('overview'));
        } catch (broken) {
          fail(broken);
        }
        await pause(LOOK_MS);
      }
    }

    function heard({ url, followers, question: told }) {
      if (url) address.textContent = url;
      says.textContent = fill(words['p.followers'], { n: followers });
      question = told || null;
      button.hidden = !player;
      button.textContent = words[!question ? 'p.v-begin' : question.open ? 'p.v-end' : 'p.v-clear'];
      drawVote(box, question, null);
    }

    /* Asks, ends the vote, takes the question away. */
    function vote() {
      if (!player) return;
      const act = !question ? { act: 'ask', scene: player.section.id, choices: choicesOf(player.record) } : { act: question.open ? 'close' : 'clear' };
      ask('question', act).then(heard, fail);
    }

    button.addEventListener('click', vote);
    addEventListener('museum:step', ({ detail }) => {
      const { section, k } = detail;
      player = detail;
      at = { page, scene: section.id, step: k };
      send();
      drawVote(box, question, null);
      if (question && question.scene !== section.id) ask('question', { act: 'clear' }).then(heard, fail);
    });
    addEventListener('keydown', ({ key: pressed, ctrlKey, metaKey, altKey }) => {
      if (ctrlKey || metaKey || altKey) return;
      if (/^q$/i.test(pressed)) panel.classList.toggle('large');
      if (/^v$/i.test(pressed)) vote();
    });
    addEventListener('DOMContentLoaded', look);
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
