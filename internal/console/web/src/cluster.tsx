// A hosted cluster's story: why it is as it is, its parts, and what became of it.
import { useEffect, useState } from 'preact/hooks';
import { get, useApi } from './api';
import { CertificatesOf } from './certificates';
import { EventList } from './events';
import { GraphView } from './graph';
import { PoolsView } from './pools';
import { query, setQuery } from './state';
import { TimelineView } from './timeline';
import type { ClusterPage } from './types';
import { A, Badge, Card, Command, Conditions, Copy, Nodes, Notes, Page, Since, span, Tabs, Version, WhyPanel } from './ui';

// pace is how often the page is read again for what no stream tells: soon while something is wrong, when people wait for the cause or the cure.
const pace = (p: ClusterPage | null) => p && p.why.state !== 'Well' ? 3000 : 10000;

export function ClusterView({ ns, name }: { ns: string; name: string }) {
  const id = `${encodeURIComponent(ns)}/${encodeURIComponent(name)}`;
  const of = useApi<ClusterPage>('hc/' + id, `hc/${ns}/${name}`, pace);
  const tab = query().get('tab') ?? 'overview';
  return <Page of={of}>{(p: ClusterPage) => {
    const c = p.cluster;
    const tabs = [{ key: 'overview', title: 'Overview' }, { key: 'pools', title: 'NodePools', count: p.pools.length }, { key: 'conditions', title: 'Conditions', count: p.conditions.length },
      { key: 'packages', title: 'Packages', count: p.packages.length }, { key: 'certificates', title: 'Certificates' }, { key: 'events', title: 'Events' }, { key: 'yaml', title: 'YAML' }];
    const at = tabs.some((t) => t.key === tab) ? tab : 'overview';
    return <>
      <header class="head">
        <p class="crumbs"><A href="/">Fleet</A> <span aria-hidden="true">/</span> <A href={'/?show=all&ns=' + encodeURIComponent(c.ns)}>{c.ns}</A></p>
        <div class="title"><h1>{c.name}</h1><Badge health={c.health} /></div>
        <dl class="facts">
          <div><dt>Version</dt><dd><Version version={c.version} target={c.target} /></dd></div>
          <div><dt>Nodes</dt><dd><Nodes ready={c.ready} wanted={c.wanted} /></dd></div>
          <div><dt>Platform</dt><dd>{c.platform}</dd></div>
          <div><dt>Age</dt><dd><Since at={c.created} /></dd></div>
          <div><dt>Control plane</dt><dd><code>{p.controlPlane}</code></dd></div>
          {p.endpoints.map((e) => <div key={e.name}><dt>{e.name}</dt><dd class="endpoint"><code>{e.host}</code><Copy text={e.host} /></dd></div>)}
        </dl>
      </header>
      <WhyPanel why={p.why} command={p.command} brief={at !== 'overview'} />
      <Tabs tabs={tabs} at={at} onPick={(k) => setQuery({ tab: k === 'overview' ? '' : k, pool: '' })} />
      <div id="tabpanel" role="tabpanel" aria-labelledby={'tab-' + at}>
        {at === 'overview' ? <Overview p={p} /> : null}
        {at === 'pools' ? <PoolsView pools={p.pools} /> : null}
        {at === 'conditions' ? <Card title="Conditions"><Conditions list={p.conditions} /></Card> : null}
        {at === 'packages' ? <Packages p={p} /> : null}
        {at === 'certificates' ? <CertificatesOf id={id} /> : null}
        {at === 'events' ? <Events p={p} /> : null}
        {at === 'yaml' ? <Yaml path={`hc/${id}/yaml`} /> : null}
      </div>
      <Notes notes={p.notes} title="What could not be read" />
    </>;
  }}</Page>;
}

function Overview({ p }: { p: ClusterPage }) {
  const up = p.stages.every((s) => s.at);
  return <div class="columns">
    <Card title="Timeline" class="wide"><TimelineView timeline={p.timeline} events={p.warnings} /></Card>
    <Card title="Components" class="wide" aside={<span class="quiet">{p.graph.nodes.filter((n) => n.health === 'Healthy').length} of {p.graph.nodes.length} well</span>}><GraphView graph={p.graph} /></Card>
    <Card title="On the way up" aside={up ? null : <span class="quiet">not there yet</span>}>
      <ol class="stages">{p.stages.map((s) => <li key={s.name} class={s.at ? 'done' : ''}><span>{s.name}</span><span class="num">{s.at ? s.took >= 0 && s.took < 86400 ? '+' + span(s.took) : <Since at={s.at} prefix="since " /> : 'waiting'}</span></li>)}</ol>
    </Card>
    <Card title="Versions">
      {p.versions.length ? <div class="scroll" tabIndex={0} role="region" aria-label="Versions of this hosted cluster"><table class="table"><thead><tr><th scope="col">Version</th><th scope="col">State</th><th scope="col">Started</th><th scope="col">Took</th></tr></thead>
        <tbody>{p.versions.map((v) => <tr key={v.started}><th scope="row" title={v.image}>{v.version}</th><td>{v.state}</td><td class="num"><Since at={v.started} /></td>
          <td class="num">{v.completed ? span((Date.parse(v.completed) - Date.parse(v.started)) / 1000) : 'under way'}</td></tr>)}</tbody></table></div> : <p class="quiet">No version was rolled out yet.</p>}
      <p class="image"><code>{p.release}</code></p>
    </Card>
    <Card title="As commands" class="wide"><div class="commands">{p.commands.map((c) => <div key={c.what}><p class="eyebrow">{c.what}</p><Command text={c.text} /></div>)}</div></Card>
  </div>;
}

function Packages({ p }: { p: ClusterPage }) {
  if (!p.packages.length) return <div class="empty"><h2>No packages</h2><p>Nothing is rolled out into namespace <code>{p.controlPlane}</code>.</p></div>;
  return <Card title="Packages"><div class="scroll" tabIndex={0} role="region" aria-label="Packages of this hosted cluster"><table class="table"><thead><tr><th scope="col">Health</th><th scope="col">Package</th><th scope="col">Why</th><th scope="col">Revision</th><th scope="col">Rollout</th></tr></thead>
    <tbody>{p.packages.map((k) => <tr key={k.name}><td><Badge health={k.health} /></td><th scope="row"><A href={`/pkg/${encodeURIComponent(k.ns)}/${encodeURIComponent(k.name)}`}>{k.name}</A></th><td class="message">{k.cause}</td><td class="num">{k.revision ?? ''}</td>
      <td>{k.rollout ? <A href={'/rollout/' + encodeURIComponent(k.rollout)}>{k.rollout}</A> : null}</td></tr>)}</tbody></table></div></Card>;
}

function Events({ p }: { p: ClusterPage }) {
  return <EventList hc={`${p.cluster.ns}/${p.cluster.name}`} />;
}

function Yaml({ path }: { path: string }) {
  const [text, set] = useState('');
  useEffect(() => {
    const control = new AbortController();
    get<{ yaml: string }>(path, control.signal).then((r) => set(r.yaml), (e: Error) => { if (!control.signal.aborted) set('# ' + e.message); });
    return () => control.abort();
  }, [path]);
  return <Card title="YAML" aside={<Copy text={text} />}><p class="quiet">Secrets are redacted, and managedFields left out.</p><pre class="yaml" tabIndex={0}>{text || 'Loading…'}</pre></Card>;
}
