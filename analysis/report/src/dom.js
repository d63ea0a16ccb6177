// SPDX-License-Identifier: MIT
// Creates all elements. Text enters the page only as text, because names of files and processes are untrusted.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== ''));
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A cause's mark in its colour, as on the latency chart.
export function markOf({family, colour}) {
  return svg('svg', {class: 'mark', viewBox: '-10 -10 20 20', 'aria-hidden': 'true', fill: colour}, svg('use', {href: `#mark-${family}`}));
}

// A modal dialog, in which the browser keeps the focus. A click outside closes it.
export function createDialog(name) {
  const title = element('h2', {id: `${name}-title`});
  const content = element('div');
  const dialog = element('dialog', {class: name, 'aria-labelledby': title.id},
    element('div', {class: 'panel-head'}, title,
      element('button', {type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => dialog.close()}, '×')),
    content);
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  return {
    fill(text, ...children) {
      title.textContent = text;
      content.replaceChildren(...children);
    },
    show: () => dialog.showModal(),
    close: () => dialog.close(),
    isOpen: () => dialog.open,
  };
}

// The tooltip. There is one for the page.
export function createTooltip() {
  const box = element('div', {class: 'tooltip', role: 'status'});
  box.hidden = true;
  document.body.append(box);
  return {
    show(event, children) {
      // Only what is inside an open dialog is above it.
      (document.querySelector('dialog[open]') ?? document.body).append(box);
      box.replaceChildren(...children);
      box.hidden = false;
      const {width, height} = box.getBoundingClientRect();
      const gap = 14;
      const right = event.clientX + gap + width < innerWidth;
      const below = event.clientY + gap + height < innerHeight;
      box.style.left = `${Math.max(4, right ? event.clientX + gap : event.clientX - gap - width)}px`;
      box.style.top = `${Math.max(4, below ? event.clientY + gap : event.clientY - gap - height)}px`;
    },
    hide() { box.hidden = true; },
  };
}
