// What all pages share: where we are, who we are, whether what is shown is fresh.
import { signal } from '@preact/signals';
import type { Me } from './types';

export const route = signal(location.pathname + location.search);
export const me = signal<Me | null>(null);
// The bearer token lives in memory. Of a console on one's own machine it is good for that process alone, and is kept for the tab; one of a management
// cluster is kept only for who asks for that.
export const token = signal(read('token'));
export const stale = signal<Date | null>(null); // since when nothing was heard; null: all is live
export const now = signal(Date.now());
export const said = signal(''); // for screen readers
export const theme = signal(readTheme());

function read(key: string): string {
  try { return sessionStorage.getItem(key) ?? ''; } catch { return ''; }
}
function readTheme(): string {
  try { return localStorage.getItem('theme') ?? ''; } catch { return ''; }
}

setInterval(() => { now.value = Date.now(); }, 1000);

export function keepToken(t: string, keep: boolean) {
  token.value = t;
  try {
    if (keep && t) sessionStorage.setItem('token', t);
    else sessionStorage.removeItem('token');
  } catch { /* a browser that keeps nothing */ }
}

export function setTheme(t: string) {
  theme.value = t;
  document.documentElement.dataset.theme = t;
  try { localStorage.setItem('theme', t); } catch { /* as above */ }
}

export function go(href: string, replace = false) {
  if (href === route.value) return;
  if (replace) history.replaceState(null, '', href);
  else { history.pushState(null, '', href); scrollTo(0, 0); }
  route.value = href;
}
addEventListener('popstate', () => { route.value = location.pathname + location.search; });

// query is the address's; setQuery changes some of it, '' takes out.
export function query(): URLSearchParams {
  return new URLSearchParams(route.value.split('?')[1] ?? '');
}
export function setQuery(changes: Record<string, string | string[]>, replace = true) {
  const q = query();
  for (const [k, v] of Object.entries(changes)) {
    q.delete(k);
    for (const one of Array.isArray(v) ? v : [v]) if (one) q.append(k, one);
  }
  const text = q.toString();
  go(route.value.split('?')[0] + (text ? '?' + text : ''), replace);
}

let lastSaid = 0;
// say tells screen readers, at most every 5 s.
export function say(text: string) {
  if (Date.now() - lastSaid < 5000) return;
  lastSaid = Date.now();
  said.value = text;
}
