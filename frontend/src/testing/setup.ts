/** Set-up of the tests: a busy machine is slow, which says nothing about the page. */

import { configure } from '@testing-library/preact';
import { afterEach, beforeEach, vi } from 'vitest';
import { closePage } from './page';

const PATIENCE_MS = 60_000;

configure({ asyncUtilTimeout: PATIENCE_MS });

const { waitFor } = vi;
vi.waitFor = (check, options = PATIENCE_MS) => waitFor(check, options);

/** A page is never idle: it would fetch all views in each test. */
beforeEach(() => void vi.stubGlobal('requestIdleCallback', () => 0));

const running = new Set<ReturnType<typeof setTimeout>>();
for (const name of ['setTimeout', 'setInterval'] as const) {
  const start: (...given: Parameters<typeof setTimeout>) => ReturnType<typeof setTimeout> = globalThis[name];
  Object.assign(globalThis, {
    [name]: (...given: Parameters<typeof setTimeout>) => {
      const timer = start(...given);
      running.add(timer);
      return timer;
    },
  });
}

// An answer or a timer that comes after a file's last test would find a window that is gone.
afterEach(() => {
  closePage();
  for (const timer of running) clearTimeout(timer);
  running.clear();
});
