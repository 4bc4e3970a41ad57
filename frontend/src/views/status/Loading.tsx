/** A profile that is being read or analysed. */

import { useEffect } from 'preact/hooks';
import type { ProfileState } from '../../api/types.gen';
import { bytes, share } from '../../base/units';
import { Button } from '../../components/Button';
import { Hero } from '../../components/Hero';
import { ProgressBar, Skeleton } from '../../components/Progress';
import { cancel } from '../../state/actions';
import { announce } from '../../state/notices';

const WORDS: Record<ProfileState['state'], string> = {
  queued: 'Waiting for its turn', reading: 'Reading the trace', analysing: 'Looking for patterns', done: 'Done', error: 'Failed',
};

const ANNOUNCED = 0.25; // screen readers hear each quarter, not each message

export function Loading({ state }: { state: ProfileState }) {
  const quarter = Math.floor(state.fraction / ANNOUNCED) * ANNOUNCED;
  useEffect(() => announce(`${WORDS[state.state]}: ${share(quarter)}`), [state.state, quarter]);
  return (
    <div class="panes">
      <div class="list"><Skeleton rows={6} /></div>
      <main class="detail">
        <Hero title={WORDS[state.state]}>
          <ProgressBar label={WORDS[state.state]} fraction={state.fraction} />
          <p class="progress-line">
            <span>{state.stage || WORDS[state.state]}</span>
            <span class="number">{share(Math.round(state.fraction * 100) / 100)}</span>
          </p>
          <div class="actions"><Button onClick={() => void cancel()}>Cancel</Button></div>
          <p class="muted path">{state.worker} · {bytes(state.size)}</p>
        </Hero>
      </main>
    </div>
  );
}
