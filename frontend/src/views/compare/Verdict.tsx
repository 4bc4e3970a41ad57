/** Whether steps became faster, in a sentence. */

import type { Comparison } from '../../api/types.gen';
import { actionOf } from '../../base/actionTitles';
import { differenceOf, FINDING_STATES, groundsText, reasonText, VERDICTS, verdictText, workText } from '../../base/compare';
import { plural, signed } from '../../base/units';
import { Message } from '../../components/Spans';

export function Verdict({ comparison }: { comparison: Comparison }) {
  const { sign, tone } = VERDICTS[comparison.verdict];
  return (
    <section class={`outcome ${tone}`} aria-labelledby="outcome">
      <h2 id="outcome"><span class="outcome-sign" aria-hidden="true">{sign}</span>{verdictText(comparison)}</h2>
      {comparison.work && <p><Message text={workText(comparison)} /></p>}
      <p>{reasonText(comparison)} <Blame comparison={comparison} /></p>
      <p class="muted">{groundsText(comparison)} {tally(comparison)}</p>
    </section>
  );
}

/** Of slower steps: the finding that grew most. */
function Blame({ comparison: { verdict, findings } }: { comparison: Comparison }) {
  const [worst] = findings.filter(({ state }) => state === 'new' || state === 'worse').toSorted((a, b) => differenceOf(b) - differenceOf(a));
  if (verdict !== 'slower' || !worst) return null;
  return <>{worst.state === 'new' ? 'The largest new finding' : 'The finding that grew most'}: <Message text={actionOf(worst)} /> ({signed(differenceOf(worst))}).</>;
}

/** `4 findings are gone, 1 is new.` */
function tally({ findings }: Comparison): string {
  if (findings.length === 0) return 'No findings on either side.';
  const counts = FINDING_STATES.map(({ state, word }) => ({ word, found: findings.filter((each) => each.state === state).length }));
  const named = counts.filter(({ found }) => found > 0).map(({ word, found }) => `${found} ${word.toLowerCase()}`);
  return `${plural(findings.length, 'finding')}: ${named.join(', ')}.`;
}
