// Certificates of control planes: which end soon although they should have been replaced, and all of one hosted cluster.
import { useEffect, useState } from 'preact/hooks';
import { Failure, get, useApi } from './api';
import { now } from './state';
import type { Certificate, Sweep } from './types';
import { A, Card, Command, Page, Since, span, Trouble } from './ui';

// useSweep asks for the certificates of the fleet that end soon, until all hosted clusters were looked at, and then now and again.
export function useSweep(): { sweep: Sweep | null; error: Failure | null } {
  const [state, set] = useState<{ sweep: Sweep | null; error: Failure | null }>({ sweep: null, error: null });
  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    const load = async () => {
      let wait = 5 * 60e3;
      try {
        const sweep = document.hidden ? null : await get<Sweep>('certificates', control.signal);
        if (sweep) set({ sweep, error: null });
        if (sweep?.left) wait = 500;
      } catch (e) {
        if (control.signal.aborted) return;
        set((s) => ({ ...s, error: e instanceof Failure ? e : new Failure(0, 'The console does not answer.') }));
        wait = 30e3;
      }
      timer = window.setTimeout(load, wait);
    };
    timer = window.setTimeout(load, 300); // what the page is about comes first
    return () => { control.abort(); clearTimeout(timer); };
  }, []);
  return state;
}

function left(c: Certificate): string {
  const seconds = (Date.parse(c.notAfter) - now.value) / 1000;
  return seconds > 0 ? span(seconds) : 'ended';
}

// next is what becomes of it by itself; what should have happened already is told as such.
function next(c: Certificate): string {
  if (!c.next || !c.nextAt) return '';
  const day = new Date(c.nextAt).toLocaleDateString();
  return Date.parse(c.nextAt) < now.value ? `was to be ${c.next} ${day}` : `${c.next} ${day}`;
}

function Table({ rows, fleet }: { rows: Certificate[]; fleet?: boolean }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label="Table of certificates"><table class="table certificates"><thead><tr>{fleet ? <th scope="col">Hosted cluster</th> : null}<th scope="col">Ends in</th><th scope="col">Secret</th><th scope="col">Subject</th><th scope="col">Kind</th><th scope="col">Kept by</th><th scope="col">Next</th></tr></thead>
    <tbody>{rows.map((c) => <tr key={c.ns + c.name + c.secret + c.key} class={c.soon ? 'bad' : ''}>{fleet ? <th scope="row" class="name"><A href={`/hc/${encodeURIComponent(c.ns)}/${encodeURIComponent(c.name)}?tab=certificates`}>{c.name}</A><span class="quiet">{c.ns}</span></th> : null}
      <td class="num"><time dateTime={c.notAfter} title={new Date(c.notAfter).toLocaleString()} class={c.soon ? 'status bad' : ''}>{left(c)}</time></td>{fleet ? <td><code>{c.secret}</code> <span class="quiet">{c.key}</span></td> : <th scope="row"><code>{c.secret}</code> <span class="quiet">{c.key}</span></th>}
      <td class="message">{c.subject}{c.issuer && c.issuer !== c.subject ? <span class="quiet"> by {c.issuer}</span> : null}</td><td>{c.kind}</td><td>{c.keeper === 'user' ? 'you' : c.keeper}</td><td class="num">{next(c)}</td></tr>)}</tbody></table></div>;
}

export function CertificatesView() {
  const { sweep, error } = useSweep();
  return <><header class="head"><h1>Certificates that end soon</h1>
    <p class="quiet">Those of control planes that end within {sweep?.days ?? 14} days although they should have been replaced. Certificates that live for days only count when less than a tenth of their life is left.</p></header>
    {error ? <Trouble text={error.message} /> : null}
    {sweep?.trouble ? <Trouble text={sweep.trouble} /> : null}
    {!sweep ? error ? null : <div class="skeleton" role="status" aria-label="Loading"><i /><i /></div> : <>
      {sweep.rows.length ? <Card title="The first to end at the top" aside={<span class="quiet">{sweep.rows.length} {sweep.rows.length === 1 ? 'certificate' : 'certificates'} of {sweep.clusters} {sweep.clusters === 1 ? 'hosted cluster' : 'hosted clusters'}</span>}><Table rows={sweep.rows} fleet /></Card>
        : sweep.left ? null : sweep.checked ? <div class="empty"><h2>No certificate ends soon</h2></div> : null}
      <p class="more swept">{sweep.left ? `Looking: ${sweep.left} hosted clusters are left.` : <>{sweep.checked} hosted {sweep.checked === 1 ? 'cluster' : 'clusters'} looked at, <Since at={sweep.at} /> ago.</>}
        {sweep.refused ? ` The Secrets of ${sweep.refused} you may not list, so nothing is known of theirs.` : ''}</p></>}
  </>;
}

export function CertificatesOf({ id }: { id: string }) {
  const of = useApi<{ rows: Certificate[]; command: string }>(`hc/${id}/certificates`, '', () => 60e3);
  return <Page of={of}>{(d: { rows: Certificate[]; command: string }) => d.rows.length ? <Card title="Certificates" aside={<span class="quiet">keys are not shown</span>}>
    <Table rows={d.rows} /><Command text={d.command} /></Card> : <div class="empty"><h2>No certificates</h2><p>None was made yet.</p></div>}</Page>;
}
