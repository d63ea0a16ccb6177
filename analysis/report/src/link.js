// SPDX-License-Identifier: MIT
// What the page shows, as the fragment of its address: whoever opens a copied address sees the same. Nothing of it is sent
// anywhere: a fragment never leaves the browser.

import {decimals} from './format.js';

// {from, to, causes, episode, request, find, theme} <-> "t=12.3..12.9&cause=fork&find=GET". What is as on opening is left out.
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

// Of what is none of these, or makes no sense, nothing is taken.
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

// Keeps the address up to date with current(), and calls apply(state) when somebody changes it.
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
    // Browsers bound how often an address may be written: once a wheel has come to rest.
    changed() {
      if (!timer) timer = setTimeout(write, 250);
    },
  };
}
