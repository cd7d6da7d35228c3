// Small things that all pages are made of.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { go, now, route } from './state';
import type { Condition, Health, Why } from './types';
import type { Loaded } from './api';

// A glyph for each health: nobody has to tell colours apart.
const glyphs: Record<Health, string> = {
  Healthy: 'M3 8.5l3.2 3.2L13 4.8', Progressing: 'M8 3a5 5 0 1 1-4.6 3M3 2.6v3.6h3.6', Deleting: 'M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.7 8.5h5.6l.7-8.5',
  Paused: 'M5.5 3.5v9M10.5 3.5v9', Blocked: 'M4.2 4.2l7.6 7.6M11.8 4.2l-7.6 7.6', Degraded: 'M8 2.5v6.5M8 12.6v.4', Unknown: 'M5.5 5.8a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.7M8 12.6v.4',
  Archived: 'M3 4h10v2.5H3zM4 6.5V13h8V6.5M6.5 9h3',
};

export function Glyph({ health }: { health: Health }) {
  return <svg class={'glyph h-' + health} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d={glyphs[health] ?? glyphs.Unknown} /></svg>;
}

export function Badge({ health, word }: { health: Health; word?: string }) {
  return <span class={'badge h-' + health}><Glyph health={health} />{word ?? health}</span>;
}

// A leads to a page without loading all of it again.
export function A({ href, children, ...rest }: { href: string; children: ComponentChildren } & JSX.IntrinsicElements['a']) {
  return <a href={href} {...rest} onClick={(e: MouseEvent) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    e.preventDefault();
    go(href);
  }}>{children}</a>;
}

export function ago(at: string | number | Date | undefined, from = now.value): string {
  if (!at) return '';
  return span(Math.max(0, (from - new Date(at).getTime()) / 1000));
}

// span is a time in its two largest units: 3d 4h, 5m 12s.
export function span(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 60) return s + ' s';
  const m = Math.floor(s / 60);
  if (m < 10) return `${m} min` + (s % 60 ? ` ${s % 60} s` : '');
  if (m < 60) return `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 24) return `${h} h` + (m % 60 && h < 10 ? ` ${m % 60} min` : '');
  const d = Math.floor(h / 24);
  return d < 10 && h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
}

export function Since({ at, prefix = '' }: { at?: string; prefix?: string }) {
  if (!at) return null;
  return <time dateTime={at} title={new Date(at).toLocaleString()}>{prefix}{ago(at)}</time>;
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, set] = useState(false);
  useEffect(() => {
    if (!done) return;
    const t = setTimeout(() => set(false), 1500);
    return () => clearTimeout(t);
  }, [done]);
  return <button type="button" class="copy" aria-label={`${label}: ${text}`} onClick={() => { void navigator.clipboard?.writeText(text).then(() => set(true)); }}>{done ? 'Copied' : label}</button>;
}

export function Command({ text }: { text: string }) {
  return <div class="command"><code tabIndex={0}>{text}</code><Copy text={text} /></div>;
}

export function Nodes({ ready, wanted }: { ready: number; wanted: number }) {
  const share = wanted ? Math.min(100, Math.round(100 * ready / wanted)) : 0;
  return <span class="nodes"><span class="num">{ready}/{wanted}</span>
    <span class={'meter' + (ready < wanted ? ' short' : '')} aria-hidden="true"><span style={{ width: share + '%' }} /></span></span>;
}

export function Version({ version, target }: { version?: string; target?: string }) {
  if (!version && !target) return <span class="quiet">none yet</span>;
  return <span class="version">{version ?? ''}{target ? <><span class="arrow" aria-hidden="true">→</span><span class="visually-hidden"> going to </span>{target}</> : null}</span>;
}

export function Card({ title, children, aside, id, class: more = '' }: { title: string; children: ComponentChildren; aside?: ComponentChildren; id?: string; class?: string }) {
  return <section class={'card ' + more} aria-labelledby={id ?? title.replace(/\W+/g, '-')}>
    <header><h2 id={id ?? title.replace(/\W+/g, '-')}>{title}</h2>{aside}</header>{children}
  </section>;
}

// Page shows what was read, that it is being read, or why it can't be.
export function Page<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.data) return <>{of.error ? <Trouble text={of.error.message} /> : null}{children(of.data)}</>;
  if (!of.error) return <div class="skeleton" role="status" aria-label="Loading"><i /><i /><i /><i /></div>;
  const titles: Record<number, string> = { 403: 'You may not see this', 404: 'There is nothing here', 0: 'The console does not answer' };
  return <div class="empty" role="alert"><h1>{titles[of.error.status] ?? 'This could not be read'}</h1><p>{of.error.message}</p>
    <p><button type="button" onClick={of.reload}>Try again</button> <A href="/">Back to the fleet</A></p></div>;
}

export function Trouble({ text }: { text: string }) {
  return <p class="trouble" role="status">{text}</p>;
}

export function Notes({ notes, title }: { notes?: string[]; title: string }) {
  if (!notes?.length) return null;
  return <details class="notes"><summary>{title} ({notes.length})</summary><ul>{notes.map((n) => <li>{n}</li>)}</ul></details>;
}

const moods: Record<Why['state'], { health: Health; title: string; heals: string }> = {
  Well: { health: 'Healthy', title: 'All is well', heals: '' },
  Waiting: { health: 'Progressing', title: 'Under way', heals: 'It ends by itself.' },
  Held: { health: 'Paused', title: 'Held', heals: 'It goes on when somebody, an order or a budget lets it.' },
  Broken: { health: 'Blocked', title: 'Somebody has to act', heals: 'It does not heal by itself.' },
};

// WhyPanel is the answer of the engine behind `hypershift why`.
export function WhyPanel({ why, command, brief }: { why: Why; command: string; brief?: boolean }) {
  const mood = moods[why.state];
  if (why.state === 'Well') {
    return <section class="why well" aria-label={'Why: ' + why.object.kind + ' ' + why.object.name}><Glyph health="Healthy" /><div><h2>Nothing is wrong</h2>
      {why.notes?.length ? <Notes notes={why.notes} title="Good to know" /> : null}</div></section>;
  }
  return <section class={'why ' + why.state.toLowerCase()} aria-label={'Why: ' + why.object.kind + ' ' + why.object.name}>
    <Glyph health={why.deleting ? 'Deleting' : mood.health} />
    <div>
      <p class="eyebrow">{why.deleting ? 'Being deleted' : mood.title}{why.since ? <> · for <Since at={why.since} /></> : null}</p>
      <h2>{why.cause}</h2>
      {why.do ? <p class="do"><strong>What to do</strong> {sentence(why.do)}</p> : null}
      {brief ? null : <>{why.chain && why.chain.length > 0 ? <ol class="chain" aria-label="Evidence, from the symptom to the cause">{why.chain.map((l, i) =>
        <li key={i} class={i === why.chain!.length - 1 ? 'root' : ''}><span class="object"><b>{l.object.kind}</b> {l.object.name}</span>
          <span class="said"><code>{l.field}</code> {l.text}</span>{l.since ? <span class="when"><Since at={l.since} /></span> : null}</li>)}</ol> : null}
      <p class="foot"><span>{mood.heals}</span>{why.rule ? <span>Rule <code>{why.rule}</code>, see docs/why.md</span> : null}</p>
      <Command text={command} />
      <Notes notes={why.notes} title="Good to know" /></>}
    </div>
  </section>;
}

export function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : first + '.';
}

export function Conditions({ list, of = '' }: { list: Condition[]; of?: string }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label={'Table of conditions ' + of}><table class="table conditions"><thead><tr><th scope="col">Condition</th><th scope="col">Status</th><th scope="col">Reason and message</th><th scope="col">For</th></tr></thead>
    <tbody>{list.map((c) => <tr key={c.type} class={c.counts && !c.good ? 'bad' : ''}><th scope="row">{c.type}</th>
      <td><span class={'status ' + (c.counts ? c.good ? 'good' : 'bad' : 'flat')}>{c.status}</span></td>
      <td><b>{c.reason}</b>{c.message ? <span class="message"> {c.message}</span> : null}</td><td class="num"><Since at={c.since} /></td></tr>)}</tbody></table></div>;
}

export interface TabOf { key: string; title: string; count?: number }

export function Tabs({ tabs, at, onPick }: { tabs: TabOf[]; at: string; onPick: (key: string) => void }) {
  return <div class="tabs" role="tablist" onKeyDown={(e) => {
    const i = tabs.findIndex((t) => t.key === at), step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const next = tabs[(i + step + tabs.length) % tabs.length]!;
    onPick(next.key);
    document.getElementById('tab-' + next.key)?.focus();
  }}>{tabs.map((t) => <button type="button" role="tab" id={'tab-' + t.key} aria-controls="tabpanel" aria-selected={t.key === at} tabIndex={t.key === at ? 0 : -1}
    onClick={() => onPick(t.key)}>{t.title}{t.count !== undefined ? <span class="count">{t.count}</span> : null}</button>)}</div>;
}

// Search writes what is typed into the address, a moment later.
export function Search({ value, onInput, label }: { value: string; onInput: (v: string) => void; label: string }) {
  const timer = useRef(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => { if (input.current && document.activeElement !== input.current) input.current.value = value; }, [value, route.value]);
  return <input ref={input} class="search" type="search" defaultValue={value} placeholder={label} aria-label={label} maxLength={200} spellcheck={false} autocomplete="off" onInput={(e) => {
    const v = e.currentTarget.value;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onInput(v), 150);
  }} />;
}

export function Select({ value, options, onPick, label }: { value: string; options: { name: string; count: number }[]; onPick: (v: string) => void; label: string }) {
  const list = value && !options.some((o) => o.name === value) ? [{ name: value, count: 0 }, ...options] : options;
  return <select class={'select' + (value ? ' set' : '')} aria-label={label} value={value} onChange={(e) => onPick(e.currentTarget.value)}>
    <option value="">{label}: any</option>{list.map((o) => <option key={o.name} value={o.name}>{o.name} ({o.count})</option>)}</select>;
}
