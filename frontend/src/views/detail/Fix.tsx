/** What to do. */

import type { CodeChange, Finding } from '../../api/types.gen';
import { CopyButton } from '../../components/Button';
import { Code } from '../../components/Code';
import { Message } from '../../components/Spans';
import { copy } from '../../state/clipboard';
import { useLines } from '../../state/highlight';
import { byKind } from './details';
import { Section } from './Section';

export const Fix = ({ finding }: { finding: Finding }) => (
  <>{byKind(finding.details).changes.map((change) => <Section title="Example of the fix"><Change change={change} /></Section>)}</>
);

function Change({ change: { before, after, caveat } }: { change: CodeChange }) {
  return (
    <>
      <p class="muted">The pattern in general, not your code:</p>
      <div class="change">
        <div class="before">
          <h3>Before</h3>
          <Code label="Before" lines={useLines(before)} sign="−" />
        </div>
        <div class="after">
          <div class="change-head"><h3>After</h3><CopyButton iconOnly label="Copy the code after the fix" onCopy={() => copy(after, 'Code')} /></div>
          <Code label="After" lines={useLines(after)} sign="+" />
        </div>
      </div>
      {caveat && <p class="caveat"><b>Mind:</b> <Message text={caveat} /></p>}
    </>
  );
}
