/** Keys, and the meaning of the report's words. */

import { SHORTCUTS } from '../../base/keys';
import { capital, PRECISION_SHORT, SAVING_BASIS, SHORT_BASIS } from '../../base/words';
import { Dialog } from '../../components/Dialog';
import { SeverityGlyph } from '../../components/Severity';
import { helpOpen } from '../../state/actions';

export const Help = () => (
  <Dialog title="Keys and words" onClose={() => { helpOpen.value = false; }}>
    <div class="help">
      <section>
        <h3>Keys</h3>
        <dl class="keys">
          {SHORTCUTS.map(({ keys, label }) => <><dt>{keys.map((key) => <kbd>{key}</kbd>)}</dt><dd>{label}</dd></>)}
        </dl>
        <p class="muted">In the source view <kbd>j</kbd> and <kbd>k</kbd> go to the next and the previous marked line.</p>
      </section>
      <section>
        <h3>Severity</h3>
        <p class="severities">{LEVELS.map((level) => <span><SeverityGlyph level={level} /> {capital(level)}</span>)}</p>
        <h3>Where a saving comes from</h3>
        <dl class="words">
          {(['bound', 'replayed', 'measured'] as const).map((basis) => <><dt>{capital(SHORT_BASIS[basis])}</dt><dd>{capital(SAVING_BASIS[basis])}</dd></>)}
        </dl>
        <p class="muted">Savings are estimates with a range. They overlap, so their sum can be more than what all fixes together save.</p>
        <h3>How a line is known</h3>
        <dl class="words">
          <dt>{capital(PRECISION_SHORT.exact)}</dt><dd>Recorded while training.</dd>
          <dt>{capital(PRECISION_SHORT.aligned)}</dt><dd>Found by matching recorded calls with the source text.</dd>
          <dt>{capital(PRECISION_SHORT.definition)}</dt><dd>The enclosing function; the call is somewhere inside.</dd>
        </dl>
        <p class="muted"><a href="THIRD_PARTY_NOTICES.txt" target="_blank" rel="noreferrer">Licences of the packages in this page</a></p>
      </section>
    </div>
  </Dialog>
);

const LEVELS = ['high', 'medium', 'low', 'info'] satisfies ('high' | 'medium' | 'low' | 'info')[];
