// The shell: who is here, which page is shown, and the keys that work everywhere.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { exchange, Failure, whoami } from './api';
import { About } from './about';
import { CertificatesView } from './certificates';
import { ClusterView } from './cluster';
import { EventsView } from './events';
import { FleetView } from './fleet';
import { PackagesView, PackageView } from './packages';
import { RolloutsView, RolloutView } from './rollout';
import { go, keepToken, me, now, route, said, setTheme, stale, theme, token } from './state';
import { A } from './ui';

const nav = [
  { href: '/', title: 'Fleet', key: 'f' }, { href: '/rollouts', title: 'Rollouts', key: 'r' }, { href: '/packages', title: 'Packages', key: 'p' },
  { href: '/certificates', title: 'Certificates', key: 'c' }, { href: '/events', title: 'Events', key: 'e' }, { href: '/about', title: 'About', key: 'a' },
];

function view(path: string) {
  const part = path.split('/').map((p) => { try { return decodeURIComponent(p); } catch { return p; } });
  switch (part[1]) {
    case '': return { at: '/', title: 'Fleet', page: <FleetView /> };
    case 'hc': if (part[2] && part[3]) return { at: '/', title: part[3], page: <ClusterView ns={part[2]} name={part[3]} /> }; break;
    case 'rollouts': return { at: '/rollouts', title: 'Rollouts', page: <RolloutsView /> };
    case 'rollout': if (part[2]) return { at: '/rollouts', title: part[2], page: <RolloutView name={part[2]} /> }; break;
    case 'packages': return { at: '/packages', title: 'Packages', page: <PackagesView /> };
    case 'pkg': if (part[2] && part[3]) return { at: '/packages', title: part[3], page: <PackageView ns={part[2]} name={part[3]} /> }; break;
    case 'certificates': return { at: '/certificates', title: 'Certificates', page: <CertificatesView /> };
    case 'events': return { at: '/events', title: 'Events', page: <EventsView /> };
    case 'about': return { at: '/about', title: 'About', page: <About /> };
  }
  return { at: '', title: 'Not found', page: <div class="empty"><h1>There is no such page</h1><p><A href="/">Back to the fleet</A></p></div> };
}

function Shell() {
  const [help, setHelp] = useState(false);
  const v = view(route.value.split('?')[0]!);
  useEffect(() => { document.title = v.title + ' · HyperShift console'; }, [v.title]);
  useEffect(() => {
    let lead = 0;
    const keys = (e: KeyboardEvent) => {
      const t = e.target as HTMLElement;
      if (e.metaKey || e.ctrlKey || e.altKey || document.querySelector('dialog[open]')) return;
      if (e.key === 'Escape') { setHelp(false); if (t.matches('input')) t.blur(); return; }
      if (t.matches('input, select, textarea')) return;
      if (Date.now() - lead < 1000) {
        lead = 0;
        const to = nav.find((n) => n.key === e.key);
        if (to) { e.preventDefault(); go(to.href); }
        return;
      }
      if (e.key === 'g') lead = Date.now();
      else if (e.key === '?') setHelp(true);
      else if (e.key === '/') { const s = document.querySelector<HTMLInputElement>('.search'); if (s) { e.preventDefault(); s.focus(); s.select(); } }
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  const dark = theme.value === 'dark' || !theme.value && matchMedia('(prefers-color-scheme: dark)').matches;
  return <>
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
    <header class="top">
      <A href="/" class="brand" aria-label="HyperShift console: fleet"><svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M9 8v16M23 8v16M9 16h14" /></svg><span>HyperShift</span></A>
      <nav aria-label="Pages">{nav.map((n) => <A key={n.href} href={n.href} aria-current={v.at === n.href ? 'page' : undefined}>{n.title}</A>)}</nav>
      <div class="who"><Live /><span class="where" title={`${me.value?.where}, as ${me.value?.user}`}>{me.value?.where}</span>
        <button type="button" class="icon" aria-label={dark ? 'Use light colours' : 'Use dark colours'} onClick={() => setTheme(dark ? 'light' : 'dark')}>
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d={dark ? 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1' : 'M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z'} /></svg></button>
        <button type="button" class="icon" aria-label="Keys" onClick={() => setHelp(true)}>?</button>
        {me.value?.own ? null : <button type="button" class="plain" onClick={() => { keepToken('', false); me.value = null; }}>Sign out</button>}
      </div>
    </header>
    <main id="main" tabIndex={-1}>{v.page}</main>
    <div class="visually-hidden" role="status" aria-live="polite">{said.value}</div>
    {help ? <Help close={() => setHelp(false)} /> : null}
  </>;
}

function Live() {
  if (!stale.value) return <span class="live" title="Changes are shown as they happen"><i aria-hidden="true" />Live</span>;
  return <span class="live lost" role="status"><i aria-hidden="true" />Stale since {stale.value.toLocaleTimeString()}{now.value ? '' : ''}, trying again</span>;
}

function Help({ close }: { close: () => void }) {
  useEffect(() => { document.querySelector<HTMLElement>('.help button')?.focus(); }, []);
  const keys = [['/', 'search'], ['j  k', 'next, previous row'], ['Enter', 'open the row'], ['g f', 'fleet'], ['g r', 'rollouts'], ['g p', 'packages'], ['g c', 'certificates'], ['g e', 'events'], ['←  →', 'next, previous tab'], ['Esc', 'close, leave the search'], ['?', 'this']];
  return <div class="veil" onClick={close}><div class="help" role="dialog" aria-modal="true" aria-label="Keys" onClick={(e) => e.stopPropagation()} onKeyDown={(e) => { if (e.key === 'Tab') e.preventDefault(); }}>
    <header><h2>Keys</h2><button type="button" class="icon" aria-label="Close" onClick={close}>×</button></header>
    <dl>{keys.map(([k, what]) => <div key={k}><dt>{k!.split(/\s+/).map((one) => <kbd>{one}</kbd>)}</dt><dd>{what}</dd></div>)}</dl></div></div>;
}

function SignIn({ error }: { error: string }) {
  const [text, setText] = useState(error);
  const [busy, setBusy] = useState(false);
  return <main class="signin"><form class="card" onSubmit={(e) => {
    e.preventDefault();
    const form = e.currentTarget, value = (form.elements.namedItem('token') as HTMLInputElement).value.trim();
    if (!value) { setText('Paste a token first.'); return; }
    setBusy(true);
    keepToken(value, (form.elements.namedItem('keep') as HTMLInputElement).checked);
    whoami().then(() => setText(''), (f: Failure) => { keepToken('', false); setText(f.status === 401 ? 'The management cluster does not know this token.' : f.message); }).finally(() => setBusy(false));
  }}>
    <h1>HyperShift console</h1>
    <p>Sign in with a token of the management cluster. You see what it may list, and nothing else.</p>
    <label for="token">Token</label><input id="token" name="token" type="password" autocomplete="off" spellcheck={false} aria-describedby={text ? 'problem' : undefined} aria-invalid={!!text} />
    <label class="check"><input type="checkbox" name="keep" /> Keep it until this tab is closed</label>
    {text ? <p id="problem" class="trouble" role="alert">{text}</p> : null}
    <button type="submit" class="primary" disabled={busy}>{busy ? 'Asking…' : 'Sign in'}</button>
    <p class="quiet">A token of your own: <code>kubectl create token NAME -n NAMESPACE</code></p>
    <p class="quiet">A console on this machine needs none: open the link that <code>hypershift console</code> printed last.</p>
  </form></main>;
}

function App({ error }: { error: string }) {
  return me.value ? <Shell /> : <SignIn error={error} />;
}

async function start() {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  const ticket = /^#ticket=(\w+)$/.exec(location.hash)?.[1];
  let error = '';
  if (ticket) history.replaceState(null, '', location.pathname + location.search); // before anything else may see it
  try {
    if (ticket) await exchange(ticket);
    if (token.value) await whoami();
  } catch (e) {
    error = e instanceof Failure ? e.message : 'The console does not answer.';
  }
  const app = document.getElementById('app')!;
  app.textContent = '';
  render(<App error={error} />, app);
}
void start();
