// SPDX-License-Identifier: MIT
// The help dialog of the "?" key.

import {createDialog, element} from './dom.js';

export function createHelp(title, rows) {
  const dialog = createDialog('help');
  dialog.fill(title, element('table', {}, element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, 'Action'), element('th', {scope: 'col'}, 'Effect'))),
    element('tbody', {}, ...rows.map(([keys, what]) => element('tr', {},
      element('th', {scope: 'row'}, ...keys.flatMap((key, i) => i ? [' ', element('kbd', {}, key)] : [element('kbd', {}, key)])),
      element('td', {}, what))))));
  return {
    toggle() {
      if (dialog.isOpen()) dialog.close();
      else dialog.show();
    },
    isOpen: dialog.isOpen,
  };
}
