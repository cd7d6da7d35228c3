// NodePools: generations of machines, and each machine's way to being a node.
import { query, setQuery } from './state';
import type { Machine, Pool } from './types';
import { Badge, Card, Command, Conditions, Nodes, Since, WhyPanel } from './ui';

const steps = ['made', 'bootstrapped', 'provisioned', 'node'];
const stepNames = ['Machine is made', 'Its configuration is ready', 'The platform has provisioned it', 'It is a node'];

export function PoolsView({ pools }: { pools: Pool[] }) {
  const at = query().get('pool') ?? '';
  if (!pools.length) return <div class="empty"><h2>No NodePools</h2><p>Make one: <code>hypershift create nodepool --help</code></p></div>;
  return <>{pools.map((p) => <PoolView key={p.name} p={p} open={at === p.name} />)}</>;
}

function PoolView({ p, open }: { p: Pool; open: boolean }) {
  return <Card title={p.name} id={'pool-' + p.name} class="pool" aside={<span class="facts inline"><Badge health={p.health} /><Nodes ready={p.ready} wanted={p.wanted} /><span>{p.version ?? 'no version yet'}</span>
    {p.scaling ? <span>scales {p.scaling}</span> : null}<span class="quiet">{p.upgrade}</span><span class="quiet"><Since at={p.created} /></span></span>}>
    {p.why.state !== 'Well' ? <WhyPanel why={p.why} command={p.command} /> : null}
    {p.sets.length ? <div class="sets">{p.sets.map((s) => <div key={s.name} class={'set' + (s.newest ? ' newest' : '')}><b>{s.newest ? 'Newest' : 'Older'}</b><code>{s.name}</code><Nodes ready={s.ready} wanted={s.wanted} /><span class="quiet">{s.version}</span><span class="quiet"><Since at={s.created} /></span></div>)}</div> : null}
    {p.machines.length ? <div class="scroll" tabIndex={0} role="region" aria-label={'Machines of ' + p.name}><table class="table machines"><thead><tr><th scope="col">Health</th><th scope="col">Machine</th><th scope="col">How far</th><th scope="col">Node</th><th scope="col">Why</th><th scope="col">Version</th><th scope="col">Age</th></tr></thead>
      <tbody>{p.machines.map((m) => <MachineRow key={m.name} m={m} />)}</tbody></table></div> : <p class="quiet">No machines.</p>}
    {p.more ? <p class="quiet">{p.more} more machines are not shown; <code>hypershift get machines --cluster {p.cluster}</code> lists all.</p> : null}
    <details class="notes" open={open} onToggle={(e) => { if (e.currentTarget.open) setQuery({ pool: p.name }); }}><summary>Conditions ({p.conditions.length})</summary><Conditions list={p.conditions} of={p.name} /></details>
    {p.why.state === 'Well' ? <Command text={`hypershift get machines --cluster ${p.cluster} -n ${p.ns}`} /> : null}
  </Card>;
}

function MachineRow({ m }: { m: Machine }) {
  const at = steps.indexOf(m.booted);
  return <tr><td><Badge health={m.health} /></td><th scope="row"><code>{m.name}</code></th>
    <td><span class="steps" role="img" aria-label={`${stepNames[at]}, step ${at + 1} of 4`} title={stepNames[at]}>{steps.map((s, i) => <i key={s} class={i <= at ? 'on' : ''} />)}</span></td>
    <td>{m.node ? <code>{m.node}</code> : <span class="quiet">{m.phase || 'none yet'}</span>}{m.address ? <span class="quiet"> {m.address}</span> : null}</td>
    <td class="message">{m.drain ? <><b>Drain is held.</b> {m.drain}</> : m.unhealthy ? <><b>Unhealthy.</b> {m.unhealthy}.</> : <>{m.since && m.cause ? <b><Since at={m.since} /> </b> : null}{m.cause}</>}</td><td>{m.version}</td><td class="num"><Since at={m.created} /></td></tr>;
}
