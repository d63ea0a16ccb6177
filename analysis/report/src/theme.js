// SPDX-License-Identifier: MIT
// Light or dark: as the system setting, until the button overrides it. The dark colours are in base.css under a media
// query; the override replaces that query by one that always or never matches.

const SYSTEM = '(prefers-color-scheme: dark)';

function darkRules() {
  const rules = [];
  for (const sheet of document.styleSheets)
    for (const rule of sheet.cssRules)
      if (rule.media && rule.media.mediaText.includes('prefers-color-scheme')) rules.push(rule);
  return rules;
}

// `changed` is called after each change, including the system's.
export function createTheme(button, changed) {
  const rules = darkRules();
  const system = matchMedia(SYSTEM);
  let chosen = '';
  const isDark = () => chosen ? chosen === 'dark' : system.matches;
  const show = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Switch to ${isDark() ? 'light' : 'dark'} colours`);
  };
  const theme = {
    chosen: () => chosen,
    choose(wanted) {
      if (wanted === chosen) return;
      chosen = wanted;
      for (const rule of rules) rule.media.mediaText = chosen === '' ? SYSTEM : chosen === 'dark' ? 'all' : 'not all';
      document.documentElement.style.colorScheme = chosen || 'light dark';
      show();
      changed();
    },
    toggle() {
      const wanted = isDark() ? 'light' : 'dark';
      theme.choose(wanted === 'dark' === system.matches ? '' : wanted);
    },
  };
  button.addEventListener('click', theme.toggle);
  system.addEventListener('change', () => {
    show();
    changed();
  });
  show();
  return theme;
}

// The page's colours in its current colour scheme.
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour('text'),
    muted: colour('muted'),
    grid: colour('grid'),
    line: colour('line'),
    surface: colour('surface'),
    accent: colour('accent'),
    second: colour('second'),
    third: colour('third'),
    fourth: colour('fourth'),
    fifth: colour('fifth'),
    lane: colour('lane'),
    mass: colour('mass').split(/\s+/).map(Number),
    band: colour('band'),
    font: '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", sans-serif',
    dark: colour('dark') === '1',
  };
}
