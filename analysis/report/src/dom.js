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

// The tooltip. There is one for the page.
export function createTooltip() {
  const box = element('div', {class: 'tooltip', role: 'status'});
  box.hidden = true;
  document.body.append(box);
  return {
    show(event, children) {
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
