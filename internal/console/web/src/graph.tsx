// The components of a control plane: those that others need on the left, so that a line for each need would say nothing. What waits is drawn as a line.
import { useMemo } from 'preact/hooks';
import { query, setQuery } from './state';
import type { Graph } from './types';
import { Badge, Since } from './ui';

const wide = 208, high = 40, gapX = 72, gapY = 10, rows = 8;

export function GraphView({ graph }: { graph: Graph }) {
  const list = query().get('graph') === 'list', setList = (l: boolean) => setQuery({ graph: l ? 'list' : '' });
  const layout = useMemo(() => {
    const at = new Map<string, { x: number; y: number }>();
    const layers = [...new Set(graph.nodes.map((n) => n.layer))].sort((a, b) => a - b);
    let x = 1, tallest = 1;
    for (const layer of layers) {
      const nodes = graph.nodes.filter((n) => n.layer === layer), columns = Math.ceil(nodes.length / rows), per = Math.ceil(nodes.length / columns);
      nodes.forEach((n, i) => at.set(n.name, { x: x + Math.floor(i / per) * (wide + 12), y: 1 + (i % per) * (high + gapY) }));
      tallest = Math.max(tallest, per);
      x += columns * (wide + 12) + gapX - 12;
    }
    const h = tallest * (high + gapY) - gapY + 2;
    // Short layers stand in the middle.
    for (const layer of layers) {
      const nodes = graph.nodes.filter((n) => n.layer === layer), per = Math.ceil(nodes.length / Math.ceil(nodes.length / rows)), dy = (h - per * (high + gapY) + gapY) / 2 - 1;
      for (const n of nodes) at.get(n.name)!.y += Math.max(0, dy);
    }
    return { at, w: Math.max(1, x - gapX + 2), h };
  }, [graph]);
  if (!graph.nodes.length) return <p class="quiet">No component was made yet.</p>;
  return <>
    <div class="segments small" role="group" aria-label="Form"><button type="button" aria-pressed={!list} onClick={() => setList(false)}>Graph</button><button type="button" aria-pressed={list} onClick={() => setList(true)}>List</button></div>
    {list ? null : <div class="scroll graph" tabIndex={0} role="region" aria-label="Graph of components; the list has the same content">
      <svg viewBox={`0 0 ${layout.w} ${layout.h}`} width={layout.w} height={layout.h} aria-hidden="true">
        {graph.edges.filter((e) => e.waits || e.from === 'kube-apiserver').map((e) => {
          const a = layout.at.get(e.from), b = layout.at.get(e.to);
          if (!a || !b) return null;
          const x1 = b.x + wide, y1 = b.y + high / 2, x2 = a.x, y2 = a.y + high / 2, m = (x1 + x2) / 2;
          return <path key={e.from + e.to} class={e.waits ? 'edge waits' : 'edge'} d={x2 > x1 ? `M${x1} ${y1}C${m} ${y1} ${m} ${y2} ${x2} ${y2}` : `M${b.x + wide / 2} ${b.y + high}L${a.x + wide / 2} ${a.y}`} />;
        })}
        {graph.nodes.map((n) => {
          const p = layout.at.get(n.name)!;
          return <g key={n.name} class={'node h-' + n.health} transform={`translate(${p.x} ${p.y})`}><title>{n.name}: {n.health}{n.cause ? ', ' + n.cause : ''}</title>
            <rect width={wide} height={high} rx="7" /><rect class="edge-mark" width="4" height={high - 14} x="7" y="7" rx="2" />
            <text x="20" y={n.health === 'Healthy' ? 25 : 17}>{n.name.length > 27 ? n.name.slice(0, 26) + '…' : n.name}</text>
            {n.health === 'Healthy' ? null : <text class="sub" x="20" y="31">{n.waits?.length ? 'waits for ' + short(n.waits) : n.health}</text>}</g>;
        })}
      </svg></div>}
    <div class={list ? 'scroll' : 'visually-hidden'} tabIndex={list ? 0 : undefined} role={list ? 'region' : undefined} aria-label={list ? 'List of components' : undefined}><table class="table"><caption class="visually-hidden">Components of the control plane</caption>
      <thead><tr><th scope="col">Health</th><th scope="col">Component</th><th scope="col">Why</th><th scope="col">Waits for</th><th scope="col">Version</th></tr></thead>
      <tbody>{graph.nodes.map((n) => <tr key={n.name}><td><Badge health={n.health} /></td><th scope="row">{n.name}</th><td class="message">{n.since && n.cause ? <><b><Since at={n.since} /></b> </> : null}{n.cause}</td><td>{n.waits?.join(', ')}</td><td>{n.version}</td></tr>)}</tbody></table></div>
    {list ? null : <p class="hint">Each column needs those left of it. A dashed line: it waits.</p>}
    {graph.more ? <p class="quiet">{graph.more} more components are not shown.</p> : null}
  </>;
}

function short(list: string[]): string {
  const text = list[0]!;
  return (text.length > 18 ? text.slice(0, 17) + '…' : text) + (list.length > 1 ? ` +${list.length - 1}` : '');
}
