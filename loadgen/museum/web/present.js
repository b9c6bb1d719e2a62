/* ?present: one scene at a time, as large as the screen has room for, without controls. Keys 1 to 9
 * go to the scenes, N opens the notes, Escape ends it.
 * ?notes: the notes, in a window of their own. Keys that are pressed there act here. The windows
 * talk by postMessage between opener and opened: pages that are files share nothing else. */
'use strict';

(() => {
  const { make } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const HELLO_MS = 1000; // a presentation that was loaded again learns of its notes by this
  const PASSED = /^([1-9 pqv]|Arrow(Left|Right)|Home|End)$/;
  const query = new URLSearchParams(location.search);
  const root = document.documentElement.classList;
  const fill = (text, values) => text.replace(/{(\w+)}/g, (all, name) => values[name]);
  const isPlain = ({ ctrlKey, metaKey, altKey }) => !ctrlKey && !metaKey && !altKey;
  const scenes = () => [...document.querySelectorAll('.exhibit')].filter((one) => one.querySelector('.record'));

  /* -- the presentation ------------------------------------------------------------------------ */

  function present() {
    let notes = null, at = null;
    Museum.embed.solo('present');
    const tell = () => { if (notes) notes.postMessage({ museum: 'at', ...at }, '*'); };

    addEventListener('museum:step', ({ detail: { section, k } }) => {
      root.add('begun');
      at = { id: section.id, k };
      tell();
    });
    const openNotes = () => { notes = open(`${location.pathname}?notes`, 'museum-notes', 'popup,width=900,height=700'); };
    const acts = {
      n: openNotes,
      N: openNotes,
      Escape: () => location.assign(`${location.pathname}${location.hash}`),
    };
    addEventListener('keydown', (event) => {
      const { key } = event;
      const scene = /^[1-9]$/.test(key) ? scenes()[key - 1] : null;
      if (!isPlain(event)) return;
      if (scene) Museum.player.enter(scene, 0, true);
      if (acts[key]) acts[key]();
    });
    addEventListener('message', ({ source, data }) => {
      if (!source || source.opener !== window || !data) return;
      notes = source;
      if (data.museum === 'hello') tell();
      if (data.museum === 'key' && PASSED.test(data.key))
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: data.key, bubbles: true, cancelable: true }));
    });
  }

  /* -- the notes ------------------------------------------------------------------------------- */

  const text = (line, selector) => (line && line.querySelector(selector) ? line.querySelector(selector).textContent.trim() : '');

  function upNext(section, lines, k) {
    const next = lines.slice(k + 1).find((line) => line.classList.contains('beat'));
    if (next) return text(next, '.told');
    if (k < lines.length - 1) return text(lines.at(-1), '.fact');
    const list = scenes(), scene = list[list.indexOf(section) + 1];
    return scene ? text(scene, 'h2, summary') : words['p.end'];
  }

  const say = (panel, what) => panel.replaceChildren(make('h1', {}, words['p.notes']), make('p', {}, what));

  function show(panel, { id, k }) {
    const section = document.getElementById(id);
    if (!section) return say(panel, words[id ? 'p.notes-other' : 'p.notes-none']);
    const lines = [...section.querySelectorAll('.trace > li')];
    const beats = lines.filter((line) => line.classList.contains('beat'));
    const told = lines.slice(0, k + 1).filter((line) => line.classList.contains('beat'));
    const lesson = [...section.querySelectorAll('.lesson-line')].map((one) => one.cloneNode(true));
    lesson.forEach((one) => { one.hidden = false; });
    return panel.replaceChildren(
      make('p', { class: 'note' }, fill(words['p.notes-at'], { beat: told.length, beats: beats.length, k, end: lines.length - 1 })),
      make('h1', {}, text(section, 'h2, summary')),
      make('p', { class: 'told' }, text(told.at(-1) || lines[k], told.length ? '.told' : '.fact')),
      make('p', { class: 'next' }, make('b', {}, words['p.next']), ' ', upNext(section, lines, k)),
      ...lesson);
  }

  function takeNotes() {
    root.add('notes');
    const panel = document.body.appendChild(make('main', { id: 'notes' }));
    const hasOpener = () => window.opener && !window.opener.closed;
    const send = (what) => { if (hasOpener()) window.opener.postMessage(what, '*'); };
    
    addEventListener('message', ({ source, data }) => {
      if (source === window.opener && data && data.museum === 'at') show(panel, data);
    });
    addEventListener('keydown', (event) => {
      if (!isPlain(event) || !PASSED.test(event.key)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      send({ museum: 'key', key: event.key });
    }, true);
    const hello = () => (hasOpener() ? send({ museum: 'hello' }) : say(panel, words['p.notes-alone']));
    setInterval(hello, HELLO_MS);
    show(panel, {});
    hello();
  }

  if (query.has('present')) present();
  if (query.has('notes')) takeNotes();
})();
