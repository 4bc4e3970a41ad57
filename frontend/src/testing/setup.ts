/** Set-up of the tests: a busy machine is slow, which says nothing about the page. */

import { configure } from '@testing-library/preact';
import { options } from 'preact';
import { afterEach, beforeEach, vi } from 'vitest';
import { closePage } from './page';

const PATIENCE_MS = 60_000;

configure({ asyncUtilTimeout: PATIENCE_MS });

const { waitFor } = vi;
vi.waitFor = (check, given = PATIENCE_MS) => waitFor(check, given);

/** A page is never idle: it would fetch all views in each test. */
beforeEach(() => void vi.stubGlobal('requestIdleCallback', () => 0));

/** Effects run in the next turn of the loop. Preact waits for a frame, and on a busy machine longer than a test would. */
options.requestAnimationFrame = (flush) => void setTimeout(flush);

// An answer, or the page's next look, that comes after a file's last test would find a window that is gone.
afterEach(closePage);
