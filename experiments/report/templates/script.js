'use strict';
const all = JSON.parse(document.getElementById('head-data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const BOX = { width: 400, height: 250, left: 30, right: 10, top: 20, bottom: 34 };

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// Entropies of one head in nats, at the positions of its grid.
function curve(grid, layer, head) {
  const heads = grid.means[0][0].length, count = grid.positions.length;
  const bytes = atob(grid.curves);
  const start = (layer * heads + head) * count;
  return grid.positions.map((_, i) => {
    const at = 2 * (start + i);
    return (bytes.charCodeAt(at) + 256 * bytes.charCodeAt(at + 1)) * grid.quantum;
  });
}

// Places on a logarithmic axis of positions and a linear one of nats.
function scales(last, most) {
  const wide = BOX.width - BOX.left - BOX.right, high = BOX.height - BOX.top - BOX.bottom;
  return {
    x: (i) => BOX.left + wide * Math.log(i) / Math.log(Math.max(last, 2)),
    y: (v) => BOX.top + high * (1 - v / most),
  };
}

function axes(svg, scale, last, most) {
  const step = most > 6 ? 2 : most > 2 ? 1 : 0.5;
  for (let v = 0; v <= most; v += step) {
    element('line', { class: 'grid', x1: BOX.left, x2: BOX.width - BOX.right, y1: scale.y(v), y2: scale.y(v) }, svg);
    element('text', { x: BOX.left - 5, y: scale.y(v) + 4, 'text-anchor': 'end' }, svg, String(v));
  }
  const doublings = Math.floor(Math.log2(last)), stride = Math.max(1, Math.ceil(doublings / 6));
  for (let k = 0; k <= doublings; k += stride) {
    const anchor = k + stride > doublings && scale.x(2 ** k) > BOX.width - 30 ? 'end' : 'middle';
    element('text', { x: scale.x(2 ** k), y: BOX.height - 19, 'text-anchor': anchor }, svg, (2 ** k).toLocaleString('en'));
  }
}

function titles(svg) {
  element('text', { x: BOX.left - 5, y: 10, 'text-anchor': 'start' }, svg, 'entropy (nats)');
  element('text', { x: BOX.width - BOX.right, y: BOX.height - 4, 'text-anchor': 'end' }, svg, 'position i');
}

function polyline(svg, scale, positions, values, kind) {
  const points = positions.map((i, n) => `${scale.x(i).toFixed(1)},${scale.y(values[n]).toFixed(1)}`);
  element('polyline', { class: `curve ${kind}`, points: points.join(' ') }, svg);
}

function described(grid, layer, head) {
  const lambda = grid.multipliers.length ? `, multiplier ${grid.multipliers[layer][head]}` : '';
  return `${grid.name}${lambda}`;
}

function legend(panel, kind, text) {
  const row = document.createElement('li');
  const key = element('svg', { class: 'chart key', viewBox: '0 0 20 8', 'aria-hidden': 'true' }, row);
  element('line', { class: `curve ${kind}`, x1: 0, x2: 20, y1: 4, y2: 4 }, key);
  row.append(` ${text}`);
  panel.append(row);
}

// The curves of a head, of `own` and of the grids to hold it against, in its panel.
function show(panel, own, layer, head) {
  const shown = [own, ...own.others.map((id) => all[id])].slice(0, 4);
  const last = Math.max(...shown.map((grid) => grid.positions.at(-1)));
  const most = Math.max(Math.log(last), 0.5);
  const title = document.createElement('h4');
  title.textContent = `Layer ${layer}, head ${head}`;
  const svg = document.createElementNS(SVG, 'svg');
  const words = shown.map((grid) => described(grid, layer, head));
  for (const [key, value] of Object.entries({
    class: 'chart', viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: 'img',
    'aria-label': `Entropy in nats by position, layer ${layer}, head ${head}: ${words.join('; ')}`,
  })) svg.setAttribute(key, value);
  const scale = scales(last, most);
  axes(svg, scale, last, most);
  titles(svg);
  const bound = own.positions.concat(last > own.positions.at(-1) ? [last] : []);
  polyline(svg, scale, bound, bound.map(Math.log), 'bound');
  element('line', { class: 'curve length', x1: scale.x(own.L), x2: scale.x(own.L), y1: BOX.top, y2: BOX.height - BOX.bottom }, svg);
  shown.forEach((grid, k) => polyline(svg, scale, grid.positions, curve(grid, layer, head), `k${k}`));
  const list = document.createElement('ul');
  words.forEach((text, k) => legend(list, `k${k}`, text));
  legend(list, 'bound', 'the bound ln i');
  legend(list, 'length', `the training length L = ${own.L.toLocaleString('en')}`);
  const hidden = own.others.length + 1 - shown.length;
  if (hidden > 0) legend(list, 'none', `and ${hidden} more evaluations with other multipliers`);
  panel.replaceChildren(title, svg, list);
}

function shade(grid, buttons, choice) {
  const means = grid.means[choice].flat();
  const highest = Math.max(...means) || 1;
  buttons.forEach((button, k) => {
    button.textContent = means[k].toFixed(2);
    button.className = `s${Math.round(10 * Math.max(means[k], 0) / highest)}`;
  });
}

// One stop for Tab; arrow keys, Home and End move inside.
function move(buttons, wide, from, key) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide };
  const ends = { Home: from - from % wide, End: from - from % wide + wide - 1 };
  const to = key in ends ? ends[key] : from + (steps[key] ?? NaN);
  if (!(to in buttons)) return false;
  buttons[from].tabIndex = -1;
  buttons[to].tabIndex = 0;
  buttons[to].focus();
  return true;
}

for (const [id, grid] of Object.entries(all)) {
  const box = document.getElementById(id);
  const buttons = [...box.querySelectorAll('button')];
  const wide = grid.means[0][0].length, panel = box.querySelector('.panel');
  buttons.forEach((button, k) => {
    const layer = Math.floor(k / wide), head = k % wide;
    button.tabIndex = k ? -1 : 0;
    button.setAttribute('aria-pressed', 'false');
    button.setAttribute('aria-label', `layer ${layer}, head ${head}: ${button.textContent}`);
    button.addEventListener('click', () => {
      buttons.forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
      show(panel, grid, layer, head);
    });
    button.addEventListener('keydown', (event) => {
      if (move(buttons, wide, k, event.key)) event.preventDefault();
    });
  });
  box.querySelector('select').addEventListener('change', (event) => {
    shade(grid, buttons, Number(event.target.value));
    buttons.forEach((button, k) => button.setAttribute(
      'aria-label', `layer ${Math.floor(k / wide)}, head ${k % wide}: ${button.textContent}`));
  });
}

let closed = [];
addEventListener('beforeprint', () => {
  closed = [...document.querySelectorAll('details:not([open])')];
  closed.forEach((details) => { details.open = true; });
});
addEventListener('afterprint', () => {
  closed.forEach((details) => { details.open = false; });
});
