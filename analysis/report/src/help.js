// SPDX-License-Identifier: MIT
// The help dialog of the "?" key: modal, so that the browser keeps the focus in it.

import {element} from './dom.js';

export function createHelp(title, rows) {
  const close = element('button', {type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => dialog.close()}, '×');
  const dialog = element('dialog', {class: 'help', 'aria-labelledby': 'help-title'},
    element('div', {class: 'panel-head'}, element('h2', {id: 'help-title'}, title), close),
    element('table', {}, element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, 'Action'), element('th', {scope: 'col'}, 'Effect'))),
      element('tbody', {}, ...rows.map(([keys, what]) => element('tr', {},
        element('th', {scope: 'row'}, ...keys.flatMap((key, i) => i ? [' ', element('kbd', {}, key)] : [element('kbd', {}, key)])),
        element('td', {}, what))))));
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close(); // outside the dialog
  });
  document.body.append(dialog);
  return {
    toggle() {
      if (dialog.open) dialog.close();
      else dialog.showModal();
    },
    isOpen: () => dialog.open,
  };
}
