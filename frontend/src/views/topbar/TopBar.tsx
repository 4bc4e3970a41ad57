/** The selection and its display: profile, view, filter. */

import { SHORTCUTS } from '../../base/keys';
import { emptyViews, VIEWS } from '../../base/views';
import { Button, IconButton } from '../../components/Button';
import { Tabs } from '../../components/Tabs';
import { chooseView, helpOpen, settingsOpen } from '../../state/actions';
import { askAhead } from '../../state/answers';
import { finding } from '../../state/findings';
import { wanted } from '../../state/focus';
import { report } from '../../state/profile';
import { hasRanks } from '../../state/ranks';
import { route } from '../../state/route';
import { runs, selected, view } from '../../state/runs';
import { comparing } from '../../state/screen';
import { Export } from './Export';
import { Filter } from './Filter';
import { Pickers } from './Pickers';

/** Without a run only the views that need none are offered. */
const tabs = () => VIEWS.filter(({ id, ofRanks = false, ofRuns = false }) =>
  (!ofRanks || hasRanks.value || view.value === id) && (!ofRuns || (runs.value?.runs.length ?? 0) > 1)
  && (selected.value !== null || ofRuns || id === 'compare'))
  .map((each) => ({ ...each, empty: (report.value && emptyViews(report.value.recorded)[each.id]) ?? '' }));

export const TopBar = () => (
  <>
    <header class="topbar">
      {finding.value && route.value.view === 'findings' && <div class="skip"><Button onClick={() => { wanted.value = 'heading'; }}>Skip the list</Button></div>}
      <span class="brand"><BrandMark />TorchTidy</span>
      {!comparing.value && <Pickers />}
      <span class="topbar-space" />
      {report.value && !comparing.value && (
        <>
          {route.value.view === 'findings' && <Filter />}
          <Export />
        </>
      )}
      <IconButton icon="settings" label="Settings" onClick={() => { settingsOpen.value = true; }} />
      <IconButton icon="keyboard" label={`Keyboard shortcuts (${SHORTCUTS.at(-1)?.keys[0] ?? ''})`} onClick={() => { helpOpen.value = true; }} />
    </header>
    {(report.value || comparing.value) && <nav class="views" aria-label="Views"><Tabs label="View" panel="view" tabs={tabs()} chosen={view.value} onChoose={chooseView} onNear={askAhead} /></nav>}
  </>
);

const BrandMark = () => (
  <svg class="brand-mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
    <path d="M3 5.5h14M3 10h9M3 14.5h5" stroke="currentColor" stroke-width="2.6" stroke-linecap="round" />
  </svg>
);
