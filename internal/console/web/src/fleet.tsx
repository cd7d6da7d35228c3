// The fleet: what is not well first, a thousand rows of which only those in view are drawn, cell by cell as they change.
import { memo } from './memo';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Failure, follow, get } from './api';
import { useSweep } from './certificates';
import { go, now, query, route, say, setQuery } from './state';
import type { Cluster, Count, Fleet, Health, Summary, Sweep } from './types';
import { A, ago, Badge, Copy, Nodes, Page, Search, Select, Trouble, Version } from './ui';

const filters = ['q', 'health', 'ns', 'version', 'platform', 'label', 'show', 'sort'];
const severity: Record<string, number> = { Blocked: 0, Degraded: 1, Unknown: 2, Deleting: 3, Progressing: 4, Paused: 5, Healthy: 6 };
const key = (c: Cluster) => c.ns + '/' + c.name;

const orders: Record<string, (a: Cluster, b: Cluster) => number> = {
  health: (a, b) => severity[a.health]! - severity[b.health]!, name: (a, b) => text(a.name, b.name), ns: (a, b) => text(a.ns, b.ns), version: (a, b) => text(a.version ?? '', b.version ?? ''),
  platform: (a, b) => text(a.platform, b.platform), nodes: (a, b) => (a.ready - a.wanted) - (b.ready - b.wanted), age: (a, b) => text(b.created, a.created),
};
function text(a: string, b: string) { return a < b ? -1 : a > b ? 1 : 0; }
function sorted(rows: Iterable<Cluster>, sort: string): Cluster[] {
  const by = orders[sort.replace('-', '')] ?? orders.health!, way = sort.startsWith('-') ? -1 : 1;
  return [...rows].sort((a, b) => way * by(a, b) || text(a.ns, b.ns) || text(a.name, b.name));
}

// useFleet reads the list of a query and follows it.
function useFleet(search: string) {
  const [state, set] = useState<{ search: string; fleet: Fleet | null; error: Failure | null }>({ search, fleet: null, error: null });
  const again = useRef(() => {});
  useEffect(() => {
    const control = new AbortController();
    let close = () => {}, timer = 0;
    const load = async () => {
      try {
        const fleet = await get<Fleet>('fleet?' + search, control.signal);
        set({ search, fleet, error: null });
        close();
        const p = new URLSearchParams(search);
        p.set('show', fleet.show);
        p.set('topic', 'fleet');
        let rows = new Map(fleet.rows.map((c) => [key(c), c])), last = fleet;
        const stream = follow('stream?' + p, `${fleet.epoch}-${fleet.seq}`, (kind, patch) => {
          if (kind === 'reset') { void load(); return; }
          if (kind !== 'patch') return;
          for (const c of patch.rows ?? []) rows.set(key(c), c);
          for (const k of patch.gone ?? []) rows.delete(k);
          const summary = patch.summary ?? last.summary;
          if (summary.notWell !== last.summary.notWell) say(`${summary.notWell} of ${summary.total} hosted clusters are not well`);
          last = { ...last, rows: patch.rows || patch.gone ? sorted(rows.values(), p.get('sort') ?? 'health') : last.rows, summary, matching: Math.max(rows.size, last.matching > last.rows.length ? last.matching : 0) };
          set({ search, fleet: last, error: null });
        });
        close = () => stream.close();
      } catch (e) {
        if (control.signal.aborted) return;
        const error = e instanceof Failure ? e : new Failure(0, 'The console does not answer.');
        set((s) => ({ search, fleet: s.fleet, error }));
        if (error.status !== 401) timer = window.setTimeout(load, 3000);
      }
    };
    again.current = () => void load();
    void load();
    return () => { control.abort(); clearTimeout(timer); close(); };
  }, [search]);
  return { data: state.fleet, error: state.error, reload: () => again.current(), fresh: state.search === search };
}

export function FleetView() {
  const q = query();
  const search = useMemo(() => {
    const p = new URLSearchParams();
    for (const f of filters) { const v = q.get(f); if (v) p.set(f, v); }
    return p.toString();
  }, [route.value]);
  const of = useFleet(search), { sweep } = useSweep();
  const rows = useRef<Cluster[]>([]);
  rows.current = of.data?.rows ?? [];
  return <Page of={of}>{(fleet: Fleet) => <>
    <h1 class="visually-hidden">Fleet</h1>
    <Overview s={fleet.summary} sweep={sweep} />
    {fleet.trouble ? <Trouble text={fleet.trouble} /> : null}
    <Toolbar s={fleet.summary} show={fleet.show} rows={rows} at={route.value} />
    <Table fleet={fleet} sort={q.get('sort') ?? 'health'} search={search} />
  </>}</Page>;
}

const Overview = memo(({ s, sweep }: { s: Summary; sweep: Sweep | null }) => {
  const tile = (n: number | string, what: string, href: string, mood = '') => <A href={href} class={'tile ' + mood}><b>{n}</b><span>{what}</span></A>;
  return <section class="overview" aria-label="Overview">
    <div class="tiles">
      {tile(s.total, s.total === 1 ? 'hosted cluster' : 'hosted clusters', '/?show=all')}
      {tile(s.notWell, 'not well', '/?show=notwell', s.notWell ? 'bad' : 'good')}
      {tile(s.upgrading, 'changing version', '/?show=all&health=Progressing', s.upgrading ? 'busy' : '')}
      {tile(s.stuckDeletions, s.stuckDeletions === 1 ? 'stuck deletion' : 'stuck deletions', '/?show=all&health=Deleting', s.stuckDeletions ? 'bad' : '')}
      {tile(s.heldRollouts, s.heldRollouts === 1 ? 'rollout held' : 'rollouts held', '/rollouts', s.heldRollouts ? 'warn' : '')}
      {sweep && sweep.checked ? tile(sweep.rows.length + (sweep.left ? '…' : ''), sweep.rows.length === 1 ? 'certificate ends soon' : 'certificates end soon', '/certificates', sweep.rows.length ? 'bad' : '') : null}
      {tile(`${s.nodes}/${s.nodesWanted}`, 'nodes ready', '/?show=all&sort=nodes', s.nodes < s.nodesWanted ? 'warn' : '')}
    </div>
    <div class="bars"><Health s={s} /><Versions versions={s.versions} total={s.total} /></div>
  </section>;
});

function Health({ s }: { s: Summary }) {
  return <figure class="stack"><figcaption>Health</figcaption><div class="bar">{s.health.map((h) => <A key={h.name} href={'/?show=all&health=' + h.name} class={'h-' + h.name}
    style={{ flexGrow: h.count }} aria-label={`${h.count} ${h.name}`} title={`${h.count} ${h.name}`}><span /></A>)}</div>
    <ul>{s.health.map((h) => <li key={h.name}><Badge health={h.name as Health} /> <b>{h.count}</b></li>)}</ul></figure>;
}

function Versions({ versions, total }: { versions: Count[]; total: number }) {
  const shown = versions.slice(0, 5), rest = total - shown.reduce((n, v) => n + v.count, 0);
  return <figure class="stack"><figcaption>Versions</figcaption><div class="bar">{shown.map((v, i) => <A key={v.name} href={'/?show=all&version=' + encodeURIComponent(v.name)} class={'v' + i}
    style={{ flexGrow: v.count }} aria-label={`${v.count} at ${v.name}`} title={`${v.count} at ${v.name}`}><span /></A>)}
    {rest > 0 ? <span class="v5" style={{ flexGrow: rest }} /> : null}</div>
    <ul>{shown.map((v, i) => <li key={v.name}><i class={'v' + i} aria-hidden="true" />{v.name} <b>{v.count}</b></li>)}{rest > 0 ? <li>others <b>{rest}</b></li> : null}</ul></figure>;
}

// Toolbar is drawn again when counts or the address change, and not with each row; rows are those to download.
const Toolbar = memo(({ s, show, rows }: { s: Summary; show: string; rows: { current: Cluster[] }; at: string }) => {
  const q = query();
  const pick = (name: string) => (v: string) => setQuery({ [name]: v });
  const any = filters.some((f) => f !== 'show' && f !== 'sort' && q.get(f));
  return <div class="toolbar" role="search">
    <div class="segments" role="group" aria-label="Which">{([['notwell', 'Not well', s.notWell], ['all', 'All', s.total]] as const).map(([k, title, n]) =>
      <button type="button" key={k} aria-pressed={show === k} onClick={() => setQuery({ show: k })}>{title}<span class="count">{n}</span></button>)}</div>
    <Search value={q.get('q') ?? ''} onInput={pick('q')} label="Search names, causes, labels" />
    <Select label="Health" value={q.get('health') ?? ''} options={s.health} onPick={pick('health')} />
    <Select label="Version" value={q.get('version') ?? ''} options={s.versions} onPick={pick('version')} />
    <Select label="Namespace" value={q.get('ns') ?? ''} options={s.namespaces} onPick={pick('ns')} />
    {s.platforms.length > 1 || q.get('platform') ? <Select label="Platform" value={q.get('platform') ?? ''} options={s.platforms} onPick={pick('platform')} /> : null}
    {s.labels.length > 0 || q.get('label') ? <Select label="Label" value={q.get('label') ?? ''} options={s.labels} onPick={pick('label')} /> : null}
    {any ? <button type="button" class="plain" onClick={() => setQuery({ q: '', health: '', ns: '', version: '', platform: '', label: '' })}>Clear</button> : null}
    <span class="grow" />
    <Copy text={q.get('ns') ? `hypershift get clusters -n ${q.get('ns')}` : 'hypershift get clusters -A'} label="Copy command" />
    <button type="button" class="plain" onClick={() => download(rows.current, 'csv')}>CSV</button>
    <button type="button" class="plain" onClick={() => download(rows.current, 'json')}>JSON</button>
  </div>;
});

function download(rows: Cluster[], kind: 'csv' | 'json') {
  const cell = (v: unknown) => { const t = String(v ?? ''); return '"' + (/^[=+\-@\t]/.test(t) ? "'" + t : t).replace(/"/g, '""') + '"'; };
  const body = kind === 'json' ? JSON.stringify(rows, null, 2)
    : ['namespace,name,health,cause,since,version,target,platform,ready,wanted,created', ...rows.map((c) => [c.ns, c.name, c.health, c.cause, c.since, c.version, c.target, c.platform, c.ready, c.wanted, c.created].map(cell).join(','))].join('\n');
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([body], { type: kind === 'json' ? 'application/json' : 'text/csv' }));
  a.download = 'hosted-clusters.' + kind;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

const columns = [['health', 'Health'], ['name', 'Hosted cluster'], ['', 'Why'], ['version', 'Version'], ['nodes', 'Nodes'], ['platform', 'Platform'], ['age', 'Age']] as const;

function Table({ fleet, sort, search }: { fleet: Fleet; sort: string; search: string }) {
  const rows = fleet.rows;
  const body = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  const height = narrow ? 76 : 44;
  const [view, setView] = useState({ from: 0, to: 40 });
  const [at, setAt] = useState(-1);
  const list = useRef(rows);
  list.current = rows;
  useEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / height) - 8), to = Math.ceil((innerHeight - top) / height) + 8;
      setView((v) => v.from === from && v.to === to ? v : { from, to });
    };
    const later = () => { frame ||= requestAnimationFrame(measure); };
    measure();
    addEventListener('scroll', later, { passive: true });
    addEventListener('resize', later);
    return () => { removeEventListener('scroll', later); removeEventListener('resize', later); cancelAnimationFrame(frame); };
  }, [height]);
  useEffect(() => { setAt(-1); }, [search]);
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if ((e.target as HTMLElement).matches('input, select, textarea, [role=tab]') || e.metaKey || e.ctrlKey || e.altKey || document.querySelector('dialog[open]')) return;
      if (e.key !== 'j' && e.key !== 'k') return;
      e.preventDefault();
      setAt((i) => {
        const next = Math.max(0, Math.min(list.current.length - 1, i + (e.key === 'j' ? 1 : -1)));
        const top = (body.current?.getBoundingClientRect().top ?? 0) + next * height;
        if (top < 120) scrollBy(0, top - 120);
        else if (top + height > innerHeight - 20) scrollBy(0, top + height - innerHeight + 20);
        requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-row="${next}"] a`)?.focus({ preventScroll: true })));
        return next;
      });
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, [height]);
  if (rows.length === 0) {
    const filtered = fleet.summary.total > 0;
    return <div class="empty"><h2>{!filtered ? 'There is no hosted cluster yet' : fleet.show === 'notwell' && !search.replace(/show=\w+/, '') ? 'All hosted clusters are well' : 'No hosted cluster matches'}</h2>
      {!filtered ? <p>Make one: <code>hypershift create cluster --help</code></p> : <p><A href="/?show=all">Show all {fleet.summary.total}</A></p>}</div>;
  }
  const from = Math.min(view.from, Math.max(0, rows.length - 1)), to = Math.min(view.to, rows.length);
  return <div class="grid" role="table" aria-label="Hosted clusters" aria-rowcount={rows.length + 1}>
    <div role="rowgroup" class="ghead"><div role="row" class="grow-row">{columns.map(([k, title]) => <span role="columnheader" key={title} aria-sort={k && sort.replace('-', '') === k ? sort.startsWith('-') ? 'descending' : 'ascending' : undefined}>
      {k ? <button type="button" onClick={() => setQuery({ sort: sort === k ? '-' + k : k === 'health' ? '' : k })}>{title}<i aria-hidden="true">{sort.replace('-', '') === k ? sort.startsWith('-') ? '↓' : '↑' : ''}</i></button> : title}</span>)}</div></div>
    <div role="rowgroup" class="gbody" ref={body} style={{ height: rows.length * height + 'px' }}>
      {rows.slice(from, to).map((c, i) => <Row key={key(c)} c={c} top={(from + i) * height} index={from + i} chosen={from + i === at} group={fleet.summary.groupBy ? c.labels?.[fleet.summary.groupBy] : undefined} minute={Math.floor(now.value / 10000)} />)}
    </div>
    {fleet.matching > rows.length ? <p class="more">{rows.length} of {fleet.matching} are shown: narrow the search to see the others.</p> : null}
  </div>;
}

const Row = memo(({ c, top, index, chosen, group }: { c: Cluster; top: number; index: number; chosen: boolean; group?: string | undefined; minute: number }) => {
  const href = `/hc/${encodeURIComponent(c.ns)}/${encodeURIComponent(c.name)}`;
  return <div role="row" class={'grow-row row h-' + c.health + (chosen ? ' chosen' : '')} aria-rowindex={index + 2} data-row={index} style={{ transform: `translateY(${top}px)` }}
    onClick={(e) => { if (!(e.target as HTMLElement).closest('a') && !getSelection()?.toString()) go(href); }}>
    <span role="cell"><Badge health={c.health} /></span>
    <span role="cell" class="name"><A href={href}>{c.name}</A><span class="quiet">{c.ns}{group ? <> · <span title="group of rollouts">{group}</span></> : null}</span></span>
    <span role="cell" class="cause" title={c.cause}>{c.cause ? <>{c.since ? <b>{ago(c.since)}</b> : null}<Cause text={c.cause} /></> : null}</span>
    <span role="cell"><Version version={c.version} target={c.target} /></span>
    <span role="cell">{c.pools ? <Nodes ready={c.ready} wanted={c.wanted} /> : <span class="quiet">no pool</span>}</span>
    <span role="cell" class="quiet">{c.platform}</span>
    <span role="cell" class="num quiet">{ago(c.created)}</span>
  </div>;
});

// Cause puts what a condition says before its name: "1 of 3 members are ready  EtcdAvailable".
function Cause({ text }: { text: string }) {
  const m = /^(\w+)=\w+ \((\w+)\)(?:: ([^]*))?$/.exec(text);
  return m ? <span>{m[3] || m[2]}<code>{m[1]}</code></span> : <span>{text}</span>;
}

function useNarrow(): boolean {
  const media = useMemo(() => matchMedia('(max-width: 800px)'), []);
  const [is, set] = useState(media.matches);
  useEffect(() => {
    const on = () => set(media.matches);
    media.addEventListener('change', on);
    return () => media.removeEventListener('change', on);
  }, []);
  return is;
}
