// Requests and streams. Answers are kept in memory by address, so that one that did not change is not sent again.
import { useEffect, useRef, useState } from 'preact/hooks';
import { keepToken, me, stale, token } from './state';
import type { Me, Patch } from './types';

export class Failure extends Error {
  constructor(readonly status: number, text: string) { super(text); }
}

const kept = new Map<string, { tag: string; body: unknown }>();

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Authorization: 'Bearer ' + token.value };
  const have = kept.get(path);
  if (have) headers['If-None-Match'] = have.tag;
  const r = await fetch('/api/v1/' + path, { headers, signal: signal ?? null });
  if (r.status === 304 && have) return have.body as T;
  if (!r.ok) throw await failure(r);
  const body = await r.json() as T;
  const tag = r.headers.get('ETag');
  if (tag) {
    if (kept.size > 20) kept.delete(kept.keys().next().value!);
    kept.set(path, { tag, body });
  }
  return body;
}

// post asks for something to be done. Nothing is done without a token, so no other site can ask in somebody's name.
export async function post<T>(path: string, body: unknown): Promise<T> {
  let r: Response;
  try {
    r = await fetch('/api/v1/' + path, { method: 'POST', headers: { Authorization: 'Bearer ' + token.value, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  } catch { throw new Failure(0, 'The console does not answer.'); }
  if (!r.ok) throw await failure(r);
  return await r.json() as T;
}

async function failure(r: Response): Promise<Failure> {
  let text = r.statusText;
  try { text = (await r.json() as { error: string }).error; } catch { /* no JSON */ }
  if (r.status === 401) { kept.clear(); keepToken('', false); me.value = null; }
  return new Failure(r.status, text);
}

// exchange gives the ticket of the link for a token.
export async function exchange(ticket: string): Promise<void> {
  const r = await fetch('/api/v1/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ ticket }) });
  if (!r.ok) throw await failure(r);
  keepToken((await r.json() as { token: string }).token, true);
}

export async function whoami(): Promise<void> {
  me.value = await get<Me>('me');
}

export interface Stream { close(): void }

// follow reads a stream for as long as it is not closed: cut, it goes on where it ended, and says so on the page until it is back.
// One that is refused, because of who asks or what for, is "denied" and ends.
export function follow<P = Patch>(path: string, since: string, take: (kind: string, p: P) => void): Stream {
  const control = new AbortController();
  let last = since, wait = 1000;
  const run = async () => {
    while (!control.signal.aborted) {
      try {
        const r = await fetch('/api/v1/' + path + (last ? '&since=' + last : ''), { headers: { Authorization: 'Bearer ' + token.value }, signal: control.signal });
        if (!r.ok || !r.body) {
          const f = await failure(r);
          if (f.status === 401 || f.status === 403 || f.status === 400) { take('denied', {} as P); return; }
          throw f;
        }
        const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          text += value;
          for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
            const message = parse<P>(text.slice(0, end));
            text = text.slice(end + 2);
            if (!message) continue;
            stale.value = null;
            wait = 1000;
            last = message.id;
            take(message.kind, message.data);
            if (message.kind === 'denied') return;
          }
        }
      } catch { /* cut: below */ }
      if (control.signal.aborted) return;
      stale.value ??= new Date();
      await new Promise((r) => setTimeout(r, wait));
      wait = Math.min(wait * 2, 15000);
    }
  };
  void run();
  return { close() { control.abort(); stale.value = null; } };
}

function parse<P>(block: string): { kind: string; id: string; data: P } | null {
  let kind = '', id = '', data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) kind = line.slice(7);
    else if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('data: ')) data = line.slice(6);
  }
  return kind && data ? { kind, id, data: JSON.parse(data) as P } : null;
}

export interface Loaded<T> { data: T | null; error: Failure | null; reload(): void }

// every is how often a page about one thing is read again, for what no stream tells: a pod of its control plane, say.
const every = 10000;

// After a change the page is read again each second for a while: one change is followed by others, of which no stream tells all.
const soon = 1000, restless = 15000;

// useApi reads a page, and again when the stream of its topic says that it changed.
export function useApi<T>(path: string, topic: string, pace: (data: T | null) => number = () => every): Loaded<T> {
  const [state, set] = useState<{ path: string; data: T | null; error: Failure | null }>({ path, data: null, error: null });
  const again = useRef(() => {}), paced = useRef(pace), shown = useRef<T | null>(null);
  paced.current = pace;
  shown.current = state.path === path ? state.data : null;
  useEffect(() => {
    const control = new AbortController();
    let busy = false, due = false, last = 0;
    const load = async () => {
      if (busy) { due = true; return; }
      busy = true;
      try {
        const wait = last + 1000 - Date.now();
        if (wait > 0) await new Promise((r) => setTimeout(r, wait));
        last = Date.now();
        const data = await get<T>(path, control.signal);
        if (!topic) stale.value = null;
        set((s) => s.path === path && s.data === data && !s.error ? s : { path, data, error: null });
      } catch (e) {
        if (control.signal.aborted) return;
        const error = e instanceof Failure ? e : new Failure(0, 'The console does not answer.');
        if (error.status === 0) stale.value ??= new Date();
        // What was there stays when the console can't be reached; what one may not see any more goes.
        set((s) => ({ path, data: s.path === path && (error.status === 0 || error.status >= 500 || error.status === 429) ? s.data : null, error }));
      } finally {
        busy = false;
        if (due && !control.signal.aborted) { due = false; void load(); }
      }
    };
    again.current = () => void load();
    void load();
    let touched = 0;
    const pause = () => Date.now() - touched < restless ? soon : paced.current(shown.current);
    const tick = () => { if (!document.hidden) void load(); timer = window.setTimeout(tick, pause()); };
    let timer = window.setTimeout(tick, paced.current(null));
    const stream = topic ? follow('stream?topic=' + encodeURIComponent(topic), '', (kind, p) => {
      if (kind !== 'reset' && !p.touched) return;
      if (p.touched) touched = Date.now();
      void load();
      clearTimeout(timer);
      timer = window.setTimeout(tick, pause());
    }) : null;
    return () => { control.abort(); clearTimeout(timer); stream?.close(); };
  }, [path, topic]);
  return { data: state.path === path ? state.data : null, error: state.path === path ? state.error : null, reload: () => again.current() };
}
