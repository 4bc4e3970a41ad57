/**
 * A part of the recording for another viewer: as a file, or sent to a third party's page, which the user is told
 * before.
 */

import { useState } from 'preact/hooks';
import { Button } from './Button';

interface Props {
  /** The part in words: `around this event, three steps`. */
  what: string;
  where: string;
  /** Returns a sentence about the outcome. */
  onSend: () => Promise<string>;
  onDownload: () => Promise<string>;
}

export function SendTrace({ what, where, onSend, onDownload }: Props) {
  const [asking, setAsking] = useState(false);
  const [said, setSaid] = useState('');
  const act = (action: () => Promise<string>): void => {
    setAsking(false);
    setSaid('');
    void action().then(setSaid);
  };
  return (
    <div class="send-trace">
      <Button icon="open" onClick={() => setAsking(!asking)}>Open in Perfetto…</Button>
      <Button icon="download" onClick={() => act(onDownload)}>Download cropped trace</Button>
      {asking && (
        <div class="send-ask" role="group" aria-label="Open in Perfetto">
          <p>
            This hands a part of the recording ({what}) to <b>{where}</b>, a page of a third party, in a new tab: names, times, shapes and
            launches of its events. That page says that it keeps them in your browser; TorchTidy cannot vouch for it.
          </p>
          <div class="actions">
            <Button kind="primary" onClick={() => act(onSend)}>Open {where}</Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </div>
        </div>
      )}
      <p class="send-said" role="status">{said}</p>
    </div>
  );
}
