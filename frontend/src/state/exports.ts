/** The report for use elsewhere. */

import { findingMarkdown, reportMarkdown } from '../base/markdownOut';
import type { Finding } from '../api/types.gen';
import { copy } from './clipboard';
import { listed } from './findings';
import { shareUrl } from './host';
import { per, report } from './profile';
import { ranksOf } from './ranks';
import { selectedKey } from './runs';

export const copyFinding = (finding: Finding): Promise<boolean> => copy(`${findingMarkdown(withRanks(finding), per.peek())}\n`, 'Finding');

const withRanks = (finding: Finding): Finding & { about: string } => ({ ...finding, about: ranksOf(finding) });

export const copyLink = (): Promise<boolean> => copy(shareUrl(), 'Link');

/** The list as it stands: filtered and sorted. */
export function copyReport(): Promise<boolean> {
  const shown = report.peek();
  const text = reportMarkdown({
    run: selectedKey.peek()?.run ?? '', worker: shown?.worker ?? '', per: per.peek(),
    stepNs: shown?.steps.median_ns ?? null, findings: listed.peek().map(withRanks),
  });
  return copy(text, 'Report');
}

export function downloadReport(): void {
  const shown = report.peek();
  if (!shown) return;
  const url = URL.createObjectURL(new Blob([JSON.stringify(shown, null, 2)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `torchtidy-${selectedKey.peek()?.run ?? ''}-${shown.worker}.json`.replaceAll(/[^\w.-]+/g, '_');
  link.click();
  URL.revokeObjectURL(url);
}
