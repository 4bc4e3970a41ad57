/** The report as a file. */

import { Button } from '../../components/Button';
import { Popover } from '../../components/Popover';
import { copyReport, downloadPage, downloadReport } from '../../state/exports';

export const Export = () => (
  <Popover label="Export" icon="download" worded>
    {(close) => (
      <div class="menu">
        {WAYS.map(({ icon, label, go }) => (
          <Button icon={icon} onClick={() => { close(); go(); }}>{label}</Button>
        ))}
      </div>
    )}
  </Popover>
);

const WAYS = [
  { icon: 'file', label: 'Download as a page (HTML)', go: () => void downloadPage() },
  { icon: 'copy', label: 'Copy as Markdown', go: () => void copyReport() },
  { icon: 'download', label: 'Download as JSON', go: downloadReport },
] as const;
