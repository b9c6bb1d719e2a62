/* The picture of a moment as SVG: the boxes and lines of text as the browser has laid them out, in
 * light colours. It has no style sheet, no script, and nothing of HTML, so other programs show it,
 * too. PNG: the same picture on a canvas. */
'use strict';

Museum.moment = (() => {
  const { make } = Museum;
  const SVG = 'http://www.w3.org/2000/svg';
  const PAD = 16, GAP = 10, SCALE = 2;
  const pen = document.createElement('canvas').getContext('2d');
  const round = (value) => Math.round(value * 10) / 10;
  const px = (value) => parseFloat(value) || 0;
  const isClear = (color) => /^rgba\(.*, 0\)$/.test(color);

  /* The lines of a text node: [{text, left, top, right}]. */
  function linesOf(node) {
    const lines = [], range = document.createRange();
    [...node.data].reduce((at, letter) => {
      range.setStart(node, at);
      range.setEnd(node, at + letter.length);
      const rect = range.getClientRects()[0];
      const line = lines.at(-1);
      if (rect && rect.width > 0) {
        if (line && Math.abs(line.top - rect.top) < 3) {
          line.text += letter;
          line.right = rect.right;
        } else lines.push({ text: letter, left: rect.left, top: rect.top, right: rect.right });
      }
      return at + letter.length;
    }, 0);
    return lines;
  }

  function text(node, home) {
    const style = getComputedStyle(node.parentElement);
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const { fontBoundingBoxAscent: ascent } = pen.measureText('x');
    const upper = getComputedStyle(node.parentElement, '::first-letter').textTransform === 'uppercase';
    return linesOf(node).map((line, i) => make('text', {
      x: round(line.left - home.left), y: round(line.top - home.top + ascent), fill: style.color,
      'font-family': style.fontFamily, 'font-size': style.fontSize, 'font-weight': style.fontWeight,
      'text-decoration': style.textDecorationLine, 'xml:space': 'preserve',
      textLength: round(line.right - line.left), lengthAdjust: 'spacingAndGlyphs',
    }, upper && i === 0 ? line.text[0].toUpperCase() + line.text.slice(1) : line.text));
  }

  const DASHES = { dashed: 3, dotted: 1.5 };

  function rect(box, radius, paint) {
    return make('rect', { x: round(box.x), y: round(box.y), width: round(Math.max(0, box.width)), height: round(Math.max(0, box.height)),
      rx: round(Math.min(radius, box.width / 2, box.height / 2)), fill: 'none', ...paint });
  }

  const grown = ({ x, y, width, height }, by) => ({ x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by });

  /* Background and border. A bottom border that is thicker than the others is a bar of its own. */
  function box(style, at) {
    const wide = px(style.borderTopWidth), more = px(style.borderBottomWidth) - wide;
    const radius = style.borderTopLeftRadius.endsWith('%') ? at.width / 2 : px(style.borderTopLeftRadius);
    const dash = DASHES[style.borderTopStyle], shadow = /^(rgb\([^)]*\)) 0px 0px 0px ([\d.]+)px$/.exec(style.boxShadow);
    const shapes = [];
    if (shadow) shapes.push(rect(grown(at, shadow[2] / 2), radius, { stroke: shadow[1], 'stroke-width': shadow[2] }));
    if (!isClear(style.backgroundColor)) shapes.push(rect(at, radius, { fill: style.backgroundColor }));
    if (wide > 0 && style.borderTopStyle !== 'none')
      shapes.push(rect(grown(at, -wide / 2), radius, { stroke: style.borderTopColor, 'stroke-width': wide,
        ...(dash ? { 'stroke-dasharray': `${dash * wide} ${dash * wide}` } : {}) }));
    if (more > 0)
      shapes.push(rect({ x: at.x + radius / 2, y: at.y + at.height - wide - more, width: at.width - radius, height: more }, 0, { fill: style.borderBottomColor }));
    return shapes;
  }

  /* The hatching of a process that stands still. */
  function hatch(element, at) {
    if (!element.matches('.client.stopped, .client.killed')) return [];
    const { x, y, width, height } = grown(at, -3);
    let d = '';
    for (let left = x; left < x + width - 8; left += 10) d += `M${round(left)} ${round(y + height)}l8 -8`;
    return [make('path', { d, fill: 'none', stroke: getComputedStyle(element.querySelector('dt')).color, 'stroke-width': 2 })];
  }

  const PAINT = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap'];

  function drawing(svg, at) {
    const copy = make('g', { transform: `translate(${round(at.x)} ${round(at.y)}) scale(${round(at.width / svg.viewBox.baseVal.width)})` });
    [...svg.children].forEach((shape) => {
      const style = getComputedStyle(shape), one = shape.cloneNode();
      one.removeAttribute('class');
      one.removeAttribute('style');
      PAINT.forEach((name) => one.setAttribute(name, style.getPropertyValue(name)));
      copy.append(one);
    });
    return [copy];
  }

  /* clips: the clip paths so far */
  function shapes(element, home, clips) {
    const style = getComputedStyle(element), own = element.getBoundingClientRect();
    if (style.display === 'none' || style.visibility === 'hidden') return [];
    const at = { x: own.left - home.left, y: own.top - home.top, width: own.width, height: own.height };
    const inner = element instanceof SVGSVGElement ? drawing(element, at)
      : [...box(style, at), ...hatch(element, at), ...[...element.childNodes].flatMap((child) =>
        (child instanceof Text ? text(child, home) : child instanceof Element ? shapes(child, home, clips) : []))];
    if (style.opacity === '1' && style.clipPath === 'none') return inner;
    const group = make('g', { opacity: style.opacity }, ...inner);
    if (style.clipPath !== 'none') {
      const id = `clip-${clips.length}`;
      clips.push(make('clipPath', { id }, rect(grown(at, 6), 0, {})));
      group.setAttribute('clip-path', `url(#${id})`);
    }
    return [group];
  }

  const name = (player) => `${player.section.id}-${player.k}`;

  /* What is drawn, from top to bottom. */
  const blocks = ({ section, stage, caption, axis }) =>
    [section.querySelector('h2, summary'), stage, caption, axis, section.querySelector('.verdict')]
      .filter((one) => one && getComputedStyle(one).visibility !== 'hidden');

  function textWidth(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect().width;
  }

  function draw(player) {
    const clips = [], all = [];
    let y = PAD, width = 0;
    blocks(player).forEach((block) => {
      const home = block.getBoundingClientRect();
      all.push(make('g', { transform: `translate(${PAD} ${round(y)})` }, ...shapes(block, home, clips)));
      y += home.height + GAP;
      width = Math.max(width, block === player.stage ? home.width : textWidth(block));
    });
    const size = { width: Math.ceil(width + 2 * PAD), height: Math.ceil(y + PAD + 6) };
    const { color, fontFamily } = getComputedStyle(player.axis.querySelector('small'));
    const svg = document.createElementNS(SVG, 'svg');
    Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: 'img', 'aria-label': player.caption.textContent })
      .forEach(([key, value]) => svg.setAttribute(key, value));
    svg.append(...clips, rect({ x: 0, y: 0, ...size }, 0, { fill: '#fff' }), ...all,
      make('text', { x: PAD, y: size.height - PAD / 2, fill: color, 'font-size': 12, 'font-family': fontFamily }, `${document.title} · #${player.section.id}/${player.k}`));
    return svg;
  }

  /* In light colours, and where things move to rather than where they are. */
  function svgOf(player) {
    const root = document.documentElement.classList;
    root.add('light');
    try {
      return { text: new XMLSerializer().serializeToString(draw(player)), name: name(player) };
    } finally {
      root.remove('light');
    }
  }

  function save(blob, file) {
    const link = make('a', { href: URL.createObjectURL(blob), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function pngOf(player) {
    const { text: source } = svgOf(player);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
    await image.decode();
    const canvas = make('canvas', { width: image.width * SCALE, height: image.height * SCALE });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => { canvas.toBlob(done, 'image/png'); });
  }

  const saveSvg = (player) => save(new Blob([svgOf(player).text], { type: 'image/svg+xml' }), `${name(player)}.svg`);
  const savePng = async (player) => { const file = `${name(player)}.png`; save(await pngOf(player), file); };

  return { svgOf, pngOf, saveSvg, savePng };
})();
