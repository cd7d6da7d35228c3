// Which versions are at work, and whether they go together.
import { useApi } from './api';
import { Card, Page, Trouble } from './ui';

interface Build { version: string; commit: string; go?: string; platform?: string }
interface AboutPage { console: Build; operator?: Build; operatorNote?: string; skew?: { verdict: string; message: string }; where: string; user: string; own: boolean; trouble: Record<string, string> }

export function About() {
  const of = useApi<AboutPage>('about', '');
  return <Page of={of}>{(d: AboutPage) => <>
    <header class="head"><h1>About</h1></header>
    {Object.values(d.trouble).map((t) => <Trouble key={t} text={t} />)}
    <div class="columns">
      <Card title="Versions"><dl class="facts stacked"><div><dt>Console</dt><dd>v{d.console.version}, commit <code>{d.console.commit}</code></dd></div><div><dt>Built with</dt><dd>{d.console.go} for {d.console.platform}</dd></div>
        <div><dt>Operator</dt><dd>{d.operator ? <>{d.operator.version ? 'v' + d.operator.version : 'an older one'}, commit <code>{d.operator.commit}</code></> : <span class="quiet">{d.operatorNote}</span>}</dd></div>
        {d.skew ? <div><dt>Together</dt><dd><b>{d.skew.verdict}.</b> {d.skew.message}</dd></div> : null}</dl></Card>
      <Card title="You"><dl class="facts stacked"><div><dt>Management cluster</dt><dd>{d.where}</dd></div><div><dt>User</dt><dd>{d.user}</dd></div>
        <div><dt>Rights</dt><dd>{d.own ? 'Those of your kubeconfig.' : 'Those of your token. Lists leave out what you may not list; details are read in your name.'}</dd></div></dl></Card>
      <Card title="Licences"><p>The console holds Preact and @preact/signals, both under the MIT licence, © 2015 Jason Miller and © 2022 the Preact team. Their texts go with the program, in THIRD_PARTY_LICENSES.</p></Card>
    </div></>}</Page>;
}
