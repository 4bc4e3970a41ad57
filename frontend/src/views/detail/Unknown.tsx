/** Details of a kind that comes from a newer server than this page. */

import { plainLines } from '../../base/tokens';
import { CopyButton } from '../../components/Button';
import { Code } from '../../components/Code';
import { copy } from '../../state/clipboard';
import { Section } from './Section';

export function Unknown({ details }: { details: readonly unknown[] }) {
  if (details.length === 0) return null;
  const text = JSON.stringify(details, null, 2);
  return (
    <Section title="More" aside={<CopyButton label="Copy" onCopy={() => copy(text, 'Detail')} />}>
      <p class="muted">This detail needs a newer page. Reload.</p>
      <Code label="The detail as sent by the server" lines={plainLines(text.split('\n'))} />
    </Section>
  );
}
