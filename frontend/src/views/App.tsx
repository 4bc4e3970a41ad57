/** The shell: selects the view, and passes keys on. */

import type { ComponentType } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { commandOf } from '../base/keys';
import type { View } from '../base/views';
import { chunk, fetchWhenIdle } from '../components/chunk';
import { Later, type LaterView } from '../components/Later';
import { Splitter } from '../components/Splitter';
import { SCROLLING } from '../components/VirtualRows';
import { helpOpen, perform, settingsOpen } from '../state/actions';
import { announcement, toastText } from '../state/notices';
import { report } from '../state/profile';
import { route } from '../state/route';
import { view } from '../state/runs';
import { comparing, screen } from '../state/screen';
import { LIST_WIDTHS, listWidth, rowsStand, setListWidth } from '../state/settings';
import { narrow } from '../state/viewport';
import { Detail } from './detail/Detail';
import { List } from './list/List';
import { Outline } from './source/Outline';
import { Source } from './source/Source';
import { Bars } from './status/Bars';
import { Broken, Failed } from './status/Failed';
import { Loading } from './status/Loading';
import { NoTraces, Scanning, Starting } from './status/NoTraces';
import { Summary } from './summary/Summary';
import { TopBar } from './topbar/TopBar';

export function App() {
  useLayoutEffect(() => { // keys work as soon as the page is there
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return (
    <div class="app" data-rows={rowsStand.value}>
      <TopBar />
      <Bars />
      <div class="view" id="view"><Screen /></div>
      {helpOpen.value && <Later of={LATER.help} meanwhile={null} />}
      {settingsOpen.value && <Later of={LATER.settings} meanwhile={null} />}
      <div class="toast" role="status">{toastText.value}</div>
      <div class="hidden" aria-live="polite">{announcement.value}</div>
    </div>
  );
}

const later = (load: () => Promise<ComponentType>): LaterView => chunk(async () => ({ View: await load() }));

/** Other parts load once the first page is drawn and idle, or earlier on use. */
const LATER: Record<Exclude<View, 'findings' | 'source'> | 'help' | 'settings', LaterView> = {
  overview: later(async () => (await import('./overview/Overview')).Overview),
  timeline: later(async () => (await import('./timeline/Timeline')).Timeline),
  operators: later(async () => (await import('./operators/Operators')).Operators),
  kernels: later(async () => (await import('./kernels/Kernels')).Kernels),
  modules: later(async () => (await import('./modules/Modules')).Modules),
  flame: later(async () => (await import('./flame/Flame')).Flame),
  roofline: later(async () => (await import('./roofline/Roofline')).Roofline),
  memory: later(async () => (await import('./memory/Memory')).Memory),
  cpu: later(async () => (await import('./cpu/Cpu')).Cpu),
  compare: later(async () => (await import('./compare/Compare')).Compare),
  runs: later(async () => (await import('./runs/Runs')).Runs),
  ranks: later(async () => (await import('./ranks/Ranks')).Ranks),
  help: later(async () => (await import('./status/Help')).Help),
  settings: later(async () => (await import('./status/Settings')).Settings),
};

function Screen() {
  const now = screen.value;
  if (comparing.value) return <View />;
  switch (now.kind) {
    case 'starting': return <Starting />;
    case 'scanning': return <Scanning />;
    case 'no-traces': return <NoTraces logdirs={now.logdirs} />;
    case 'error': return <Broken error={now.error} />;
    case 'failed': return <Failed problem={now.problem} />;
    case 'working': return <Loading state={now.state} />;
    case 'ready': return <View />;
    default: return now satisfies never;
  }
}

function View() {
  const now = view.value;
  useEffect(() => void fetchWhenIdle([SCROLLING, ...Object.values(LATER)]), []);
  return now === 'findings' || now === 'source' ? <Workspace /> : <Later key={now} of={LATER[now]} />;
}

function Workspace() {
  const source = route.value.view === 'source';
  const covered = narrow.value && (source || route.value.finding !== ''); // one column: the detail covers the list
  const width = listWidth.value;
  const Side = narrow.value ? 'main' : 'section';
  return (
    <>
      {report.value && !covered && !source && <Summary report={report.value} />}
      <div class="panes" style={width === null ? {} : { '--list-width': `${width}px` }}>
        {!covered && (
          <Side class="side" aria-label={source ? 'Source files' : 'Findings'}>
            {source ? <Outline /> : <List />}
            {!narrow.value && (
              <Splitter label="Width of the list" width={width ?? LIST_WIDTHS.start} least={LIST_WIDTHS.least} most={LIST_WIDTHS.most}
                onWidth={setListWidth} />
            )}
          </Side>
        )}
        {source ? <Source /> : (covered || !narrow.value) && <Detail />}
      </div>
    </>
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || helpOpen.peek() || settingsOpen.peek()) return;
  if (event.key === 'Escape' && document.querySelector(':popover-open')) return; // the browser closes that, and nothing else
  const command = commandOf(event, focusOf(event.target));
  if (!command) return;
  event.preventDefault();
  perform(command);
}

function focusOf(target: EventTarget | null): 'list' | 'input' | 'elsewhere' {
  if (!(target instanceof HTMLElement)) return 'elsewhere';
  if (target.matches('input, select, textarea')) return 'input';
  return target === document.body || target.closest('[role=listbox]') ? 'list' : 'elsewhere';
}
