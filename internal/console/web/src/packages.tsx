// Packages: revisions, their phases in order, what fails in them, and what changed from one to the next.
import { useState } from 'preact/hooks';
import { useApi } from './api';
import { query, setQuery } from './state';
import { TimelineView } from './timeline';
import type { Package, PackagePage, Phase, Revision } from './types';
import { A, Badge, Card, Conditions, Notes, Page, Search, Since, Trouble, WhyPanel } from './ui';

interface List { rows: Package[]; matching: number; total: number; notWell: number; trouble?: string }

export function PackagesView() {
  const q = query(), p = new URLSearchParams();
  for (const f of ['q', 'ns', 'show']) { const v = q.get(f); if (v) p.set(f, v); }
  const of = useApi<List>('packages' + (p.toString() ? '?' + p : ''), 'packages');
  const show = q.get('show') ?? '';
  return <><header class="head"><h1>Packages</h1></header>
    <Page of={of}>{(d: List) => <>
      {d.trouble ? <Trouble text={d.trouble} /> : null}
      <div class="toolbar" role="search"><div class="segments" role="group" aria-label="Which"><button type="button" aria-pressed={show === 'notwell'} onClick={() => setQuery({ show: 'notwell' })}>Not well<span class="count">{d.notWell}</span></button>
        <button type="button" aria-pressed={show !== 'notwell'} onClick={() => setQuery({ show: '' })}>All<span class="count">{d.total}</span></button></div>
        <Search value={q.get('q') ?? ''} onInput={(v) => setQuery({ q: v })} label="Search names, images, causes" /></div>
      {d.rows.length ? <div class="card flush scroll" tabIndex={0} role="region" aria-label="Packages"><table class="table"><thead><tr><th scope="col">Health</th><th scope="col">Package</th><th scope="col">Why</th><th scope="col">Revision</th><th scope="col">Image</th><th scope="col">Rollout</th><th scope="col">Age</th></tr></thead>
        <tbody>{d.rows.slice(0, 300).map((k) => <tr key={k.ns + '/' + k.name}><td><Badge health={k.health} /></td><th scope="row" class="name"><A href={`/pkg/${encodeURIComponent(k.ns)}/${encodeURIComponent(k.name)}`}>{k.name}</A><span class="quiet">{k.ns}</span></th>
          <td class="message">{k.since && k.cause ? <b><Since at={k.since} /> </b> : null}{k.cause}</td><td class="num">{k.revision ?? ''}</td><td><code class="clip" title={k.image}>{k.image}</code></td>
          <td>{k.rollout ? <A href={'/rollout/' + encodeURIComponent(k.rollout)}>{k.rollout}</A> : null}</td><td class="num quiet"><Since at={k.created} /></td></tr>)}</tbody></table></div>
        : <div class="empty"><h2>{d.total ? 'No package matches' : 'No packages'}</h2></div>}
      {d.matching > 300 ? <p class="more">300 of {d.matching} are shown: narrow the search to see the others.</p> : null}
    </>}</Page></>;
}

export function PackageView({ ns, name }: { ns: string; name: string }) {
  const of = useApi<PackagePage>(`pkg/${encodeURIComponent(ns)}/${encodeURIComponent(name)}`, `pkg/${ns}/${name}`);
  const at = query().get('revision');
  return <Page of={of}>{(p: PackagePage) => {
    const chosen = p.revisions.find((r) => String(r.number) === at) ?? p.revisions[0];
    return <>
      <header class="head"><p class="crumbs"><A href="/packages">Packages</A> <span aria-hidden="true">/</span> <A href={'/packages?ns=' + encodeURIComponent(ns)}>{ns}</A></p>
        <div class="title"><h1>{p.package.name}</h1><Badge health={p.package.health} /></div>
        <dl class="facts"><div><dt>Revision</dt><dd>{p.package.revision ?? 'none yet'}</dd></div><div><dt>Age</dt><dd><Since at={p.package.created} /></dd></div>
          {p.package.rollout ? <div><dt>Rollout</dt><dd><A href={'/rollout/' + encodeURIComponent(p.package.rollout)}>{p.package.rollout}</A></dd></div> : null}<div><dt>Image</dt><dd><code>{p.package.image}</code></dd></div></dl></header>
      <WhyPanel why={p.why} command={p.command} />
      <div class="columns">
        <Card title="Revisions">{p.revisions.length ? <ol class="revisions">{p.revisions.map((r) => <li key={r.name}><button type="button" aria-pressed={r === chosen} onClick={() => setQuery({ revision: String(r.number) })}>
          <span><b>{r.number}</b> <Badge health={r.health} /></span><span class="quiet">{r.why || r.name}</span><span class="quiet"><Since at={r.created} prefix="made " /> ago</span></button></li>)}</ol> : <p class="quiet">No revision was made yet.</p>}
          {p.more ? <p class="quiet">{p.more} older ones are not shown.</p> : null}</Card>
        {chosen ? <Card title={`Revision ${chosen.number}`} aside={<span class="quiet">{chosen.probes} {chosen.probes === 1 ? 'probe' : 'probes'}</span>}><RevisionView r={chosen} /></Card> : null}
        <Card title="Timeline" class="wide"><TimelineView timeline={p.timeline} /></Card>
        <Card title="Conditions" class="wide"><Conditions list={p.conditions} /></Card>
      </div>
      <Notes notes={p.notes} title="What could not be read" />
    </>;
  }}</Page>;
}

function RevisionView({ r }: { r: Revision }) {
  return <>
    {r.collisions?.length ? <section class="collisions" aria-label="Objects of others"><p><b>These objects belong to somebody else, so this revision writes nothing beside them:</b></p>
      <ul>{r.collisions.map((c) => <li key={c.kind + c.ns + c.name}>{c.kind} <b>{c.name}</b>{c.ns ? <span class="quiet"> in {c.ns}</span> : null} <span class="arrow" aria-hidden="true">→</span> {c.owner}</li>)}</ul></section> : null}
    <ol class="phases">{r.phases.map((ph) => <PhaseView key={ph.name} ph={ph} />)}</ol>
    {r.changes.length ? <details class="notes"><summary>What changed against the revision before ({r.changes.length})</summary><ul class="diff">{r.changes.map((c) => <li key={c.object} class={c.change}><b>{c.change}</b> {c.object}{c.paths ? <ul>{c.paths.map((x) => <li key={x}><code>{x}</code></li>)}</ul> : null}</li>)}</ul></details>
      : r.unchanged ? <p class="quiet">It holds the same objects as the revision before.</p> : null}
  </>;
}

const states: Record<Phase['state'], string> = { done: 'done', failing: 'not there yet', waiting: 'waits for the phases before', archived: 'archived' };

function PhaseView({ ph }: { ph: Phase }) {
  const [open, set] = useState(ph.state === 'failing');
  const n = ph.objects.length + (ph.more ?? 0);
  return <li class={'phase ' + ph.state}><button type="button" aria-expanded={open} onClick={() => set(!open)}><i aria-hidden="true" /><b>{ph.name}</b><span class="quiet">{states[ph.state]}</span><span class="quiet">{n} {n === 1 ? 'object' : 'objects'}{ph.slices ? ` and ${ph.slices} slices` : ''}{ph.class ? `, class ${ph.class}` : ''}</span></button>
    {ph.message ? <p class="message">{ph.message}</p> : null}
    {open ? <ul>{ph.objects.map((o) => <li key={o.kind + o.ns + o.name} class={o.held ? 'held' : ''}><span aria-hidden="true">{o.held ? '✓' : '·'}</span> {o.kind} <b>{o.name}</b> <span class="quiet">{o.ns}{o.held ? '' : ', not written yet'}</span></li>)}</ul> : null}</li>;
}
