// Events, the newest first, repeats together. Paused, the page stays as it is.
import { useEffect, useState } from 'preact/hooks';
import { useApi } from './api';
import { query, setQuery } from './state';
import type { Event } from './types';
import { Card, Page, Search, Since } from './ui';

interface List { rows: Event[]; more: boolean }

export function EventsView() {
  return <><header class="head"><h1>Events</h1><p class="quiet">What the API server still knows: it forgets events after an hour.</p></header><EventList hc="" /></>;
}

export function EventList({ hc }: { hc: string }) {
  const q = query(), p = new URLSearchParams();
  if (hc) p.set('hc', hc);
  for (const f of ['q', 'ns', 'type']) { const v = q.get(f); if (v) p.set(f, v); }
  const of = useApi<List>('events' + (p.toString() ? '?' + p : ''), '');
  const [held, hold] = useState<List | null>(null);
  useEffect(() => {
    if (held) return;
    const t = setInterval(() => { if (!document.hidden) of.reload(); }, 3000);
    return () => clearInterval(t);
  }, [held, p.toString()]);
  const type = q.get('type') ?? '';
  return <>
    <div class="toolbar" role="search"><div class="segments" role="group" aria-label="Type">{[['', 'All'], ['Warning', 'Warnings'], ['Normal', 'Normal']].map(([k, title]) => <button type="button" key={k} aria-pressed={type === k} onClick={() => setQuery({ type: k! })}>{title}</button>)}</div>
      <Search value={q.get('q') ?? ''} onInput={(v) => setQuery({ q: v })} label="Search objects, reasons, messages" />
      <button type="button" class="plain" aria-pressed={!!held} onClick={() => hold(held ? null : of.data)}>{held ? 'Go on' : 'Pause'}</button></div>
    <Page of={held ? { ...of, data: held, error: null } : of}>{(d: List) => d.rows.length ? <Card title="Newest first" aside={<span class="quiet">{d.more ? 'not all are shown: narrow the search' : `${d.rows.length} shown`}</span>}>
      <ol class="events">{d.rows.map((e) => <li key={e.kind + e.ns + e.name + e.reason + e.message} class={e.type === 'Warning' ? 'warning' : ''}><span class="when"><Since at={e.at} /></span>
        <span class="what"><b>{e.reason}</b>{e.count > 1 ? <span class="count" title={`first ${new Date(e.first).toLocaleString()}`}>×{e.count}</span> : null}<span class="object">{e.kind} {e.ns}/{e.name}</span></span><span class="message">{e.message}</span></li>)}</ol></Card>
      : <div class="empty"><h2>No events</h2></div>}</Page>
  </>;
}
