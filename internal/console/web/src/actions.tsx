// What the console does for people: with their own rights, and after it has shown what would come of it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure, post } from './api';
import { say } from './state';
import type { Outcome } from './types';
import { Command } from './ui';

const words: Record<string, { button: string; title: (name: string) => string; done: (name: string) => string }> = {
  pause: { button: 'Pause', title: (n) => `Pause rollout ${n}?`, done: (n) => `Rollout ${n} is paused` },
  resume: { button: 'Resume', title: (n) => `Resume rollout ${n}?`, done: (n) => `Rollout ${n} goes on` },
};

// RolloutAction is the button that pauses a rollout, or resumes a paused one.
export function RolloutAction({ name, paused, onDone }: { name: string; paused: boolean; onDone: () => void }) {
  const [asked, ask] = useState('');
  const what = paused ? 'resume' : 'pause';
  return <><button type="button" class={'act' + (paused ? ' primary' : '')} onClick={() => ask(what)}>{words[what]!.button}</button>
    {asked ? <Confirm name={name} what={asked} close={(done) => { ask(''); if (done) onDone(); }} /> : null}</>;
}

// Confirm shows what the API server says of an action before it is done.
function Confirm({ name, what, close }: { name: string; what: string; close: (done: boolean) => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [plan, setPlan] = useState<Outcome | null>(null);
  const [error, setError] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(true);
  const path = 'rollout/' + encodeURIComponent(name), text = words[what]!;
  useEffect(() => {
    box.current?.showModal();
    box.current?.querySelector<HTMLElement>('.buttons button')?.focus(); // the one that does nothing
    let gone = false;
    post<Outcome>(path, { action: what, dryRun: true }).then((p) => { if (!gone) setPlan(p); }, (f: Failure) => { if (!gone) setError(f); }).finally(() => { if (!gone) setBusy(false); });
    return () => { gone = true; };
  }, []);
  const act = () => {
    setBusy(true);
    post<Outcome>(path, { action: what, uid: plan!.uid }).then(() => { say(text.done(name)); close(true); }, (f: Failure) => { setError(f); setBusy(false); });
  };
  return <dialog ref={box} class="confirm" aria-labelledby="confirm-title" onClose={() => close(false)}>
    <h2 id="confirm-title">{text.title(name)}</h2>
    <div aria-live="polite" aria-busy={busy}>
      {error ? <p class="trouble" role="alert">{error.message}</p> : null}
      {!plan && !error ? <p class="quiet">Asking the API server what would come of it…</p> : null}
      {plan ? plan.already ? <p>{plan.paused ? 'It is paused already.' : 'It is not paused.'}</p> : <>
        <ul class="effects">{plan.effects.map((e) => <li key={e}>{e}</li>)}</ul>
        <p class="written"><code>{plan.field}</code><span>{plan.from ? <s>{plan.from}</s> : 'not set'} <span class="arrow" aria-hidden="true">→</span><span class="visually-hidden"> becomes </span> <b>{plan.to || 'not set'}</b></span></p>
        {error ? null : <p class="quiet">A dry run in your name went through. Nothing is changed yet.</p>}</> : null}
    </div>
    <p class="eyebrow">The same as a command</p>
    <Command text={`hypershift rollout ${what} hostedclusterpackage/${name}`} />
    <div class="buttons"><button type="button" onClick={() => box.current?.close()}>{plan?.already || error ? 'Close' : 'Cancel'}</button>
      {plan && !plan.already && error?.status !== 403 ? <button type="button" class="primary" disabled={busy} onClick={act}>{busy ? 'One moment…' : text.button}</button> : null}</div>
  </dialog>;
}
