// Rollouts over the fleet: groups in their order, who uses up the budget, and what the planner says will happen.
import { useMemo } from 'preact/hooks';
import { RolloutAction } from './actions';
import { useApi } from './api';
import { query, setQuery } from './state';
import { TimelineView } from './timeline';
import type { Cell, Rollout, RolloutPage } from './types';
import { A, Badge, Card, Command, Conditions, Page, sentence, Since, span, Trouble } from './ui';

export function RolloutsView() {
  const of = useApi<{ rows: Rollout[]; trouble?: string }>('rollouts', 'rollouts');
  return <Page of={of}>{(d: { rows: Rollout[]; trouble?: string }) => <>
    <header class="head"><h1>Rollouts</h1><p class="quiet">HostedClusterPackages, each over all hosted clusters that its selector matches.</p></header>
    {d.trouble ? <Trouble text={d.trouble} /> : null}
    {d.rows.length ? <div class="rollouts">{d.rows.map((r) => <A key={r.name} href={'/rollout/' + encodeURIComponent(r.name)} class="card rollout">
      <span class="title"><b>{r.name}</b><Badge health={r.health} /></span>
      <Progress r={r} />
      <span class="line">{r.updated} of {r.total} updated, {r.available} available{r.inFlight ? `, ${r.inFlight} in flight` : ''} · {r.strategy}</span>
      {r.cause ? <span class="line cause">{r.since ? <b><Since at={r.since} /> </b> : null}{r.cause}</span> : null}
      <code class="image">{r.image}</code></A>)}</div>
      : d.trouble ? null : <div class="empty"><h2>No rollouts</h2><p>A HostedClusterPackage rolls a package out over hosted clusters, group by group. See docs/fleet.md.</p></div>}
  </>}</Page>;
}

function Progress({ r }: { r: Rollout }) {
  const share = (n: number) => (r.total ? 100 * n / r.total : 0) + '%';
  return <span class="progress" role="img" aria-label={`${r.updated} of ${r.total} updated, ${r.available} available`}><span class="updated" style={{ width: share(r.updated) }} /><span class="flight" style={{ width: share(Math.min(r.inFlight, r.total - r.updated)) }} /></span>;
}

const letters: Record<Cell['state'], string> = { done: '✓', flight: '↻', down: '!', waiting: '·', skipped: '–', next: '→' };
const words: Record<Cell['state'], string> = { done: 'done', flight: 'in flight', down: 'down', waiting: 'waits', skipped: 'skipped', next: 'next' };

export function RolloutView({ name }: { name: string }) {
  const q = query(), fail = q.getAll('fail'), per = q.get('per') ?? '';
  const path = useMemo(() => {
    const p = new URLSearchParams();
    for (const f of fail) p.append('fail', f);
    if (per) p.set('per', per);
    return `rollout/${encodeURIComponent(name)}` + (p.toString() ? '?' + p : '');
  }, [name, fail.join(' '), per]);
  const of = useApi<RolloutPage>(path, 'rollout/' + name);
  return <Page of={of}>{(p: RolloutPage) => <>
    <header class="head"><p class="crumbs"><A href="/rollouts">Rollouts</A></p>
      <div class="title"><h1>{p.rollout.name}</h1><Badge health={p.rollout.health} /><span class="grow" /><RolloutAction name={p.rollout.name} paused={p.paused} onDone={of.reload} /></div>
      <dl class="facts"><div><dt>Updated</dt><dd>{p.rollout.updated} of {p.rollout.total}</dd></div><div><dt>Available</dt><dd>{p.rollout.available} of {p.rollout.total}</dd></div>
        <div><dt>Strategy</dt><dd>{p.rollout.strategy}</dd></div>{p.current ? <div><dt>Group</dt><dd>{p.current}{p.soaks ? ', the one before soaks' : ''}</dd></div> : null}
        <div><dt>Image</dt><dd><code>{p.rollout.image}</code></dd></div></dl></header>
    {p.warnings?.map((w) => <Trouble key={w} text={w} />)}
    {p.paused ? <section class="why held" aria-label="Paused"><span class="pause" aria-hidden="true" /><div><h2>Somebody has paused this rollout</h2><p>Nothing is changed before it is resumed.</p><Command text={p.commands.resume!} /></div></section>
      : p.said ? <p class="said-so">{sentence(p.said)}</p> : null}
    <div class="columns third">
      <Card title="Groups" class="wide" aside={<Legend />}><Groups p={p} fail={fail} /></Card>
      <Card title="Budget"><Gauge p={p} /></Card>
      <Card title="Forecast" aside={<span class="quiet">{p.finished ? 'nothing left to do' : p.forecast.finished ? 'ends in ' + span(p.forecast.seconds) : `stops after ${span(p.forecast.seconds)}, ${p.forecast.left} left`}</span>}><Forecast p={p} fail={fail} per={per} /></Card>
      <Card title="Timeline" class="wide"><TimelineView timeline={p.timeline} /></Card>
      <Card title="Conditions" class="wide"><Conditions list={p.conditions} /></Card>
      <Card title="As commands" class="wide"><div class="commands">{Object.entries(p.commands).filter(([k]) => k !== (p.paused ? 'pause' : 'resume')).map(([k, text]) => <div key={k}><p class="eyebrow">{k}</p><Command text={text} /></div>)}</div></Card>
    </div>
  </>}</Page>;
}

function Gauge({ p }: { p: RolloutPage }) {
  if (p.budget < 0) return <p>All hosted clusters are changed at once: there is no budget. {p.used ? `${p.used} are unavailable now.` : ''}</p>;
  const slots = Math.max(p.budget, p.used, 1), many = slots > 40;
  return <div class="gauge"><p class="big"><b>{p.used}</b> of {p.budget} used</p>
    <div class={'slots' + (p.used >= p.budget ? ' full' : '')} role="img" aria-label={`${p.used} of ${p.budget} used`}>{many ? <span class="meter"><span style={{ width: Math.min(100, 100 * p.used / slots) + '%' }} /></span>
      : Array.from({ length: slots }, (_, i) => <i key={i} class={(i < p.used ? 'on' : '') + (i >= p.budget ? ' over' : '')} />)}</div>
    {p.by.length ? <><p class="quiet">by</p><ul class="by">{p.by.slice(0, 12).map((c) => <li key={c}><A href={'/hc/' + c}>{c}</A></li>)}</ul>{p.by.length > 12 ? <p class="quiet">and {p.by.length - 12} more</p> : null}</>
      : <p class="quiet">All that may be unavailable is free.</p>}</div>;
}

function Legend() {
  return <ul class="legend">{(Object.keys(words) as Cell['state'][]).map((s) => <li key={s}><span class={'cell ' + s} aria-hidden="true">{letters[s]}</span>{words[s]}</li>)}</ul>;
}

function Groups({ p, fail }: { p: RolloutPage; fail: string[] }) {
  if (!p.groups.length) return <p class="quiet">The selector matches no hosted cluster.</p>;
  return <div class="groups">{p.groups.map((g) => {
    const done = g.cells.filter((c) => c.state === 'done').length, named = g.cells.length <= 16;
    return <section key={g.name} class={'group' + (g.name && g.name === p.current ? ' current' : '')} aria-label={'Group ' + (g.name || 'all')}>
      <header><b>{g.name || 'all hosted clusters'}</b><span class="quiet">{done} of {g.cells.length} done</span></header>
      <div class={named ? 'cells named' : 'cells'}>{g.cells.slice(0, 1000).map((c) => <button type="button" key={c.cluster} class="pick" aria-pressed={c.fails ?? false}
        title={`${c.cluster}\n${words[c.state]}${c.wave ? `, wave ${c.wave} of the forecast` : ''}\n${c.reason}\nClick: what if it fails?`} onClick={() => setQuery({ fail: c.fails ? fail.filter((f) => f !== c.cluster) : [...fail, c.cluster] })}><span class={`cell ${c.state}${c.fails ? ' fails' : ''}`} aria-hidden="true">{c.fails ? '×' : c.state === 'waiting' || c.state === 'next' ? c.wave ?? letters[c.state] : letters[c.state]}</span><span class={named ? 'of' : 'visually-hidden'}>{c.cluster}</span><span class="visually-hidden">: {words[c.state]}{c.wave ? `, wave ${c.wave}` : ''}. What if it fails?</span></button>)}</div>
    </section>;
  })}</div>;
}

function Forecast({ p, fail, per }: { p: RolloutPage; fail: string[]; per: string }) {
  const f = p.forecast;
  return <div class="forecast">
    <div class="whatif"><label>Each takes <select class="select" value={per} onChange={(e) => setQuery({ per: e.currentTarget.value })} aria-label="How long each hosted cluster takes">{[['30s', '30 s'], ['1m', '1 min'], ['', '2 min'], ['5m', '5 min'], ['15m', '15 min'], ['1h', '1 h']].map(([v, t]) => <option key={v} value={v}>{t}</option>)}</select></label>
      {fail.length ? <span>What if {fail.map((c) => <button type="button" key={c} class="chip" aria-label={`${c} no longer fails`} onClick={() => setQuery({ fail: fail.filter((o) => o !== c) })}>{c} ×</button>)} {fail.length > 1 ? 'fail' : 'fails'}? <button type="button" class="plain" onClick={() => setQuery({ fail: [] })}>Clear</button></span>
        : <span class="quiet">What if one fails? Click it among the groups.</span>}</div>
    {f.waves.length ? <div class="scroll waves" tabIndex={0} role="region" aria-label="Waves"><table class="table"><thead><tr><th scope="col">Wave</th><th scope="col">In</th><th scope="col">Group</th><th scope="col">Budget</th><th scope="col">Hosted clusters</th></tr></thead>
      <tbody>{f.waves.map((w, i) => <tr key={i}><th scope="row">{i + 1}</th><td class="num">{w.after ? span(w.after) : 'now'}</td><td>{w.group}</td><td class="num">{w.budget < 0 ? w.used : `${w.used}/${w.budget}`}</td>
        <td>{w.returned ? <b>back to the last good version: </b> : null}{few(w.clusters)}</td></tr>)}</tbody></table></div> : <p class="quiet">{p.finished ? 'Every hosted cluster has the newest version.' : p.paused ? 'It is paused: nothing would be started.' : 'Nothing would be started now.'}</p>}
    {f.more ? <p class="quiet">{f.more} more waves follow.</p> : null}
  </div>;
}

function few(list: string[]) {
  return <span title={list.join('\n')}>{list.slice(0, 4).join(', ')}{list.length > 4 ? ` and ${list.length - 4} more` : ''}</span>;
}
