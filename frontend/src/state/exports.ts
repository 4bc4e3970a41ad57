/** The report for use elsewhere. */

import { getExport, getSource } from '../api/client';
import { jobSettings } from '../base/jobSettings';
import { assistantMarkdown, findingMarkdown, reportMarkdown, type Surroundings } from '../base/markdownOut';
import { nanoseconds } from '../base/units';
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

/** With the source around the first place, if available. */
export async function copyForAssistant(finding: Finding): Promise<boolean> {
  const text = assistantMarkdown(withRanks(finding), per.peek(), { source: await sourceOf(finding), environment: environment() });
  return copy(`${text}\n`, 'Finding');
}

const AROUND = 8;

async function sourceOf({ places: [place] }: Finding): Promise<Surroundings['source']> {
  const key = selectedKey.peek();
  if (!key || !place || place.precision === 'definition') return null;
  try {
    const { available, lines } = await reach(getSource({ ...key, file: place.file }));
    const first = Math.max(1, place.line - AROUND);
    return available ? { file: place.file, first, lines: lines.slice(first - 1, place.end_line + AROUND) } : null;
  } catch {
    return null; // the finding is copied without it
  }
}

function environment(): string[] {
  const shown = report.peek();
  if (!shown) return [];
  const { devices, settings } = shown;
  const step = stepNs.peek();
  const torch = settings?.versions?.torch;
  return [
    ...(torch ? [`torch ${torch}`] : []),
    ...devices.map(({ kind, name }) => name || kind),
    ...(step === null ? [] : [`step of ${nanoseconds(step)}`]),
    ...(settings ? jobSettings(settings, devices.length > 0) : []).map(({ name, value }) => `${name} ${value}`),
  ];
}

const withRanks = (finding: Finding): Finding & { about: string } => ({ ...finding, about: ranksOf(finding) });

const LOOPBACK = /^(?:localhost|.*\.localhost|127(?:\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)$/;

/** The address, with a remark where it leads to this machine only. */
export async function copyLink(): Promise<boolean> {
  const url = shareUrl();
  const done = await copy(url, 'Link');
  if (done && URL.canParse(url) && LOOPBACK.test(new URL(url).hostname)) toast('Link copied. It opens on this machine only; for others, save the report as an HTML page.');
  return done;
}

/** The list as shown: filtered and sorted. */
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

/** A page that needs neither a server nor a network, without muted findings. */
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

/** Downloads a file. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replaceAll(/[^\w.-]+/g, '_');
  link.click();
  URL.revokeObjectURL(url);
}
