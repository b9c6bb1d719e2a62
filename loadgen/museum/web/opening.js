/* The opening plays by itself in 12 seconds: the counter runs from the stock to what was sold and
 * freezes, then its style sheet shows the two buyers, one after the other. */
'use strict';

(() => {
  const RUN_MS = 7000, PHONES_MAX = 100;
  const sale = document.getElementById('sale');
  if (!sale) return;
  const initial = Number(sale.dataset.initial), sold = Number(sale.dataset.sold);
  const left = sale.querySelector('.left'), phones = sale.querySelector('.phones');
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const shown = Math.min(initial, PHONES_MAX);
  const number = (value) => value.toLocaleString('en-US').replace('-', '−');
  for (let i = 0; i < shown; i++) phones.append(document.createElement('i'));

  function draw(done) {
    const now = initial - Math.round(done * sold);
    left.textContent = number(now);
    sale.classList.toggle('below', now < 0);
    [...phones.children].forEach((phone, i) => phone.classList.toggle('gone', i >= (shown * Math.max(0, now)) / initial));
  }

  function finish() {
    draw(1);
    sale.classList.add('frozen');
  }

  /* Slow at first: a hundred phones are gone in a small part of the sale. */
  function play() {
    let from = 0;
    const step = (at) => {
      from = from || at;
      const part = Math.min(1, (at - from) / RUN_MS);
      draw(part * part * part);
      if (part < 1) requestAnimationFrame(step);
      else finish();
    };
    sale.classList.add('plays');
    requestAnimationFrame(step);
  }

  sale.querySelector('.why').addEventListener('click', (event) => {
    const first = document.querySelector('.exhibit');
    if (!first || !first.querySelector('.record')) return;
    event.preventDefault();
    Museum.player.enter(first, 0);
  });
  if (still || location.hash) finish();
  else play();
})();
