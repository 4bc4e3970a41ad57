/**
 * Sends a part of the recording to Perfetto's page, or to the user as a file. Nothing leaves without the user's
 * consent.
 */

import { getCroppedTrace } from '../api/client';
import { NO_KEY } from '../base/selection';
import type { Span } from '../base/timelineWindow';
import { faultInfo, reach } from './connection';
import { saveFile } from './exports';
import { selectedKey } from './runs';

export const PERFETTO = 'https://ui.perfetto.dev';
export const PERFETTO_HOST = 'ui.perfetto.dev';
const KNOCK_MS = 100;
const PATIENCE_MS = 5000;
const SILENT = `${PERFETTO_HOST} did not answer within 5 seconds: there may be no way to it from here. Nothing was sent. `
  + 'The timeline here needs no internet, and the cropped trace can be downloaded.';

/** Opens the page in a new tab, waits until it answers, and posts the part; a sentence describes the outcome. */
export async function openInPerfetto(part: Span, around: number): Promise<string> {
  const page = window.open(PERFETTO, '_blank'); // at once: later it would not count as an answer to a click
  if (!page) return 'The browser has blocked the new tab. Allow pop-ups for this page, or download the cropped trace.';
  try {
    const [buffer, answers] = await Promise.all([cropped(part, around), pong(page)]);
    if (!answers) return SILENT;
    page.postMessage({ perfetto: { buffer, title: title(), keepApiOpen: false } }, PERFETTO);
    return `Handed to ${PERFETTO_HOST}.`;
  } catch (failure) {
    return said(failure);
  }
}

export async function downloadCropped(part: Span, around: number): Promise<string> {
  try {
    saveFile(new Blob([await cropped(part, around)], { type: 'application/json' }), `${title()}-crop.pt.trace.json`);
    return 'Downloaded.';
  } catch (failure) {
    return said(failure);
  }
}

const said = (failure: unknown): string => {
  const fault = faultInfo(failure);
  return fault ? `${fault.message} ${fault.advice}` : 'The server does not answer.';
};

const cropped = ({ from, to }: Span, around: number): Promise<ArrayBuffer> => reach(getCroppedTrace({
  ...(selectedKey.peek() ?? NO_KEY), from_ns: Math.floor(from), to_ns: Math.ceil(to), around_ns: Math.round(around),
}));

const title = (): string => `torchtidy-${selectedKey.peek()?.run ?? ''}`.replaceAll(/[^\w.-]+/g, '_');

/** Pings until the page answers; false if it does not. Only an answer from that page and that address counts. */
function pong(page: Window): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (answered: boolean): void => {
      clearInterval(knocking);
      clearTimeout(waiting);
      window.removeEventListener('message', hear);
      resolve(answered);
    };
    const hear = (event: MessageEvent): void => {
      if (event.source === page && event.origin === PERFETTO && event.data === 'PONG') end(true);
    };
    const knocking = setInterval(() => page.postMessage('PING', '*'), KNOCK_MS);
    const waiting = setTimeout(() => end(false), PATIENCE_MS);
    window.addEventListener('message', hear);
  });
}
