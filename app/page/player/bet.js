/* A bet before the first move, and what is said of it: on the recorded levels and on the live page.
 * level: of levels.json. say(name, values): the words "level.NAME". bet: {loses, n}, n: the fewest moves. */
'use strict';

Museum.bet = (() => {
  const { make } = Museum;
  const MOVES_MAX = 20, MOVES_FIRST = 4;

  /* The question. placed(bet): called for each answer. */
  function ask(say, placed) {
    const n = make('input', { type: 'number', min: 1, max: MOVES_MAX, value: MOVES_FIRST });
    const answer = (name, loses) => {
      const element = make('button', { type: 'button', 'data-do': name }, say(`bet.${name}`));
      element.addEventListener('click', () => { if (n.reportValidity()) placed({ loses, n: Number(n.value) }); });
      return element;
    };
    return [answer('yes', true), make('label', {}, make('span', {}, say('bet.moves')), n), answer('no', false)];
  }

  const said = (say, { loses, n }) => say(loses ? 'bet.said-yes' : 'bet.said-no', { n });

  /* Judged by all orders of the level. The number of moves counts only if some order loses. */
  function judged(say, { losing, fewest }, { loses, n }, between = '') {
    const moves = losing && loses ? say(n === fewest ? 'bet.fewest-right' : 'bet.fewest-wrong', { n, fewest }) : '';
    return [say(loses === losing > 0 ? 'bet.right' : 'bet.wrong'), between, moves].filter((text) => text).join(' ');
  }

  /* Of the moves that lost before, after they were played against a mend. lost: what the ledger shows. */
  const mended = (say, lost, mend) => say(lost ? 'mend.lost' : 'mend.held', { mend });

  return { ask, said, judged, mended };
})();
