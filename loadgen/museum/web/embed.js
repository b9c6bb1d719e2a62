/* ?embed=SCENE: this scene alone, for a frame in another page. Elsewhere: a control that gives the
 * address of a step, the text of its frame, and its picture. */
'use strict';

Museum.embed = (() => {
  const { make, moment } = Museum;
  const words = JSON.parse(document.getElementById('words').textContent);
  const wanted = new URLSearchParams(location.search).get('embed');

  /* Only the current scene is seen: its heading is the page's. */
  function solo(name) {
    document.documentElement.classList.add('solo', name);
    document.querySelectorAll('.exhibit h2').forEach((title) => {
      title.setAttribute('role', 'heading');
      title.setAttribute('aria-level', '1');
    });
  }

  /* -- in a frame ------------------------------------------------------------------------------ */

  function backLink() {
    const link = make('a', { class: 'back', target: '_blank', rel: 'noopener' }, `${document.title} ↗`);
    const point = () => { link.href = `${location.pathname}${location.hash || `#${wanted}`}`; };
    point();
    ['focus', 'pointerenter', 'click'].forEach((name) => link.addEventListener(name, point));
    return link;
  }

  function showOnly(section) {
    solo('embed');
    document.querySelectorAll('.exhibit').forEach((one) => { one.hidden = one !== section; });
    document.querySelector('main').append(section ? '' : make('p', { class: 'missing', role: 'alert' }, words['p.no-scene'].replace('{id}', wanted)), backLink());
    if (section && !location.hash) history.replaceState(null, '', `#${section.id}/0`);
  }

  /* -- share ----------------------------------------------------------------------------------- */

  function address(player, search) {
    const url = new URL(location.href);
    url.search = search;
    url.hash = `${player.section.id}/${player.k}`;
    return url.href;
  }

  const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

  function frame(player) {
    const title = player.section.querySelector('h2, summary').textContent.trim().replace(/\s+/g, ' ');
    return `<iframe src="${escape(address(player, `?embed=${player.section.id}`))}" title="${escape(title)}" width="720" height="560"></iframe>`;
  }

  /* Copies; if the browser refuses, the text is selected. */
  async function copy(field, says) {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      says.textContent = words['p.copied'];
    } catch (refused) {
      says.textContent = words['p.selected'];
    }
  }

  function line(name, says) {
    const field = make('input', { readonly: '', 'aria-label': words[`p.${name}`], 'data-share': name });
    const button = make('button', { type: 'button', 'aria-label': `${words['p.copy']}: ${words[`p.${name}`]}` }, words['p.copy']);
    button.addEventListener('click', () => copy(field, says));
    return make('p', {}, make('span', {}, words[`p.${name}`]), field, button);
  }

  function picture(player, name, act) {
    const button = make('button', { type: 'button', 'data-save': name }, name.toUpperCase());
    button.addEventListener('click', () => act(player));
    return button;
  }

  function share(player) {
    const says = make('span', { role: 'status' });
    const panel = make('div', {}, line('link', says), line('frame', says),
      make('p', {}, make('span', {}, words['p.picture']), picture(player, 'svg', moment.saveSvg), picture(player, 'png', moment.savePng), says));
    if (location.protocol === 'file:') panel.append(make('p', { class: 'note' }, words['p.share-file']));
    return make('details', { class: 'share' }, make('summary', {}, words['p.share']), panel);
  }

  function fill(player) {
    const [link, text] = player.section.querySelectorAll('[data-share]');
    link.value = address(player, '');
    text.value = frame(player);
  }

  if (wanted !== null) {
    const section = document.getElementById(wanted);
    showOnly(section && section.matches('.exhibit') && section.querySelector('.record') ? section : null);
  } else {
    addEventListener('museum:open', ({ detail: player }) => { player.zoom.bar.append(share(player)); fill(player); });
    addEventListener('museum:step', ({ detail: player }) => fill(player));
  }
  return { solo };
})();
