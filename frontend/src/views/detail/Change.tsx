/** The change of the user's own code, as far as it is known, and its line. */

import type { CodeFix, Finding } from '../../api/types.gen';
import { fileName, placeText } from '../../base/places';
import { plainLines } from '../../base/tokens';
import { CopyButton } from '../../components/Button';
import { Code } from '../../components/Code';
import { Message } from '../../components/Spans';
import { copy } from '../../state/clipboard';
import { place } from '../../state/findings';
import { Line } from './Snippet';

export function Change({ finding }: { finding: Finding }) {
  const shown = place.value;
  const change = shown && finding.code_fixes?.changes.find(({ file, line }) => file === shown.file && line === shown.line);
  return (
    <div class="do-first">
      <p class="fix"><Message text={finding.fix} />.</p>
      {shown && <p class="place-line"><b class="path">{placeText(shown)}</b> in <code>{shown.function}</code></p>}
      {change ? <Diff change={change} /> : shown && <Line finding={finding} place={shown} />}
      {!change && finding.code_fixes?.reason && <p class="muted">No diff: <Message text={finding.code_fixes.reason} /></p>}
    </div>
  );
}

const Diff = ({ change: { diff, file, safety, needs_review: review, check } }: { change: CodeFix }) => (
  <>
    <div class="diff"><Code label={`Change of ${fileName(file)}`} lines={plainLines(hunks(diff))} /></div>
    <p class="diff-note">
      <span>Effect: {safety}.{review && <> <b>Check first:</b> <Message text={check} /></>} <code>tb-tidy fix</code> makes this change.</span>
      <CopyButton label="Copy diff" onCopy={() => copy(diff, 'Diff')} />
    </p>
  </>
);

/** The lines of a unified diff without the names of its files. */
const hunks = (diff: string): string[] => diff.trimEnd().split('\n').filter((line) => !line.startsWith('--- ') && !line.startsWith('+++ '));
