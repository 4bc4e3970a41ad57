/** One finding in full: what it is, why, where, what to do, and the evidence. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Finding } from '../../api/types.gen';
import { accountOf, boundText, reasonText } from '../../base/ledger';
import { nanoseconds, plural, share } from '../../base/units';
import { Button } from '../../components/Button';
import { Hero } from '../../components/Hero';
import { Message } from '../../components/Spans';
import { chunk, useChunk } from '../../components/chunk';
import { MissingChunk } from '../../components/Later';
import { backToList, chooseView } from '../../state/actions';
import { finding, findings, mutedFindings, outcomes } from '../../state/findings';
import { useWantedFocus } from '../../state/focus';
import { ledger, per } from '../../state/profile';
import { ranksOf } from '../../state/ranks';
import { selectedKey } from '../../state/runs';
import { narrow } from '../../state/viewport';
import { byKind } from './details';
import { Change } from './Change';
import { Events, NoEvents } from './Events';
import { Fix } from './Fix';
import { Figures, Head } from './Head';
import { Places } from './Places';
import { Fold } from './Section';
import { Unknown } from './Unknown';
import { Why } from './Why';

export function Detail() {
  const heading = useRef<HTMLHeadingElement>(null);
  useWantedFocus('heading', heading);
  const shown = finding.value;
  const key = selectedKey.value;
  const pane = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    for (const scrolling of [pane.current, pane.current?.closest('.view')]) scrolling?.scrollTo(0, 0);
  }, [shown?.id]);
  if (!shown || !key) return <main class="detail">{findings.value.length === 0 ? <NothingFound /> : <NothingOpen />}</main>;
  return (
    <main class="detail" ref={pane} aria-labelledby="finding-title">
      {narrow.value && <div class="back"><Button kind="quiet" icon="back" onClick={backToList}>All findings</Button></div>}
      <article key={shown.id}>
        <Head finding={shown} heading={heading} />
        <Change finding={shown} />
        <Figures finding={shown} />
        <Fix finding={shown} />
        <Places finding={shown} />
        <Why finding={shown} />
        {!ranksOf(shown) && <Benchmark finding={shown} />}
        <Unknown details={byKind(shown.details).unknown} />
        {ranksOf(shown) ? <NoEvents finding={shown} /> : <Fold id="evidence" title="On the timeline" note={plural(shown.matches, 'matched event')}>{() => <Events profile={key} finding={shown} />}</Fold>}
      </article>
    </main>
  );
}

const BENCHMARK = chunk(() => import('./Benchmark'));

/** The card is below the fold, and a separate chunk. */
function Benchmark({ finding: shown }: { finding: Finding }) {
  const card = useChunk(BENCHMARK);
  if (card === 'missing') return <MissingChunk />;
  return card && <card.Benchmark finding={shown} />;
}

const NothingOpen = () => <Hero title="No finding is open"><p class="muted">The filter hides all of them.</p></Hero>;

function NothingFound() {
  const [passed, skipped] = [outcomes('clean').length, outcomes('not_checked').length];
  if (mutedFindings.value.length > 0) return <Hero title="All findings are muted"><p class="muted">The list shows them at its end.</p></Hero>;
  if (passed === 0 && skipped > 0) return <Hero title="Nothing could be checked"><p>This recording lacks what the checks need: the list says what.</p></Hero>;
  const checked = <p>{plural(passed, 'check')} passed{skipped > 0 ? `, ${skipped} could not run: the list says why` : ''}.</p>;
  const account = ledger.value && accountOf(ledger.value, null);
  const largest = account?.rows[0];
  if (!largest) return <Hero title="Nothing to fix was found">{checked}</Hero>;
  const { entry, ns, share: part } = largest;
  const said = [entry.advice, reasonText(entry)].filter(Boolean);
  return (
    <Hero title={boundText(largest, per.value)}>
      <p>This takes the largest part of the {per.value}: {nanoseconds(ns)} of {nanoseconds(account.whole)}, {share(part)}. No check found anything to fix.</p>
      {said.map((text) => <p><Message text={text ?? ''} /></p>)}
      {checked}
      <div class="actions"><Button onClick={() => chooseView('overview')}>Show the whole {per.value}</Button></div>
    </Hero>
  );
}
