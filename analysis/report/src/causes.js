// SPDX-License-Identifier: MIT
// The look of causes. A cause has the same colour in every report, so that readers learn them. A family (memory, files,
// CPU ...) shares a hue and a mark (shapes.js), because thirty hues cannot be distinguished, and some readers distinguish
// few. Colours, families and meanings come with the data, from analysis/timeline/include/analysis/causes.def.

// One entry per number used in the arrays: {name, family, colour, ink (for text on the colour), meaning}. `looks` are
// the data's [family, colour on light, colour on dark, meaning], one per name; `dark` picks the colours.
export function lookOfCauses(names, looks, dark) {
  return names.map((name, i) => {
    const [family, onLight, onDark, meaning] = looks[i] ?? ['unknown', '#777777', '#999999', ''];
    const colour = dark ? onDark : onLight;
    return {name, family, colour, ink: inkOn(colour), meaning};
  });
}

// Black or white, whichever contrasts more with a #rrggbb colour (WCAG 2 relative luminance).
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((i) => {
    const value = parseInt(colour.slice(i, i + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? '#ffffff' : '#000000';
}

// Waiting of threads that serve no requests, which needs no attention: a background thread waits for work.
export function isQuiet(name) {
  return name === 'idle' || name === 'lock-wait' || name === 'sleep';
}
