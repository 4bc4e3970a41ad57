/** The path to a place: the user's own functions that called it, nearest first. */

import type { StackFrame } from '../../api/types.gen';
import { placeText } from '../../base/places';
import { linesText, PRECISION_SHORT } from '../../base/words';
import { showSource } from '../../state/actions';
import { useStack } from '../../state/stack';

const AT_ONCE = 3;

export function Callers({ finding, place }: { finding: string; place: number }) {
  const stack = useStack(finding, place);
  if (!stack || stack.frames.length === 0) return null;
  const [near, far] = [stack.frames.slice(0, AT_ONCE), stack.frames.slice(AT_ONCE)];
  const further = far.length + stack.more;
  return (
    <div class="callers">
      <span class="muted">Called from</span>
      <ol>{near.map((frame) => <Caller frame={frame} />)}</ol>
      {further > 0 && (
        <details>
          <summary>{further} further out</summary>
          <ol>
            {far.map((frame) => <Caller frame={frame} />)}
            {stack.more > 0 && <li class="muted">and {stack.more} more</li>}
          </ol>
        </details>
      )}
    </div>
  );
}

const Caller = ({ frame }: { frame: StackFrame }) => (
  <li>
    <button type="button" class="caller" title={`${frame.file}, ${linesText(frame)} (${PRECISION_SHORT[frame.precision]})`} onClick={() => showSource(frame)}>
      <code>{frame.function}</code> <span class="path">{placeText(frame)}</span>
    </button>
  </li>
);
