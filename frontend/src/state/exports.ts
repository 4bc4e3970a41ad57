/** The report for use elsewhere. */

import { getExport } from '../api/client';
import { findingMarkdown, reportMarkdown } from '../base/markdownOut';
import type { Finding } from '../api/types.gen';
import { copy } from './clipboard';
import { faultInfo, reach } from './connection';
import { listed, mutedFindings } from './findings';
import { shareUrl } from './host';
import { toast } from './notices';
import { per, report, stepNs } from './profile';
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
    stepNs: stepNs.peek(), findings: listed.peek().map(withRanks),
  });
  return copy(text, 'Report');
}

export function downloadReport(): void {
  const shown = report.peek();
  if (shown) save(JSON.stringify(shown, null, 2), 'application/json', 'json');
}

/** A page that needs neither a server nor a network; what is muted here is not in it. */
export async function downloadPage(): Promise<void> {
  const key = selectedKey.peek();
  if (!key) return;
  try {
    const muted = mutedFindings.peek().map(({ id }) => id).join(',');
    const { html } = await reach(getExport({ ...key, muted }));
    save(html, 'text/html', 'html');
  } catch (error) {
    const fault = faultInfo(error);
    if (fault) toast(`The page could not be made. ${fault.message}`);
  }
}

function save(text: string, type: string, ending: string): void {
  const { run = '', worker = '' } = selectedKey.peek() ?? {};
  saveFile(new Blob([text], { type }), `torchtidy-${run}-${worker}.${ending}`);
}

/** Hands the user a file. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replaceAll(/[^\w.-]+/g, '_');
  link.click();
  URL.revokeObjectURL(url);
}
