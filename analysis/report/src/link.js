// SPDX-License-Identifier: MIT
// The state of the page as the fragment of its address, so that a copied address shows the same. A fragment is never
// sent anywhere.

import {decimals} from './format.js';

// {from, to, causes, episode, request, find, theme} <-> "t=12.3..12.9&cause=fork&find=GET". Default values are omitted.
export function writeState(state) {
  const parts = [];
  const add = (name, value) => parts.push(`${name}=${encodeURIComponent(value).replace(/%20/g, '+').replace(/%2C/g, ',')}`);
  if (state.from !== undefined) {
    const digits = Math.max(3, decimals((state.to - state.from) / 1e4));
    add('t', `${state.from.toFixed(digits)}..${state.to.toFixed(digits)}`);
  }
  if (state.causes?.length) add('cause', state.causes.join(','));
  if (state.episode !== undefined) add('episode', state.episode);
  if (state.request !== undefined) add('request', state.request);
  if (state.find) add('find', state.find);
  if (state.theme) add('theme', state.theme);
  return parts.join('&');
}

// Unknown and invalid parts are ignored.
export function readState(fragment) {
  const state = {};
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const equals = part.indexOf('=');
    if (equals < 0) continue;
    let value;
    try {
      value = decodeURIComponent(part.slice(equals + 1).replace(/\+/g, ' '));
    } catch {
      continue;
    }
    const name = part.slice(0, equals);
    const whole = /^\d{1,15}$/.test(value) ? Number(value) : undefined;
    if (name === 't') {
      const found = /^(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)$/.exec(value);
      if (found && Number(found[1]) < Number(found[2])) [state.from, state.to] = [Number(found[1]), Number(found[2])];
    } else if (name === 'cause') state.causes = value.split(',').filter(Boolean);
    else if ((name === 'episode' || name === 'request') && whole !== undefined) state[name] = whole;
    else if (name === 'find') state.find = value;
    else if (name === 'theme' && (value === 'dark' || value === 'light')) state.theme = value;
  }
  return state;
}

// Keeps the address up to date with current(), and calls apply(state) when the user changes it.
export function createLink(current, apply) {
  let timer = 0, written = location.hash.replace(/^#/, '');
  const write = () => {
    timer = 0;
    const state = writeState(current());
    if (state === written) return;
    written = state;
    history.replaceState(null, '', `${location.href.replace(/#.*$/, '')}${state ? '#' + state : ''}`);
  };
  addEventListener('hashchange', () => {
    const fragment = location.hash.replace(/^#/, '');
    if (fragment === written) return;
    written = fragment;
    apply(readState(fragment));
  });
  return {
    // Browsers limit how often an address may change, so it is written after the wheel has stopped.
    changed() {
      if (!timer) timer = setTimeout(write, 250);
    },
  };
}
