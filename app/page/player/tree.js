/* All schedules of a level as a tree: a line for each move, and at its end a mark that says whether the
 * schedule loses an update. schedules: [{moves: "ABAB", loses}]. */
'use strict';

Museum.tree = (() => {
  const { make } = Museum;
  const STEP = 26, LEAF = 11, EDGE = 8;
  const MARKS = { true: 'M-4 -4L4 4M4 -4L-4 4', false: 'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0' };

  /* Each set of first moves with the leaves below it. */
  function nodesOf(schedules) {
    const nodes = new Map();
    schedules.forEach(({ moves }, leaf) => {
      for (let n = 0; n <= moves.length; n++) {
        const prefix = moves.slice(0, n), node = nodes.get(prefix) || { prefix, first: leaf };
        nodes.set(prefix, Object.assign(node, { last: leaf }));
      }
    });
    return nodes;
  }

  const x = (node) => EDGE + node.prefix.length * STEP;
  const y = (node) => EDGE + ((node.first + node.last) / 2) * LEAF;

  /* path: the moves to mark. pick(moves): a mark was clicked. The picture is for the eye: whoever calls
   * this gives the same as a list. */
  function draw(schedules, { path = '', pick = () => {} } = {}) {
    const nodes = nodesOf(schedules), depth = Math.max(...schedules.map(({ moves }) => moves.length));
    const svg = make('svg', { class: 'tree', 'aria-hidden': 'true', viewBox: `0 0 ${2 * EDGE + depth * STEP} ${2 * EDGE + (schedules.length - 1) * LEAF}` });
    nodes.forEach((node) => {
      if (node.prefix === '') return;
      const parent = nodes.get(node.prefix.slice(0, -1)), on = path.startsWith(node.prefix);
      svg.append(make('path', { class: on ? 'edge on' : 'edge', d: `M${x(parent)} ${y(parent)}L${x(node)} ${y(node)}` }));
    });
    schedules.forEach(({ moves, loses }) => {
      const node = nodes.get(moves);
      const mark = make('path', { class: loses ? 'leaf loses' : 'leaf', 'data-moves': moves, d: MARKS[loses], transform: `translate(${x(node)} ${y(node)})` });
      mark.addEventListener('click', () => pick(moves));
      svg.append(mark);
    });
    return svg;
  }

  return { draw };
})();
