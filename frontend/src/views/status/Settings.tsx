/** The user's settings, which the browser remembers. */

import { EDITOR_NAMES, EDITORS } from '../../base/editors';
import { Dialog } from '../../components/Dialog';
import { Radios } from '../../components/Radios';
import { settingsOpen } from '../../state/actions';
import { standsAlone } from '../../state/host';
import { editor, rowsStand, savingsIn, setEditor, setRows, setSavingsIn } from '../../state/settings';

export const Settings = () => (
  <Dialog title="Settings" onClose={() => { settingsOpen.value = false; }}>
    <div class="settings">
      <Radios title="Files open in" value={editor.value} options={EDITORS.map((id) => ({ id, label: EDITOR_NAMES[id] }))} onChoose={setEditor} />
      <Radios title="Savings are shown in" value={savingsIn.value} options={UNITS} onChoose={setSavingsIn} />
      <Radios title="Findings in the list stand" value={rowsStand.value} options={ROWS} onChoose={setRows} />
      <p class="muted">Kept in this browser. Light and dark are {standsAlone() ? 'your system' : 'TensorBoard'}’s choice.</p>
    </div>
  </Dialog>
);

const UNITS = [
  { id: '', label: 'the unit that fits the largest' }, { id: 's', label: 's' }, { id: 'ms', label: 'ms' }, { id: 'µs', label: 'µs' },
];

const ROWS = [{ id: 'roomy', label: 'apart' }, { id: 'close', label: 'close together' }] as const;
