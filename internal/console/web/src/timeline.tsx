// What became of conditions: a row each, a bar for each stretch of time with one status. The table below has the same content.
import { useMemo, useState } from 'preact/hooks';
import { now, query, setQuery } from './state';
import type { Entry, Event, Timeline } from './types';
import { Since } from './ui';

const spans: [string, string, number][] = [['15m', '15 min', 900], ['1h', '1 h', 3600], ['24h', '24 h', 86400], ['all', 'All', 0]];

interface Stretch { from: number; to: number; entry: Entry }

// What warnings are drawn at most; all are in the table.
const mostTicks = 60;

export function TimelineView({ timeline, events = [] }: { timeline: Timeline; events?: Event[] }) {
  const [picked, pick] = useState<Entry | null>(null);
  const entries = timeline.entries, end = now.value;
  const oldest = entries.length ? Date.parse(entries[0]!.at) : end;
  const chosen = query().get('span') ?? (entries.length && end - Date.parse(entries[entries.length - 1]!.at) < 3600e3 && end - oldest > 3600e3 * 2 ? '1h' : 'all');
  const length = (spans.find((s) => s[0] === chosen)?.[2] ?? 0) * 1000 || Math.max(60e3, (end - oldest) * 1.04), start = end - length;
  const rows = useMemo(() => {
    const by = new Map<string, Entry[]>();
    for (const e of entries) by.set(e.type, [...by.get(e.type) ?? [], e]);
    const out = [...by].map(([type, list]) => {
      const last = list[list.length - 1]!;
      return { type, list, last, moves: list.length };
    });
    // What is bad now, then what was, then the rest.
    const rank = (r: (typeof out)[0]) => r.last.counts && !r.last.good && r.last.to ? 0 : r.list.some((e) => e.counts && !e.good && e.to) ? 1 : r.last.counts ? 2 : 3;
    return out.sort((a, b) => rank(a) - rank(b) || a.type.localeCompare(b.type));
  }, [entries]);
  const all = query().get('lanes') === 'all', setAll = (v: boolean) => setQuery({ lanes: v ? 'all' : '' });
  const shown = all ? rows : rows.slice(0, 12);
  const at = (t: number) => Math.max(0, Math.min(100, 100 * (t - start) / length));
  const happened = events.filter((e) => { const t = Date.parse(e.at); return t >= start && t <= end; });
  if (!entries.length) return <p class="quiet">Nothing has happened yet.</p>;
  const first = timeline.first >= 0 ? entries[timeline.first] : undefined;
  return <div class="timeline">
    <div class="segments small" role="group" aria-label="Time shown">{spans.map(([k, title]) => <button type="button" key={k} aria-pressed={chosen === k} onClick={() => setQuery({ span: k })}>{title}</button>)}</div>
    {timeline.note ? <p class="quiet">{timeline.note}</p> : null}
    {first ? <p class="first">The present trouble began <Since at={first.at} /> ago with <b>{first.type}={first.to}</b>{first.reason ? ` (${first.reason})` : ''}.</p> : null}
    <div class="lanes" aria-hidden="true">
      {shown.map((r) => <div class="lane" key={r.type}><span class="label" title={r.type}>{r.type}</span><span class="track">
        {stretches(r.list, start, end).map((s) => <button type="button" tabIndex={-1} key={s.from + s.entry.at} class={'bar ' + mood(s.entry)} style={{ left: at(s.from) + '%', width: Math.max(0.4, at(s.to) - at(s.from)) + '%' }}
          title={`${s.entry.type}=${s.entry.to || 'gone'} (${s.entry.reason ?? ''}) since ${new Date(s.entry.at).toLocaleString()}\n${s.entry.message ?? ''}`} onClick={() => pick(s.entry)} />)}
        {first && first.type === r.type ? <i class="mark" style={{ left: at(Date.parse(first.at)) + '%' }} /> : null}</span></div>)}
      {happened.length ? <div class="lane warnings"><span class="label">Warning events</span><span class="track">{happened.slice(0, mostTicks).map((e, i) => <i key={i} style={{ left: at(Date.parse(e.at)) + '%' }} title={`${e.reason} ${e.kind} ${e.name}, ${new Date(e.at).toLocaleString()}\n${e.message}`} />)}</span></div> : null}
      <div class="lane axis"><span class="label" /><span class="track">{ticks(start, end).map((t) => <span key={t.at} style={{ left: at(t.at) + '%' }}>{t.text}</span>)}</span></div>
    </div>
    {rows.length > 12 ? <button type="button" class="plain" onClick={() => setAll(!all)}>{all ? 'Fewer conditions' : `All ${rows.length} conditions`}</button> : null}
    {picked ? <p class="picked"><b>{picked.type}</b> became <b>{picked.to || 'gone'}</b> {picked.reason ? `(${picked.reason}) ` : ''}at {new Date(picked.at).toLocaleString()}. {picked.message}</p> : null}
    <details class="notes"><summary>The same as a table ({entries.length} changes)</summary><div class="scroll" tabIndex={0} role="region" aria-label="Changes of conditions"><table class="table">
      <thead><tr><th scope="col">Time</th><th scope="col">Condition</th><th scope="col">From</th><th scope="col">To</th><th scope="col">Reason and message</th></tr></thead>
      <tbody>{[...entries].reverse().map((e, i) => <tr key={i} class={e === first ? 'bad' : ''}><td class="num"><time dateTime={e.at}>{new Date(e.at).toLocaleString()}</time></td><th scope="row">{e.type}</th><td>{e.from ?? ''}</td><td>{e.to ?? 'gone'}</td><td><b>{e.reason}</b> <span class="message">{e.message}</span></td></tr>)}</tbody></table></div></details>
    {events.length ? <details class="notes"><summary>Warning events ({events.length})</summary><div class="scroll" tabIndex={0} role="region" aria-label="Warning events"><table class="table">
      <thead><tr><th scope="col">Time</th><th scope="col">Object</th><th scope="col">Reason and message</th></tr></thead>
      <tbody>{events.map((e, i) => <tr key={i}><td class="num"><time dateTime={e.at}>{new Date(e.at).toLocaleString()}</time></td><th scope="row">{e.kind} {e.name}{e.count > 1 ? ` ×${e.count}` : ''}</th><td><b>{e.reason}</b> <span class="message">{e.message}</span></td></tr>)}</tbody></table></div></details> : null}
  </div>;
}

function mood(e: Entry): string {
  if (!e.to) return 'gone';
  return !e.counts ? 'flat' : e.good ? 'good' : e.to === 'Unknown' ? 'unknown' : 'bad';
}

function stretches(list: Entry[], start: number, end: number): Stretch[] {
  const out: Stretch[] = [];
  list.forEach((entry, i) => {
    const from = Date.parse(entry.at), to = i + 1 < list.length ? Date.parse(list[i + 1]!.at) : end;
    if (to >= start && from <= end && entry.to) out.push({ from: Math.max(from, start), to, entry });
  });
  return out;
}

function ticks(start: number, end: number): { at: number; text: string }[] {
  const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000].map((s) => s * 1000);
  const step = steps.find((s) => (end - start) / s <= 6) ?? 7776000e3, out = [];
  const zone = new Date(end).getTimezoneOffset() * 60e3;
  for (let t = Math.ceil((start - zone) / step) * step + zone; t < end; t += step) {
    if ((t - start) / (end - start) > 0.95) continue;
    const d = new Date(t);
    out.push({ at: t, text: step >= 86400e3 ? d.toLocaleDateString(undefined, { month: 'short', day: 'numeric' }) : d.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' }) });
  }
  return out;
}
