/** Colours source away from the main thread. */

import { pythonLines } from '../base/pythonLines';
import type { Line } from '../base/tokens';

export interface Job { id: number; code: string }
export interface Done { id: number; lines: readonly Line[] }

addEventListener('message', ({ data }: MessageEvent<Job>) => {
  const done: Done = { id: data.id, lines: pythonLines(data.code) };
  postMessage(done);
});
