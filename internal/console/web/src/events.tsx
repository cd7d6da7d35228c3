// Events, the newest first, repeats together. Paused, the page stays as it is.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure, follow, get, type Loaded, type Stream } from './api';
import { query, setQuery } from './state';
import type { Event } from './types';
import { Card, Copy, Page, Search, Since } from './ui';

interface List { rows: Event[]; more: boolean; since: string }

const key = (e: Event) => [e.kind, e.ns, e.name, e.reason, e.message].join('\n');

// most rows are kept: the page is for what happens, not for all that happened.
const most = 500;

// useEvents reads the list, and then follows what happens. Who may not watch events has the list read again now and then.
function useEvents(params: string): Loaded<List> {
  const [state, set] = useState<{ params: string; data: List | null; error: Failure | null }>({ params, data: null, error: null });
  const again = useRef(() => {});
  useEffect(() => {
    const control = new AbortController();
    let stream: Stream | null = null, timer = 0;
    const later = (wait: number) => { clearTimeout(timer); timer = window.setTimeout(() => { if (document.hidden) later(wait); else void load(); }, wait); };
    const load = async () => {
      try {
        const list = await get<List>('events' + (params ? '?' + params : ''), control.signal);
        set({ params, data: list, error: null });
        stream?.close();
        let rows = new Map(list.rows.map((e) => [key(e), e]));
        stream = follow<{ events?: Event[] }>('events/stream?' + params, list.since, (kind, p) => {
          if (kind === 'reset') { stream?.close(); later(1000); return; }
          if (kind === 'denied') { later(10000); return; }
          if (!p.events?.length) return;
          for (const e of p.events) {
            const old = rows.get(key(e)), parts = { ...old?.parts, ...e.parts };
            rows.set(key(e), { ...e, first: old && old.first < e.first ? old.first : e.first, parts, count: Object.values(parts).reduce((a, b) => a + b, 0) });
          }
          const sorted = [...rows.values()].sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : 0), shown = sorted.slice(0, most);
          if (shown.length < sorted.length) rows = new Map(shown.map((e) => [key(e), e]));
          set({ params, data: { ...list, rows: shown, more: list.more || sorted.length > most }, error: null });
        });
      } catch (e) {
        if (control.signal.aborted) return;
        set((s) => ({ params, data: s.params === params ? s.data : null, error: e instanceof Failure ? e : new Failure(0, 'The console does not answer.') }));
        later(5000);
      }
    };
    again.current = () => void load();
    void load();
    return () => { control.abort(); clearTimeout(timer); stream?.close(); };
  }, [params]);
  return { data: state.params === params ? state.data : null, error: state.params === params ? state.error : null, reload: () => again.current() };
}

export function EventsView() {
  return <><header class="head"><h1>Events</h1><p class="quiet">What the API server still knows: it forgets events after an hour.</p></header><EventList hc="" /></>;
}

export function EventList({ hc }: { hc: string }) {
  const q = query(), p = new URLSearchParams();
  if (hc) p.set('hc', hc);
  for (const f of ['q', 'ns', 'type']) { const v = q.get(f); if (v) p.set(f, v); }
  const of = useEvents(p.toString());
  const [held, hold] = useState<List | null>(null);
  const type = q.get('type') ?? '', [ns, name] = hc.split('/');
  const command = hc ? `hypershift events ${name} -n ${ns}` + (type ? ' --types ' + type : '') : `kubectl get events ${q.get('ns') ? '-n ' + q.get('ns') : '-A'} --sort-by=.lastTimestamp` + (type ? ' --field-selector type=' + type : '');
  return <>
    <div class="toolbar" role="search"><div class="segments" role="group" aria-label="Type">{[['', 'All'], ['Warning', 'Warnings'], ['Normal', 'Normal']].map(([k, title]) => <button type="button" key={k} aria-pressed={type === k} onClick={() => setQuery({ type: k! })}>{title}</button>)}</div>
      <Search value={q.get('q') ?? ''} onInput={(v) => setQuery({ q: v })} label="Search objects, reasons, messages" />
      <button type="button" class="plain" aria-pressed={!!held} onClick={() => hold(held ? null : of.data)}>{held ? 'Go on' : 'Pause'}</button><span class="grow" /><Copy text={command} label="Copy command" /></div>
    <Page of={held ? { ...of, data: held, error: null } : of}>{(d: List) => d.rows.length ? <Card title="Newest first" aside={<span class="quiet">{d.more ? 'not all are shown: narrow the search' : `${d.rows.length} shown`}</span>}>
      <ol class="events">{d.rows.map((e) => <li key={key(e)} class={e.type === 'Warning' ? 'warning' : ''}><span class="when"><Since at={e.at} /></span>
        <span class="what"><b>{e.reason}</b>{e.count > 1 ? <span class="count" title={`first ${new Date(e.first).toLocaleString()}`}>×{e.count}</span> : null}<span class="object">{e.kind} {e.ns}/{e.name}</span></span><span class="message">{e.message}</span></li>)}</ol></Card>
      : <div class="empty"><h2>No events</h2></div>}</Page>
  </>;
}
