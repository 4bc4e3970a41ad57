/** Entry of the plugin: TensorBoard imports this module into a frame and calls render(). */

import { h, render as mount } from 'preact';
import { revalidate } from './state/actions';
import { look } from './state/live';
import { watchFindings } from './state/findings';
import * as host from './state/host';
import { followSelection } from './state/profile';
import { restore } from './state/route';
import { watchRun, watchRuns } from './state/runs';
import { watchTitle } from './state/screen';
import { restoreFolds } from './state/folds';
import { restoreSettings } from './state/settings';
import { watchViewport } from './state/viewport';
import code from './styles/code.css?inline';
import controls from './styles/controls.css?inline';
import detail from './styles/detail.css?inline';
import layout from './styles/layout.css?inline';
import list from './styles/list.css?inline';
import page from './styles/page.css?inline';
import popover from './styles/popover.css?inline';
import print from './styles/print.css?inline';
import status from './styles/status.css?inline';
import summary from './styles/summary.css?inline';
import theme from './styles/theme.css?inline';
import { App } from './views/App';

const RELOAD_DELAY_MS = 200; // TensorBoard may report one reload more than once

export function render(): void {
  try {
    start();
  } catch (error) { // the host page shows nothing if render() fails
    const text = document.createElement('p');
    text.setAttribute('role', 'alert');
    text.textContent = `TorchTidy could not start: ${String(error)}`;
    document.body.append(text);
  }
}

function start(): void {
  host.connect();
  host.setUpDocument();
  host.addCss([theme, layout, controls, summary, list, detail, code, page, status, popover, print].join('\n'));
  host.onDataReloaded(debounced(() => void revalidate(), RELOAD_DELAY_MS));
  host.onUrl(restore);
  restoreSettings();
  restoreFolds();
  watchViewport();
  const root = document.createElement('div');
  root.id = 'torchtidy';
  document.body.append(root);
  mount(h(App, null), root);
  host.whileInSight(() => void look());
  void begin();
}

/** The address first: it names the profile to request. */
async function begin(): Promise<void> {
  restore(await host.readUrl());
  followSelection();
  watchFindings();
  watchRun();
  watchRuns();
  watchTitle();
  await revalidate();
}

function debounced(action: () => void, delayMs: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, delayMs);
  };
}
